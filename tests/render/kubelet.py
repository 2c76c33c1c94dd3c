"""The part of a kubelet that runs a rendered container here: ConfigMaps as files, env, `$(NAME)`."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from .calling import Manifest, named

INDEX_FIELD = "metadata.labels['batch.kubernetes.io/job-completion-index']"


def run(
    objects: list[Manifest], job: Manifest, index: int, at: Path, container: str = "tensorflow"
) -> subprocess.CompletedProcess[str]:
    """Runs one container of one pod of a Job to its end."""
    spec = job["spec"]["template"]["spec"]
    chosen = next(c for c in [*spec["containers"], *spec.get("initContainers", [])] if c["name"] == container)
    env = environment(objects, chosen, index)
    words = [_expanded(word, env) for word in [*chosen["command"], *chosen.get("args", [])]]
    for mount, folder in _mounts(objects, spec, chosen, at).items():
        words = [word.replace(mount, str(folder)) for word in words]
        env = {name: value.replace(mount, str(folder)) for name, value in env.items()}
    env = {"PATH": os.environ["PATH"], **env}
    return subprocess.run(words, env=env, cwd=at, capture_output=True, text=True, timeout=60, check=False)


def environment(objects: list[Manifest], container: Manifest, index: int) -> dict[str, str]:
    env: dict[str, str] = {}
    for entry in container.get("env", []):
        source = entry.get("valueFrom", {})
        if "configMapKeyRef" in source:
            reference = source["configMapKeyRef"]
            env[entry["name"]] = named(objects, "ConfigMap", reference["name"])["data"][reference["key"]]
        elif "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == INDEX_FIELD
            env[entry["name"]] = str(index)
        elif "value" in entry:
            env[entry["name"]] = _expanded(entry["value"], env)
    return env


def _expanded(text: str, env: dict[str, str]) -> str:
    """Expands references; those to unknown names stay unchanged, as in the kubelet."""
    return re.sub(r"\$\((\w+)\)", lambda match: env.get(match[1], match[0]), text)


def _mounts(objects: list[Manifest], spec: Manifest, container: Manifest, at: Path) -> dict[str, Path]:
    volumes: dict[str, Any] = {volume["name"]: volume for volume in spec.get("volumes", [])}
    made = {}
    for mount in container.get("volumeMounts", []):
        if "configMap" in volumes[mount["name"]]:
            folder = at / mount["name"]
            folder.mkdir(exist_ok=True)
            config = named(objects, "ConfigMap", volumes[mount["name"]]["configMap"]["name"])
            for name, text in config.get("data", {}).items():
                (folder / name).write_text(text)
            made[mount["mountPath"]] = folder
    return made
