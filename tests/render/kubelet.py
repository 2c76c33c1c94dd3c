"""As much of a kubelet as it takes to run a rendered container here: ConfigMaps as files, env, `$(NAME)`."""

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
    """One container of one pod of a Job, to its end."""
    spec = job["spec"]["template"]["spec"]
    found = next(c for c in [*spec["containers"], *spec.get("initContainers", [])] if c["name"] == container)
    env = environment(objects, found, index)
    words = [_expanded(word, env) for word in [*found["command"], *found.get("args", [])]]
    for mount, folder in _mounts(objects, spec, found, at).items():
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
    """A name that is not known stays as it is written, as the kubelet has it."""
    return re.sub(r"\$\((\w+)\)", lambda found: env.get(found[1], found[0]), text)


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
