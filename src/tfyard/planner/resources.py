"""How much the first pods of a job need: gang schedulers look at the sum before they let one start."""

from collections import defaultdict
from decimal import ROUND_CEILING, Decimal

from tfyard.model import Job, Manifest, Role
from tfyard.model.quantity import amount

Sums = dict[str, Decimal]


def of_first(job: Job, members: int) -> dict[str, str]:
    """Roles in the order of the job: upstream sorts by PriorityClass, but never learns what those are worth.
    What is no quantity counts nothing: the server will say so of the pods."""
    total: Sums = defaultdict(Decimal)
    left = members
    for role in job.roles:
        count = min(left, role.replicas)
        left -= count
        for name, needed in _needs(role).items():
            total[name] += count * needed
    return {name: _text(total[name]) for name in sorted(total) if total[name] > 0}


def _needs(role: Role) -> Sums:
    """What one pod asks for: by container its requests, and its limits where it requests nothing."""
    total: Sums = defaultdict(Decimal)
    containers: list[Manifest] = (role.template.get("spec") or {}).get("containers") or []
    for container in containers:
        asked = container.get("resources") or {}
        for name, text in {**(asked.get("limits") or {}), **(asked.get("requests") or {})}.items():
            total[name] += amount(text) or 0
    return total


def _text(total: Decimal) -> str:
    """Whole, or in thousandths; finer ones are rounded up as the server does."""
    if total == total.to_integral_value():
        return f"{total:.0f}"
    return f"{(total * 1000).to_integral_value(ROUND_CEILING):.0f}m"
