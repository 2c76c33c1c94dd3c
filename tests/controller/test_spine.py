"""One pass of the spine: nothing is done that was not reported."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.planner import builders
from tfyard import planner
from tfyard.controller.spine import reconcile
from tfyard.model import Observed


class Refusing:
    """A place that stores no status."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    async def report(self, *_: Any) -> None:
        raise ConnectionError("nobody stores this")

    async def observe(self, _: Any) -> Observed:
        return Observed()

    async def apply(self, _: Any, actions: Any) -> None:
        self.made += actions


async def test_a_pass_whose_status_is_refused_does_nothing() -> None:
    place = Refusing()
    asked = builders.job(builders.workers(3))
    with pytest.raises(ConnectionError):
        await reconcile(asked, place, place, planner.Site(), datetime.now(UTC))
    assert place.made == []
