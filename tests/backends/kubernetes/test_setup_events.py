"""Waits by the events of a pod about its volumes: the newest one counts."""

from datetime import UTC, datetime, timedelta

import pytest

from tfyard.backends.kubernetes.setup_events import _last_word
from tfyard.model import Wait, WaitReason
from tfyard.views.metadata import ObjectMeta
from tfyard.views.objects import EventView

START = datetime(2026, 1, 1, tzinfo=UTC)
SILENT = Wait("Mount", "", START)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def event(reason: str, seconds: float, version: str = "") -> EventView:
    meta, at = ObjectMeta(resource_version=version), after(seconds)
    return EventView(metadata=meta, reason=reason, message=f"said {reason}", last_timestamp=at)


@pytest.mark.parametrize(
    ("reason", "word"),
    [("FailedMount", "Mount"), ("FailedAttachVolume", "Mount"), ("FailedCreatePodSandBox", "Start")],
)
def test_a_kubelet_that_cannot_set_up_a_pod_says_so_in_an_event(reason: str, word: WaitReason) -> None:
    assert _last_word(SILENT, [event("Scheduled", 0), event(reason, 5)]) == Wait(
        word, f"said {reason}", START
    )


def test_a_kubelet_that_has_come_further_has_overcome_what_it_said_before() -> None:
    assert _last_word(SILENT, [event("FailedMount", 5), event("Pulling", 9)]) is None
    assert _last_word(SILENT, []) is None


def test_events_of_an_earlier_pod_of_the_same_name_say_nothing() -> None:
    assert _last_word(SILENT, [event("FailedMount", -60)]) is None


def test_of_two_events_in_one_second_the_one_that_was_stored_last_is_the_newest() -> None:
    both = [event("Pulling", 5, "1042"), event("FailedMount", 5, "999")]
    assert _last_word(SILENT, both) is None
    assert _last_word(SILENT, [event("Pulling", 5, "999"), event("FailedMount", 5, "1042")]) is not None


def test_the_schedulers_finer_times_do_not_make_its_event_newer() -> None:
    """Events of a kubelet have whole seconds: a later one may seem earlier."""
    scheduled = EventView(
        metadata=ObjectMeta(resource_version="999"), reason="Scheduled", event_time=after(5.6)
    )
    assert _last_word(SILENT, [event("FailedMount", 5, "1042"), scheduled]) is not None
