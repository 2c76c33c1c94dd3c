"""One pass of the spine: nothing is done that was not reported, and no time is forgotten."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.planner import builders
from tfyard import planner
from tfyard.backends.base import Halt
from tfyard.model import Observed
from tfyard.spine import reconcile


class Place:
    def __init__(self) -> None:
        self.made: list[Any] = []

    async def report(self, *_: Any) -> None:
        pass

    async def observe(self, _: Any) -> Observed:
        return Observed()

    async def apply(self, _: Any, actions: Any) -> None:
        self.made += actions


class Refusing(Place):
    async def report(self, *_: Any) -> None:
        raise ConnectionError("nobody stores this")


class Full(Place):
    async def apply(self, *_: Any) -> None:
        raise Halt("no room")


async def test_a_pass_whose_status_is_refused_does_nothing() -> None:
    place = Refusing()
    asked = builders.job(builders.workers(3))
    with pytest.raises(ConnectionError):
        await reconcile(asked, place, place, planner.Site(), datetime.now(UTC))
    assert place.made == []


async def test_a_pass_that_could_not_do_everything_still_says_when_time_is_up() -> None:
    place, asked = Full(), builders.job(builders.workers(3), deadline=60)
    with pytest.raises(Halt) as halted:
        await reconcile(asked, place, place, planner.Site(), datetime.now(UTC))
    assert halted.value.wake_after == pytest.approx(61, abs=1)
