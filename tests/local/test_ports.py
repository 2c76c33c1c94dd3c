"""Ports for tasks."""

from tfyard.local.ports import FIRST, LAST, PortPool
from tfyard.model import Task

EPHEMERAL = 32_768
"""Where Linux begins to choose ports for clients, by default."""


def test_ports_lie_below_the_ephemeral_range_and_are_given_once() -> None:
    one, two = PortPool(), PortPool()
    tasks = [Task("Worker", i) for i in range(20)]
    first, second = one.take(tasks), two.take(tasks)
    everything = [*first.values(), *second.values()]
    assert len(set(everything)) == 40
    assert all(FIRST <= port < LAST <= EPHEMERAL for port in everything)
    one.release()
    two.release()
