"""From a container's spec to a process: command, arguments and environment as the kubelet makes them, and which of
its security settings such a process does not have. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from tfyard.model import Manifest
from tfyard.model.expansion import expand

from .pod_data import ContainerConfigError, MissingObject, Objects, field, resource_value

WITHOUT_EFFECT: dict[str, Any] = {
    "allowPrivilegeEscalation": True,
    "appArmorProfile": {"type": "Unconfined"},
    "privileged": False,
    "procMount": "Default",
    "readOnlyRootFilesystem": False,
    "seccompProfile": {"type": "Unconfined"},
}
"""Security settings that processes have anyway."""
JUDGED_ELSEWHERE = ("runAsNonRoot", "fsGroupChangePolicy", "seLinuxChangePolicy", "supplementalGroupsPolicy")
"""Settings that need no warning: `refuse_root` checks the first, and policies only say how others take effect."""


class NoCommand(ContainerConfigError):
    """The container has no command, and images, which would have one, are not used on this node."""


def argv(container: Manifest, env: Mapping[str, str]) -> list[str]:
    command = [str(part) for part in container.get("command") or []]
    if not command:
        raise NoCommand(f"container {container.get('name')} has no command, and images are not used here")
    return [expand(part, env) for part in [*command, *(str(part) for part in container.get("args") or [])]]


def environment(
    pod: Manifest, container: Manifest, objects: Objects, services: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Variables in order: later ones see the values of earlier ones, and of the variables about Services."""
    env: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        env |= _all_of(source, pod, objects)
    for entry in container.get("env") or []:
        name = str(entry.get("name"))
        value = (
            _value_from(name, entry["valueFrom"], pod, container, objects) if entry.get("valueFrom") else None
        )
        if value is not None:
            env[name] = value
        elif not entry.get("valueFrom"):
            env[name] = expand(str(entry.get("value") or ""), {**(services or {}), **env})
    return env


def refuse_root(pod: Manifest, container: Manifest, user: int) -> None:
    """Refuse a container with `runAsNonRoot` that would run as root, as a kubelet does. Without `runAsUser`, its
    user is that of the node, in place of an image's."""
    chosen = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    run_as = chosen.get("runAsUser")
    if not chosen.get("runAsNonRoot") or (user if run_as is None else run_as) != 0:
        return
    where = f"(pod: {pod['metadata']['name']}, container: {container.get('name')})"
    if run_as == 0:
        raise ContainerConfigError(f"container's runAsUser breaks non-root policy {where}")
    raise ContainerConfigError(f"container has runAsNonRoot and image will run as root {where}")


def unused_security(pod: Manifest, user: int, group: int) -> list[str]:
    """Settings of the pod's `securityContext`s that processes of this user do not have."""
    spec = pod["spec"]
    parts = (spec, *(spec.get("initContainers") or []), *spec["containers"])
    settings = [item for part in parts for item in (part.get("securityContext") or {}).items()]
    same = {**WITHOUT_EFFECT, "runAsUser": user, "runAsGroup": group, "fsGroup": group}
    unused = [key for key, value in settings if value not in (None, {}, [], same.get(key))]
    return sorted({*unused} - {*JUDGED_ELSEWHERE})


def _all_of(source: Manifest, pod: Manifest, objects: Objects) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for key in ("configMapRef", "secretRef"):
        if reference := source.get(key):
            data = _object(key, reference, pod, objects, variable="NAME") or {}
            return {prefix + name: value for name, value in data.items()}
    return {}


def _value_from(
    name: str, source: Manifest, pod: Manifest, container: Manifest, objects: Objects
) -> str | None:
    if "fieldRef" in source:
        return field(pod, str(source["fieldRef"].get("fieldPath")))
    if "resourceFieldRef" in source:
        return resource_value(container, source["resourceFieldRef"])
    for key in ("configMapKeyRef", "secretKeyRef"):
        if key in source:
            return (_object(key, source[key], pod, objects, variable=name) or {}).get(source[key].get("key"))
    return None


def _object(
    key: str, reference: Manifest, pod: Manifest, objects: Objects, variable: str
) -> dict[str, str] | None:
    """The data of a ConfigMap or Secret. MissingObject, in a kubelet's words, if it or its key does not exist."""
    is_secret = key.startswith("secret")
    name, entry = reference.get("name"), reference.get("key")
    data = (objects.secrets if is_secret else objects.config_maps).get(str(name))
    if reference.get("optional") or (data is not None and (entry is None or entry in data)):
        return data
    if data is None:
        raise MissingObject(f'{"secret" if is_secret else "configmap"} "{name}" not found', variable)
    where = f"{'Secret' if is_secret else 'ConfigMap'} {pod['metadata'].get('namespace', 'default')}/{name}"
    raise MissingObject(f"couldn't find key {entry} in {where}", variable)


def rewrite(text: str, mapping: Mapping[str, str]) -> str:
    """Replace mount paths in a text by the directories that are mounted there, at path boundaries only."""
    for path in sorted(mapping, key=len, reverse=True):
        text = re.sub(_pattern(path), lambda _match, path=path: mapping[path], text)  # type: ignore[misc]
    return text


def mentions(text: str, path: str) -> bool:
    """Whether the text has this path, or one below it."""
    return re.search(_pattern(path), text) is not None


def _pattern(path: str) -> str:
    return rf"(?<![\w./-]){re.escape(path.rstrip('/'))}(?=$|[/\s:;,=\"')&|>])"
