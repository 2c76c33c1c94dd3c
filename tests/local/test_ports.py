"""Ports for tasks."""

from pathlib import Path

from tfyard.local.ports import FIRST, LAST, Ports
from tfyard.model import Task


def test_ports_lie_below_the_ephemeral_range_and_are_given_once() -> None:
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    one, two = Ports(), Ports()
    tasks = [Task("Worker", i) for i in range(20)]
    first, second = one.take(tasks), two.take(tasks)
    everything = [*first.values(), *second.values()]
    assert len(set(everything)) == 40
    assert all(FIRST <= port < LAST <= ephemeral for port in everything)
    one.release()
    two.release()
