"""One pass of the spine: whatever goes wrong in it, it is over when it says so."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.planner import builders
from tfyard import planner
from tfyard.controller.spine import reconcile
from tfyard.model import Observed


class Refusing:
    """A place that stores no status, and takes its time to make things."""

    def __init__(self) -> None:
        self.made = 0

    async def report(self, *_: Any) -> None:
        raise ConnectionError("nobody stores this")

    async def observe(self, _: Any) -> Observed:
        return Observed()

    async def apply(self, _: Any, actions: Any) -> None:
        for _ in actions:
            await asyncio.sleep(0.01)
            self.made += 1


async def test_a_first_pass_whose_status_is_refused_leaves_nothing_under_way() -> None:
    """Its pods are made beside the status write; the next pass must not begin before that is over."""
    place = Refusing()
    asked = builders.job(builders.workers(3))
    with pytest.raises(ConnectionError):
        await reconcile(asked, place, place, planner.Site(), datetime.now(UTC))
    made = place.made
    await asyncio.sleep(0.2)
    assert made == place.made
