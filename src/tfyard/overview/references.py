"""The objects that a pod refers to and does not start without, such as ConfigMaps and Secrets."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from tfyard.model import Manifest

CONFIG_MAP, SECRET, SERVICE_ACCOUNT, PRIORITY_CLASS = "ConfigMap", "Secret", "ServiceAccount", "PriorityClass"
_KINDS = {
    "configMapRef": CONFIG_MAP,
    "configMapKeyRef": CONFIG_MAP,
    "configMap": CONFIG_MAP,
    "secretRef": SECRET,
    "secretKeyRef": SECRET,
    "secret": SECRET,
    "azureFile": SECRET,
    "nodePublishSecretRef": SECRET,
}
"""Field of a pod -> kind of the object that it refers to."""


class Reference(Struct, frozen=True):
    kind: str
    name: str
    keys: frozenset[str] = frozenset()
    """Keys of the object that the pod needs."""
    is_for_pulling: bool = False
    """Whether it is an image pull secret: without it, the image may still be pulled."""


def of_pod(spec: Manifest) -> list[Reference]:
    """References of a pod, each object once with all keys, without optional ones."""
    keys: dict[tuple[str, str], set[str]] = {}
    for reference in _walk(spec):
        keys.setdefault((reference.kind, reference.name), set()).update(reference.keys)
    needed_objects = [Reference(kind, name, frozenset(needed)) for (kind, name), needed in keys.items()]
    pulling = [str(each.get("name")) for each in spec.get("imagePullSecrets") or [] if each.get("name")]
    return [*needed_objects, *(Reference(SECRET, name, is_for_pulling=True) for name in pulling)]


def of_admission(spec: Manifest) -> list[Reference]:
    """Objects that admission looks up before it accepts a pod."""
    fields = {SERVICE_ACCOUNT: "serviceAccountName", PRIORITY_CLASS: "priorityClassName"}
    return [Reference(kind, str(spec[field])) for kind, field in fields.items() if spec.get(field)]


def creation(namespace: str, reference: Reference) -> str:
    """The command that creates a ConfigMap or Secret with the keys that the pod needs."""
    word = "configmap" if reference.kind == CONFIG_MAP else "secret generic"
    data = [f"--from-literal={key}=VALUE" for key in sorted(reference.keys) or ("KEY",)]
    return f"kubectl -n {namespace} create {word} {reference.name} {' '.join(data)}"


def addition(namespace: str, reference: Reference, keys: Iterable[str]) -> str:
    """The command that adds keys to a ConfigMap or Secret."""
    field = "data" if reference.kind == CONFIG_MAP else "stringData"
    values = ",".join(f'"{key}":"VALUE"' for key in sorted(keys))
    patch = f"""-p '{{"{field}":{{{values}}}}}'"""
    return f"kubectl -n {namespace} patch {reference.kind.lower()} {reference.name} {patch}"


def _walk(part: Any) -> Iterator[Reference]:
    if isinstance(part, list):
        for each in part:
            yield from _walk(each)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in _KINDS and isinstance(value, dict) and not value.get("optional"):
                yield from _reference(_KINDS[key], value)
            yield from _walk(value)


def _reference(kind: str, value: Manifest) -> Iterator[Reference]:
    keys = [value["key"]] if "key" in value else [item.get("key") for item in value.get("items") or []]
    if name := value.get("name") or value.get("secretName"):
        yield Reference(kind, str(name), frozenset(map(str, keys)))
