"""What the nodes of a cluster have, and what the pods on them ask for: a row for each node."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from msgspec import Struct

from tfyard.model.quantity import amount
from tfyard.overview.wording import size
from tfyard.views.objects import NodeView
from tfyard.views.pods import PodDetails

COLUMNS = ("NODE", "STATE", "CPU", "MEMORY", "GPU", "PODS", "JOBS")
MOST_JOBS = 4
"""Names of jobs that are shown for a node; more are counted."""


class NodeUse(Struct, frozen=True, kw_only=True):
    name: str
    state: str
    """Ready, or why it takes no pods, in kubectl's words."""
    has: dict[str, Decimal]
    """Resource -> the amount that pods may ask for."""
    asked: dict[str, Decimal] | None = None
    """Resource -> the sum of what its pods ask for; None: pods may not be listed."""
    pods: int = 0
    jobs: tuple[str, ...] = ()


def uses(nodes: Iterable[NodeView], pods: Sequence[PodDetails] | None) -> list[NodeUse]:
    """`pods`: those that have a node and have not ended; None if they may not be listed."""
    return [_use(node, pods) for node in sorted(nodes, key=lambda each: each.name)]


def row(node: NodeUse) -> tuple[str, ...]:
    """Cells of COLUMNS: what is asked for, of what there is."""
    gpus = [name for name in node.has if name.endswith("/gpu")]
    jobs = ", ".join(node.jobs[:MOST_JOBS])
    more = f" and {len(node.jobs) - MOST_JOBS} more" if len(node.jobs) > MOST_JOBS else ""
    return (
        node.name,
        node.state,
        _share(node, ["cpu"], lambda value: f"{value:.1f}".removesuffix(".0")),
        _share(node, ["memory"], lambda value: size(float(value))),
        _share(node, gpus, lambda value: f"{value:g}"),
        "" if node.asked is None else str(node.pods),
        jobs + more,
    )


def _share(node: NodeUse, resources: Sequence[str], written: Callable[[Decimal], str]) -> str:
    has = sum((node.has.get(name, Decimal()) for name in resources), Decimal())
    if not has:
        return ""
    if node.asked is None:
        return written(has)
    return f"{written(sum((node.asked.get(name, Decimal()) for name in resources), Decimal()))} of {written(has)}"


def _use(node: NodeView, pods: Sequence[PodDetails] | None) -> NodeUse:
    has = {key: number for key, value in node.status.allocatable.items() if (number := amount(value))}
    here = [pod for pod in pods or () if pod.spec.node_name == node.name]
    return NodeUse(
        name=node.name,
        state=_state(node),
        has=has,
        asked=None if pods is None else _asked(here),
        pods=len(here),
        jobs=tuple(dict.fromkeys(f"{pod.metadata.namespace}/{pod.job}" for pod in here if pod.job)),
    )


def _asked(pods: Iterable[PodDetails]) -> dict[str, Decimal]:
    """Kubernetes takes limits for requests where those are missing."""
    requested: dict[str, Decimal] = {}
    for pod in pods:
        for container in pod.spec.containers:
            for name, value in {**container.resources.limits, **container.resources.requests}.items():
                requested[name] = requested.get(name, Decimal()) + (amount(value) or Decimal())
    return requested


def _state(node: NodeView) -> str:
    words = ["Ready" if node.is_ready else "NotReady"]
    words += [each.type for each in node.status.conditions if each.type != "Ready" and each.status == "True"]
    if node.spec.unschedulable:
        words.append("SchedulingDisabled")
    return ",".join(words)
