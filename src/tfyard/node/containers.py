"""From a container's spec to a process: command, arguments and environment as the kubelet makes them, and which of
its security settings such a process does not have. Pure."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.model import Manifest
from tfyard.model.expansion import expand

LOOPBACK = "127.0.0.1"
WITHOUT_EFFECT: dict[str, Any] = {
    "allowPrivilegeEscalation": True,
    "appArmorProfile": {"type": "Unconfined"},
    "privileged": False,
    "procMount": "Default",
    "readOnlyRootFilesystem": False,
    "seccompProfile": {"type": "Unconfined"},
}
"""Values that processes have anyway."""
JUDGED_ELSEWHERE = ("runAsNonRoot", "fsGroupChangePolicy", "seLinuxChangePolicy", "supplementalGroupsPolicy")
"""The first by `refuse_root`; the policies say how other settings take effect."""


class ContainerConfigError(Usage):
    """A container cannot be started as its pod describes it; Kubernetes' CreateContainerConfigError."""


class NoCommand(ContainerConfigError):
    """Its image would say what to run, and images are not used on this node."""


class MissingObject(ContainerConfigError):
    """A ConfigMap or Secret, or a key of it."""

    def __init__(self, kind: str, name: object, key: object = "", variable: str = "") -> None:
        self.kind, self.name, self.key = kind, str(name), str(key)
        self.variable = variable
        """That should get its value from it; empty: it should be a file."""
        super().__init__(f"{kind} {name}{f' with the key {key}' if key else ''} not found")


class Objects(Struct, frozen=True):
    """The ConfigMaps and Secrets that pods may use, by name."""

    config_maps: dict[str, dict[str, str]] = {}
    secrets: dict[str, dict[str, str]] = {}


def collect(documents: list[Manifest]) -> Objects:
    found = Objects({}, {})
    for document in documents:
        name = str((document.get("metadata") or {}).get("name", ""))
        if document.get("kind") == "ConfigMap":
            found.config_maps[name] = {**_decoded(document.get("binaryData")), **(document.get("data") or {})}
        elif document.get("kind") == "Secret":
            found.secrets[name] = {**_decoded(document.get("data")), **(document.get("stringData") or {})}
    return found


def argv(container: Manifest, env: Mapping[str, str]) -> list[str]:
    command = [str(part) for part in container.get("command") or []]
    if not command:
        raise NoCommand(f"container {container.get('name')} has no command, and images are not used here")
    return [expand(part, env) for part in [*command, *(str(part) for part in container.get("args") or [])]]


def environment(pod: Manifest, container: Manifest, objects: Objects) -> dict[str, str]:
    """In order: later entries see the values of earlier ones."""
    env: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        env |= _all_of(source, objects)
    for entry in container.get("env") or []:
        name = str(entry.get("name"))
        value = (
            _value_from(name, entry["valueFrom"], pod, container, objects) if entry.get("valueFrom") else None
        )
        if value is not None:
            env[name] = value
        elif not entry.get("valueFrom"):
            env[name] = expand(str(entry.get("value") or ""), env)
    return env


def refuse_root(pod: Manifest, container: Manifest, user: int) -> None:
    """`runAsNonRoot`, as a kubelet judges it: who would run as root does not start. In place of an image, the user
    of the node says who that is, unless `runAsUser` does."""
    chosen = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    given = chosen.get("runAsUser")
    if not chosen.get("runAsNonRoot") or (user if given is None else given) != 0:
        return
    where = f"(pod: {pod['metadata']['name']}, container: {container.get('name')})"
    if given == 0:
        raise ContainerConfigError(f"container's runAsUser breaks non-root policy {where}")
    raise ContainerConfigError(f"container has runAsNonRoot and image will run as root {where}")


def unused_security(pod: Manifest, user: int, group: int) -> list[str]:
    """The settings of its `securityContext`s that processes of this user do not have."""
    spec = pod["spec"]
    everyone = (spec, *(spec.get("initContainers") or []), *spec["containers"])
    settings = [item for each in everyone for item in (each.get("securityContext") or {}).items()]
    same = {**WITHOUT_EFFECT, "runAsUser": user, "runAsGroup": group, "fsGroup": group}
    unused = [key for key, value in settings if value not in (None, {}, [], same.get(key))]
    return sorted({*unused} - {*JUDGED_ELSEWHERE})


def _all_of(source: Manifest, objects: Objects) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for key, known in (("configMapRef", objects.config_maps), ("secretRef", objects.secrets)):
        reference = source.get(key)
        if reference:
            found = known.get(reference.get("name"))
            if found is None and not reference.get("optional"):
                raise MissingObject(key.removesuffix("Ref"), reference.get("name"), variable="NAME")
            return {prefix + name: value for name, value in (found or {}).items()}
    return {}


def _value_from(
    name: str, source: Manifest, pod: Manifest, container: Manifest, objects: Objects
) -> str | None:
    if "fieldRef" in source:
        return field(pod, str(source["fieldRef"].get("fieldPath")))
    if "resourceFieldRef" in source:
        return _resource(container, str(source["resourceFieldRef"].get("resource")))
    for key, known in (("configMapKeyRef", objects.config_maps), ("secretKeyRef", objects.secrets)):
        if key in source:
            reference = source[key]
            value = known.get(reference.get("name"), {}).get(reference.get("key"))
            if value is None and not reference.get("optional"):
                missing = key.removesuffix("KeyRef"), reference.get("name"), reference.get("key")
                raise MissingObject(*missing, variable=name)
            return value
    return None


def field(pod: Manifest, path: str) -> str:
    """The downward API, as far as a process has such a field."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if match := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    known: dict[str, Any] = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata.get("namespace", "default"),
        "metadata.uid": metadata.get("uid", ""),
        "spec.nodeName": spec.get("nodeName") or "localhost",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        **dict.fromkeys(("status.podIP", "status.podIPs"), status.get("podIP") or LOOPBACK),
        **dict.fromkeys(("status.hostIP", "status.hostIPs"), status.get("hostIP") or LOOPBACK),
    }
    return str(known.get(path, ""))


def _resource(container: Manifest, name: str) -> str:
    part, _, resource = name.partition(".")
    return str(((container.get("resources") or {}).get(part) or {}).get(resource, ""))


def _decoded(data: dict[str, str] | None) -> dict[str, str]:
    return {key: _decode(key, text) for key, text in (data or {}).items()}


def _decode(key: str, text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError) as error:
        raise ContainerConfigError(f"the entry {key} is not valid base64: {error}") from None


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
