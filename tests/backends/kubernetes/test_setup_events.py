"""What the events of a pod say about its volumes: the newest one counts."""

from datetime import UTC, datetime, timedelta

import pytest

from tfyard.backends.kubernetes.setup_events import _last_word
from tfyard.model import Wait, WaitReason
from tfyard.model.summary import RecordedEvent

START = datetime(2026, 1, 1, tzinfo=UTC)
SILENT = Wait("Mount", "", START)


def event(reason: str, seconds: float) -> RecordedEvent:
    return RecordedEvent(reason=reason, message=f"said {reason}", at=START + timedelta(seconds=seconds))


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
