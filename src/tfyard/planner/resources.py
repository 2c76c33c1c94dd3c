"""How much the first pods of a job need: gang schedulers check the sum before they start any of them."""

from collections import defaultdict
from decimal import ROUND_CEILING, Decimal

from tfyard.model import Job, Manifest, Role
from tfyard.model.quantity import amount

Sums = dict[str, Decimal]


def of_first(job: Job, members: int) -> dict[str, str]:
    """Roles in the order of the job: upstream sorts by PriorityClass, but never reads the priority of one.
    A value that is not a quantity counts as 0: the API server will reject the pods for it."""
    total: Sums = defaultdict(Decimal)
    left = members
    for role in job.roles:
        count = min(left, role.replicas)
        left -= count
        for name, needed in _needs(role).items():
            total[name] += count * needed
    return {name: _text(total[name]) for name in sorted(total) if total[name] > 0}


def _needs(role: Role) -> Sums:
    """What one pod needs: the requests of each container, and its limits where it requests nothing."""
    total: Sums = defaultdict(Decimal)
    containers: list[Manifest] = (role.template.get("spec") or {}).get("containers") or []
    for container in containers:
        asked = container.get("resources") or {}
        for name, text in {**(asked.get("limits") or {}), **(asked.get("requests") or {})}.items():
            total[name] += amount(text) or 0
    return total


def _text(total: Decimal) -> str:
    """Whole, or in thousandths; finer values are rounded up as the API server does."""
    if total == total.to_integral_value():
        return f"{total:.0f}"
    return f"{(total * 1000).to_integral_value(ROUND_CEILING):.0f}m"
