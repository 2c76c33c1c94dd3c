"""One pass of the spine: nothing is done that was not reported, and no time is forgotten."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.planner import builders
from tfyard import planner
from tfyard.model import Observed, Outcome
from tfyard.spine import reconcile


class Backend:
    def __init__(self) -> None:
        self.made: list[Any] = []

    async def report(self, *_: Any) -> None:
        pass

    async def observe(self, _: Any) -> Observed:
        return Observed()

    async def apply(self, _: Any, actions: Any) -> Outcome:
        self.made += actions
        return Outcome(done=tuple(actions))


class Refusing(Backend):
    async def report(self, *_: Any) -> None:
        raise ConnectionError("nobody stores this")


class Full(Backend):
    async def apply(self, *_: Any) -> Outcome:
        return Outcome(error="no room")


async def test_a_pass_whose_status_is_refused_does_nothing() -> None:
    backend = Refusing()
    asked = builders.job(builders.workers(3))
    with pytest.raises(ConnectionError):
        await reconcile(asked, backend, backend, planner.Site(), datetime.now(UTC))
    assert backend.made == []


async def test_a_pass_that_could_not_do_everything_still_says_when_time_is_up() -> None:
    backend, asked = Full(), builders.job(builders.workers(3), deadline=60)
    decision, outcome = await reconcile(asked, backend, backend, planner.Site(), datetime.now(UTC))
    assert outcome.retry == "no room"
    assert decision.wake_after == pytest.approx(61, abs=1)
