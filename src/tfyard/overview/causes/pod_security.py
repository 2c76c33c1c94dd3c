"""The overlay with which pods pass PodSecurity, by the violations that the server names."""

import re
from collections.abc import Iterable

import msgspec

from tfyard.model import Manifest

_VIOLATION = r"([^,()]+?)(?: != \w+)? \(([^()]*)\)"
"""What is violated, and by which containers: `runAsNonRoot != true (pod or container "tensorflow" must set …)`."""
_OF_PODS: dict[str, Manifest] = {
    "runAsNonRoot": {"runAsNonRoot": True, "runAsUser": 1000},
    "seccompProfile": {"seccompProfile": {"type": "RuntimeDefault"}},
}
_OF_CONTAINERS: dict[str, Manifest] = {
    "allowPrivilegeEscalation": {"allowPrivilegeEscalation": False},
    "unrestricted capabilities": {"capabilities": {"drop": ["ALL"]}},
}


def fix(message: str, init_containers: Iterable[str]) -> str:
    """The line of the job file. What else the pods must not have, such as a hostPath, is named after it."""
    violations = [(name.strip(), details) for name, details in re.findall(_VIOLATION, message)]
    context: Manifest = {}
    for name, _ in violations:
        context |= _OF_PODS.get(name, {})
    spec = {"securityContext": context} if context else {}
    spec |= _containers(violations, set(init_containers))
    others = [name for name, _ in violations if name not in {**_OF_PODS, **_OF_CONTAINERS}]
    parts = [f"job file: `overlay: {_in_one_line({'spec': spec})}`"] if spec else []
    return "; and ".join(parts + ([f"without {', '.join(others)}"] if others else []))


def _containers(violations: Iterable[tuple[str, str]], init_containers: set[str]) -> Manifest:
    contexts: dict[str, dict[str, Manifest]] = {}
    for violation, details in violations:
        for name in re.findall(r'"([^"]+)"', details.partition(" must ")[0]):
            kind = "initContainers" if name in init_containers else "containers"
            if violation in _OF_CONTAINERS:
                contexts.setdefault(kind, {}).setdefault(name, {}).update(_OF_CONTAINERS[violation])
    return {
        kind: [{"name": name, "securityContext": context} for name, context in containers.items()]
        for kind, containers in contexts.items()
    }


def _in_one_line(value: object) -> str:
    """YAML in one line, without the quotes that JSON needs."""
    return re.sub(r'"([\w.-]+)"', r"\1", msgspec.json.format(msgspec.json.encode(value), indent=0).decode())
