"""How much the first pods of a job need: gang schedulers look at the sum before they let one start."""

import re
from collections import defaultdict
from decimal import ROUND_CEILING, Decimal

from tfyard.model import Job, Manifest, Role

_SUFFIXES = {
    "": Decimal(1),
    **{
        suffix: Decimal(10) ** power
        for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)([numkMGTPE]|[KMGTPE]i|)")
_LARGEST = Decimal(2**63 - 1)
"""Where Kubernetes itself stops counting; `1e900000` written out would fill pages."""

Sums = dict[str, Decimal]


def of_first(job: Job, members: int) -> dict[str, str]:
    """Roles in the order of the job: upstream sorts by PriorityClass, but never learns what those are worth.
    What is no quantity counts nothing: the server will say so of the pods."""
    total: Sums = defaultdict(Decimal)
    left = members
    for role in job.roles:
        count = min(left, role.replicas)
        left -= count
        for name, amount in _needs(role).items():
            total[name] += count * amount
    return {name: _text(amount) for name, amount in sorted(total.items()) if amount > 0}


def _needs(role: Role) -> Sums:
    """What one pod asks for: by container its requests, and its limits where it requests nothing."""
    total: Sums = defaultdict(Decimal)
    containers: list[Manifest] = (role.template.get("spec") or {}).get("containers") or []
    for container in containers:
        asked = container.get("resources") or {}
        for name, text in {**(asked.get("limits") or {}), **(asked.get("requests") or {})}.items():
            total[name] += _amount(text)
    return total


def _amount(text: object) -> Decimal:
    match = _QUANTITY.fullmatch(str(text).strip())
    try:
        return min(Decimal(match[1]), _LARGEST) * _SUFFIXES[match[2]] if match else Decimal(0)
    except ArithmeticError:
        return Decimal(0)


def _text(amount: Decimal) -> str:
    """Whole, or in thousandths; finer ones are rounded up as the server does."""
    if amount == amount.to_integral_value():
        return f"{amount:.0f}"
    return f"{(amount * 1000).to_integral_value(ROUND_CEILING):.0f}m"
