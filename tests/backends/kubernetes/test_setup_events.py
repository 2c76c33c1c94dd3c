"""What the events of a pod say about its volumes: the newest one counts."""

from datetime import UTC, datetime, timedelta

import pytest

from tfyard.backends.kubernetes.setup_events import _last_word
from tfyard.model import Wait, WaitReason
from tfyard.overview.objects import Event, Meta

START = datetime(2026, 1, 1, tzinfo=UTC)
SILENT = Wait("Mount", "", START)


def event(reason: str, seconds: float, version: str = "") -> Event:
    at = START + timedelta(seconds=seconds)
    return Event(
        metadata=Meta(resource_version=version), reason=reason, message=f"said {reason}", last_timestamp=at
    )


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
