"""Requests and limits of containers as the downward API tells them: whole numbers of a unit. Pure."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal

from tfyard.model import Manifest
from tfyard.model.quantity import amount
from tfyard.node.containers import ContainerConfigError

LIMITED_BY_NODE = ("cpu", "memory", "ephemeral-storage")


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
