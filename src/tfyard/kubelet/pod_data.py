"""What pods find in volumes and variables that come from the API: ConfigMaps, Secrets, tokens, the downward API,
Services. Pure."""

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal

from msgspec import Struct

from tfyard.model import Manifest
from tfyard.model.quantity import amount
from tfyard.node.containers import ContainerConfigError, Objects, field

FROM_API = ("configMap", "secret", "projected", "downwardAPI")
DEFAULT_MODE = 0o644
LIMITED_BY_NODE = ("cpu", "memory", "ephemeral-storage")

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


# Requests and limits, as whole numbers of a unit.


def with_limits(container: Manifest, allocatable: Mapping[str, str]) -> Manifest:
    """As the downward API sees it: who has no limit is limited by what the node has."""
    given = container.get("resources") or {}
    limits = given.get("limits") or {}
    of_node = {name: allocatable[name] for name in LIMITED_BY_NODE if name in allocatable}
    requests = {**limits, **(given.get("requests") or {})}
    return {**container, "resources": {**given, "limits": {**of_node, **limits}, "requests": requests}}


def resource_value(container: Manifest, reference: Manifest) -> str:
    """Rounded up: half a CPU is 1, and 1 Gi of memory is 1073741824, unless the reference has another divisor."""
    part, _, name = str(reference.get("resource")).partition(".")
    if part not in ("limits", "requests"):
        raise ContainerConfigError(f"unsupported container resource : {reference.get('resource')}")
    found = ((container.get("resources") or {}).get(part) or {}).get(name) or 0
    divisor = amount(reference.get("divisor") or 1) or Decimal(1)
    number = (amount(found) or Decimal(0)) / divisor
    return str(int(number.to_integral_value(ROUND_CEILING)))


def with_resource_values(container: Manifest) -> Manifest:
    """The container with numbers instead of references in its environment."""
    entries = []
    for entry in container.get("env") or []:
        reference = (entry.get("valueFrom") or {}).get("resourceFieldRef")
        entries.append(
            {"name": entry["name"], "value": resource_value(container, reference)} if reference else entry
        )
    return {**container, "env": entries}


# Services, as every container of their namespace has them in its environment.


def services_env(services: Iterable[Manifest]) -> dict[str, str]:
    env: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP") or "None"
        ports = service["spec"].get("ports") or []
        if address != "None" and ports:
            env |= service_env(service["metadata"]["name"], address, ports)
    return env


def service_env(name: str, address: str, ports: list[Manifest]) -> dict[str, str]:
    """Its address and ports, and the forms that links of Docker had."""
    prefix, first = _upper(name), ports[0]
    env = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(first["port"])}
    env |= {f"{prefix}_SERVICE_PORT_{_upper(p['name'])}": str(p["port"]) for p in ports if p.get("name")}
    env[f"{prefix}_PORT"] = f"{_protocol(first)}://{address}:{first['port']}"
    for port in ports:
        link = f"{prefix}_PORT_{port['port']}_{_protocol(port).upper()}"
        env[link] = f"{_protocol(port)}://{address}:{port['port']}"
        env |= {f"{link}_PROTO": _protocol(port), f"{link}_PORT": str(port["port"]), f"{link}_ADDR": address}
    return env


def _protocol(port: Manifest) -> str:
    return str(port.get("protocol") or "TCP").lower()


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
