"""The events of a TFJob and of its pods."""

import msgspec
from msgspec import Struct

from tfyard.kube import requests, sync_lists
from tfyard.kube.decoding import decode
from tfyard.kube.sync import SyncClient
from tfyard.model import Job
from tfyard.model.summary import RecordedEvent
from tfyard.overview.job_view import ToldEvent
from tfyard.overview.objects import LONG_AGO, Event

from .jobs import Found

EVENTS = requests.EVENTS


class _Events(Struct, frozen=True):
    items: list[Event] = []


_EVENTS = msgspec.json.Decoder(_Events)


def events(client: SyncClient, found: Found, job: Job | None) -> list[ToldEvent]:
    """Of the job and of its pods, oldest first. Pods may be gone, so they are known by their names."""
    names = {f"{found.name}-{task.name}" for task in job.tasks()} if job else set[str]()
    answers = sync_lists.pages(client, EVENTS.path(found.namespace))
    told = [
        each for answer in answers for each in decode(_EVENTS, answer).items if _is_of(each, found, names)
    ]
    told.sort(key=lambda each: each.order)
    return [_told(each) for each in told]


def _is_of(event: Event, found: Found, pods: set[str]) -> bool:
    about = event.involved_object
    is_job = about.kind.lower() == "tfjob" and about.name == found.name
    return is_job or (about.kind == "Pod" and about.name in pods)


def _told(event: Event) -> ToldEvent:
    about = event.involved_object
    recorded = RecordedEvent(
        type="Warning" if event.type == "Warning" else "Normal",
        reason=event.reason,
        message=event.message,
        at=event.at or LONG_AGO,
        count=(event.series.count if event.series else event.count) or 1,
    )
    return ToldEvent(event=recorded, about=f"{about.kind}/{about.name}")
