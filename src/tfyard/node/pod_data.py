"""Contents of volumes and variables that do not come from a pod's own manifest alone: ConfigMaps, Secrets, tokens,
the downward API. Pure; errors about missing objects are in a kubelet's words."""

import base64
import binascii
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.model import Manifest
from tfyard.model.quantity import amount

LOOPBACK = "127.0.0.1"
WRITTEN = ("configMap", "secret", "projected", "downwardAPI")
"""Volumes whose files are written for the pod, and that it cannot change."""
DEFAULT_MODE = 0o644
LIMITED_BY_NODE = ("cpu", "memory", "ephemeral-storage")

Tokens = Mapping[tuple[str, int], str]
"""Tokens by audience and lifetime."""


class ContainerConfigError(Usage):
    """A container cannot be started as its pod describes it; Kubernetes' CreateContainerConfigError."""


class MissingObject(ContainerConfigError):
    """A ConfigMap or Secret that does not exist, or a key that it does not have."""

    def __init__(self, text: str, variable: str = "") -> None:
        self.variable = variable
        """The variable that needs it; empty: a file does."""
        super().__init__(text)


class Objects(Struct, frozen=True):
    """The ConfigMaps and Secrets that pods may use, by name."""

    config_maps: dict[str, dict[str, str]] = {}
    secrets: dict[str, dict[str, str]] = {}


def collect(documents: list[Manifest]) -> Objects:
    objects = Objects({}, {})
    for document in documents:
        name = str((document.get("metadata") or {}).get("name", ""))
        if document.get("kind") == "ConfigMap":
            objects.config_maps[name] = {
                **_decoded(document.get("binaryData")),
                **(document.get("data") or {}),
            }
        elif document.get("kind") == "Secret":
            objects.secrets[name] = {**_decoded(document.get("data")), **(document.get("stringData") or {})}
    return objects


def _decoded(data: dict[str, str] | None) -> dict[str, str]:
    return {key: _decode(key, text) for key, text in (data or {}).items()}


def _decode(key: str, text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError) as error:
        raise ContainerConfigError(f"the entry {key} is not valid base64: {error}") from None


# Files.


class File(Struct, frozen=True):
    data: bytes
    mode: int = DEFAULT_MODE


def files(volume: Manifest, pod: Manifest, objects: Objects, tokens: Tokens) -> dict[str, File]:
    """Files of a volume, by path. MissingObject for what does not exist."""
    projected = volume.get("projected") or {}
    modes = (v["defaultMode"] for v in volume.values() if isinstance(v, dict) and v.get("defaultMode"))
    mode, contents = next(modes, DEFAULT_MODE), dict[str, File]()
    for source in projected.get("sources") or [volume]:
        contents |= _of(source, pod, objects, tokens)
    return {path: File(file.data, file.mode or mode) for path, file in contents.items()}


def _of(source: Manifest, pod: Manifest, objects: Objects, tokens: Tokens) -> dict[str, File]:
    """Files of one source; a mode of 0 is the volume's."""
    if reference := source.get("configMap"):
        return _chosen("configmap", reference, objects.config_maps, "config")
    if reference := source.get("secret"):
        return _chosen("secret", reference, objects.secrets, "secret")
    if projection := source.get("serviceAccountToken"):
        token = tokens.get(token_key(projection))
        return {} if token is None else {projection["path"]: File(token.encode(), 0o600)}
    items = (source.get("downwardAPI") or {}).get("items") or []
    return {item["path"]: File(_downward(item, pod).encode(), item.get("mode") or 0) for item in items}


def token_key(projection: Manifest) -> tuple[str, int]:
    return str(projection.get("audience") or ""), int(projection.get("expirationSeconds") or 3600)


def _chosen(
    kind: str, reference: Manifest, known: Mapping[str, Mapping[str, str]], keys: str
) -> dict[str, File]:
    name = str(reference.get("name") or reference.get("secretName"))
    data, optional = known.get(name), reference.get("optional")
    if data is None and not optional:
        raise MissingObject(f'{kind} "{name}" not found')
    data = data or {}
    items = reference.get("items") or [{"key": key, "path": key} for key in data]
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not optional:
        raise MissingObject(f"references non-existent {keys} key: {missing[0]}")
    return {item["path"]: _file(data[item["key"]], item) for item in items if item["key"] in data}


def _file(text: str, item: Manifest) -> File:
    return File(text.encode("utf-8", "surrogateescape"), item.get("mode") or 0)


# The downward API.


def field(pod: Manifest, path: str) -> str:
    """Value of a field of the pod; empty for fields that no process has."""
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


def with_limits(container: Manifest, allocatable: Mapping[str, str]) -> Manifest:
    """The container as the downward API shows it: without a limit, it is limited by what the node has."""
    own = container.get("resources") or {}
    limits = own.get("limits") or {}
    of_node = {name: allocatable[name] for name in LIMITED_BY_NODE if name in allocatable}
    requests = {**limits, **(own.get("requests") or {})}
    return {**container, "resources": {**own, "limits": {**of_node, **limits}, "requests": requests}}


def resource_value(container: Manifest, reference: Manifest) -> str:
    """A resource, rounded up: half a CPU is 1, and 1 Gi of memory 1073741824, unless there is another divisor."""
    part, _, name = str(reference.get("resource")).partition(".")
    if part not in ("limits", "requests"):
        raise ContainerConfigError(f"unsupported container resource : {reference.get('resource')}")
    quantity = ((container.get("resources") or {}).get(part) or {}).get(name) or 0
    divisor = amount(reference.get("divisor") or 1) or Decimal(1)
    number = (amount(quantity) or Decimal(0)) / divisor
    return str(int(number.to_integral_value(ROUND_CEILING)))
