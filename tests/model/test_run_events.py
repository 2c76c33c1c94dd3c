"""Events of a run, as `-o json` prints them."""

import msgspec
import pytest

from tfyard.model import run_events
from tfyard.model.run_events import RunEvent

NAMES = {"log", "skipped", "started", "ended", "metric", "phase", "over", "counts", "usage", "note"}
NAMES |= {"unfinished"}


def test_the_names_of_events_are_those_that_scripts_know() -> None:
    assert {kind.__struct_config__.tag for kind in RunEvent.__subclasses__()} == NAMES


@pytest.mark.parametrize(
    ("event", "row"),
    [
        (run_events.Log("worker-0", "hi"), {"event": "log", "task": "worker-0", "text": "hi"}),
        (run_events.ResourceUsage({"ps-0": (0.5, 9)}), {"event": "usage", "tasks": {"ps-0": (0.5, 9)}}),
    ],
)
def test_an_event_is_an_object_with_its_name(event: RunEvent, row: dict[str, object]) -> None:
    assert msgspec.to_builtins(event) == row
