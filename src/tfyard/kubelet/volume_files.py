"""What is in the volumes that come from the API: ConfigMaps, Secrets, tokens, the downward API. Pure."""

from collections.abc import Mapping

from msgspec import Struct

from tfyard.kubelet.resources import resource_value
from tfyard.model import Manifest
from tfyard.node.containers import ContainerConfigError, Objects, field

FROM_API = ("configMap", "secret", "projected", "downwardAPI")
DEFAULT_MODE = 0o644

Tokens = Mapping[tuple[str, int], str]
"""By audience and lifetime."""


class File(Struct, frozen=True):
    data: bytes
    mode: int = DEFAULT_MODE


def files(volume: Manifest, pod: Manifest, objects: Objects, tokens: Tokens) -> dict[str, File]:
    """By path in the volume. ContainerConfigError, in a kubelet's words, for what does not exist."""
    projected = volume.get("projected") or {}
    mode = next(
        (v["defaultMode"] for v in volume.values() if isinstance(v, dict) and v.get("defaultMode")), None
    )
    found: dict[str, File] = {}
    for source in projected.get("sources") or [volume]:
        found |= _of(source, pod, objects, tokens)
    return {path: File(file.data, file.mode or mode or DEFAULT_MODE) for path, file in found.items()}


def _of(source: Manifest, pod: Manifest, objects: Objects, tokens: Tokens) -> dict[str, File]:
    """Of one source; a mode of 0 is the volume's."""
    if reference := source.get("configMap"):
        return _chosen("configmap", reference, objects.config_maps, "config")
    if reference := source.get("secret"):
        return _chosen("secret", reference, objects.secrets, "secret")
    if wanted := source.get("serviceAccountToken"):
        key = str(wanted.get("audience") or ""), int(wanted.get("expirationSeconds") or 3600)
        return {wanted["path"]: File(tokens[key].encode(), 0o600)}
    items = (source.get("downwardAPI") or {}).get("items") or []
    return {item["path"]: File(_downward(item, pod).encode(), item.get("mode") or 0) for item in items}


def _chosen(
    kind: str, reference: Manifest, known: Mapping[str, Mapping[str, str]], keys: str
) -> dict[str, File]:
    name = str(reference.get("name") or reference.get("secretName"))
    data, optional = known.get(name), reference.get("optional")
    if data is None and not optional:
        raise ContainerConfigError(f'{kind} "{name}" not found')
    data = data or {}
    items = reference.get("items") or [{"key": key, "path": key} for key in data]
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not optional:
        raise ContainerConfigError(f"references non-existent {keys} key: {missing[0]}")
    return {item["path"]: _file(data[item["key"]], item) for item in items if item["key"] in data}


def _file(text: str, item: Manifest) -> File:
    return File(text.encode("utf-8", "surrogateescape"), item.get("mode") or 0)


def _downward(item: Manifest, pod: Manifest) -> str:
    if reference := item.get("fieldRef"):
        path = str(reference["fieldPath"])
        if path in ("metadata.labels", "metadata.annotations"):
            entries = pod["metadata"].get(path.removeprefix("metadata.")) or {}
            return "\n".join(f'{key}="{_quoted(value)}"' for key, value in sorted(entries.items()))
        return field(pod, path)
    reference = item["resourceFieldRef"]
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    container = next(each for each in containers if each["name"] == reference["containerName"])
    return resource_value(container, reference)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
