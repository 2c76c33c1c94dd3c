"""What containers and the machine use: CPU as a mean of the last seconds, memory as it is now."""

import time

from tfyard.node.memory import MachineMeter, RecentUse, Use


def test_cpu_is_a_mean_over_the_window_and_memory_is_the_last() -> None:
    recent = RecentUse(10)
    recent.add({"a": Use(4.0, 1)}, 0.0)
    recent.add({"a": Use(1.0, 100), "b": Use(0.5, 7)}, 6.0)
    recent.add({"a": Use(2.0, 300), "b": Use(1.5, 9)}, 8.0)
    assert recent.of("b") == (Use((0.5 * 6 + 1.5 * 2) / 8, 9), 8.0), "weighted by time"
    assert recent.of("a") == (Use((4.0 * 1 + 1.0 * 6 + 2.0 * 2) / 9, 300), 9.0)
    recent.add({"a": Use(2.0, 200)}, 12.0)
    assert recent.of("a") == (Use((1.0 * 6 + 2.0 * 2 + 2.0 * 4) / 12, 200), 12.0), "the first is too old"


def test_what_has_ended_or_was_never_there_uses_nothing() -> None:
    recent = RecentUse(10)
    assert recent.of("a") is None
    recent.add({"a": Use(1.0, 1)}, 0.0)
    recent.add({}, 1.0)
    assert recent.of("a") is None


def test_the_machine_is_busy_when_a_process_is() -> None:
    meter, end = MachineMeter(), time.process_time() + 0.3
    before = time.monotonic()
    while time.process_time() < end:
        continue
    seconds = time.monotonic() - before
    use = meter.measure()
    assert use.cpus * seconds >= 0.2, "clock ticks are coarse"
    assert use.memory > 1 << 20
