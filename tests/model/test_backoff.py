"""Back-off: none before a failure, then longer each time, up to a limit."""

from itertools import accumulate, repeat

from tfyard.model.backoff import Backoff

BACKOFF = Backoff(first=10, longest=600)


def test_delays_grow_up_to_the_longest() -> None:
    steps = accumulate(repeat(None, 8), lambda backoff, _: backoff.next(), initial=BACKOFF)
    assert [backoff.delay() for backoff in steps] == [0, 10, 20, 40, 80, 160, 320, 600, 600]


def test_a_stored_number_of_failures_gives_the_same_delay() -> None:
    assert Backoff(first=10, longest=600, failures=2) == BACKOFF.next().next()


def test_jitter_takes_off_up_to_its_share() -> None:
    backoff = Backoff(first=10, longest=600, jitter=0.5, failures=1)
    assert [backoff.delay(chance) for chance in (0.0, 0.5, 1.0)] == [10, 7.5, 5]


def test_any_number_of_failures_has_a_delay() -> None:
    assert Backoff(first=10, longest=600, failures=10**6).delay() == 600
