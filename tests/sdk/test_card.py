"""The card of a run: everything that others wrote is escaped."""

from datetime import UTC, datetime

from tfyard.model import Condition, RoleStatus, Status
from tfyard.model.summary import JobSummary
from tfyard.overview.evidence import Evidence
from tfyard.overview.metrics import Point
from tfyard.sdk import card
from tfyard.sdk.on_machine import OnMachine

EVIL = "<script>alert('&')</script>"


class Stored(OnMachine):
    """With what a test stores instead of a disk."""

    def __init__(self, status: Status, points: list[Point]) -> None:
        self.name, self._status, self._points = EVIL, status, points

    def summary(self) -> JobSummary:
        return JobSummary(name=EVIL, namespace=EVIL, job="a", created=datetime.now(UTC), status=self._status)

    def points(self, tasks: tuple[str, ...]) -> list[Point]:  # noqa: ARG002
        return self._points

    def evidence(self) -> Evidence:
        return Evidence(name=EVIL, created=datetime.now(UTC), status=self._status)


def test_nothing_that_others_wrote_is_markup() -> None:
    failed = Status(
        phase="Failed",
        conditions=(Condition("Failed", "True", message=EVIL),),
        replica_statuses={EVIL: RoleStatus(ready=EVIL)},
    )
    points = [Point(at=float(step), task=EVIL, values={EVIL: 1 / step}, step=step) for step in (1, 2, 3)]
    shown = card.html(Stored(failed, points))
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") >= 4
    assert "<polyline" in shown


def test_a_curve_without_numbers_is_not_drawn() -> None:
    points = [Point(at=1.0, task="worker-0", values={"loss": float("nan")}, step=step) for step in (1, 2)]
    assert "<svg" not in card.html(Stored(Status(phase="Running"), points))
