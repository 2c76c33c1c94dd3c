"""The line of the terminal that does what a button does."""

import shlex
from collections.abc import Sequence

from tfyard.dashboard.addresses import Address


def line(action: str, jobs: Sequence[Address], words: Sequence[str] = (), options: str = "") -> str:
    """`tfyard scale mnist worker=4 -n research`; several jobs must be of one namespace, or runs."""
    namespaces = {job.namespace for job in jobs}
    names = [job.title for job in jobs]
    where = [f"-n {shlex.quote(name)}" for name in namespaces if name]
    parts = ["tfyard", action, *map(shlex.quote, (*names, *words)), *where]
    return " ".join(parts) + (options if where else "")


def lines(action: str, jobs: Sequence[Address], words: Sequence[str] = (), options: str = "") -> list[str]:
    """One line for each namespace, and one for each action that takes one job only."""
    if action not in ("stop", "resume", "delete"):
        return [line(action, [job], words, options) for job in jobs]
    groups: dict[str, list[Address]] = {}
    for job in jobs:
        groups.setdefault(job.namespace, []).append(job)
    return [line(action, group, words, options) for group in groups.values()]
