"""The events of a TFJob and of its pods."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from tfyard.kube import Kind, requests, sync_lists
from tfyard.kube.sync import SyncClient
from tfyard.model import Job
from tfyard.model.summary import RecordedEvent
from tfyard.overview.job_view import ToldEvent
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.views.objects import LONG_AGO, EventView
from tfyard.views.pods import PodView

EVENTS = requests.EVENTS
_EVENTS = Kind(EventView)


class _Subjects(Struct, frozen=True, kw_only=True):
    """Objects whose events belong to a job."""

    job: str
    pods: set[str]
    """Names of its pods, because pods may be gone."""
    uids: set[str]
    """Uids of the job, and of its pods that exist."""
    since: datetime | None
    """Creation time of the job; None: pods of others have names of its pods, so only uids count."""

    def include(self, event: EventView) -> bool:
        about = event.involved_object
        if about.uid in self.uids:
            return True
        if about.kind.lower() == "tfjob":
            return about.name == self.job and not about.uid
        if about.kind != "Pod" or about.name not in self.pods or self.since is None:
            return False
        return not about.uid or event.at is None or event.at >= self.since


def events(
    client: SyncClient, tfjob: StoredTFJob, job: Job | None, pods: Iterable[PodView]
) -> list[ToldEvent]:
    """Events of the job and of its pods, oldest first. `pods`: those that exist."""
    summary = tfjob.summary
    subjects = _Subjects(
        job=tfjob.name,
        pods={f"{tfjob.name}-{task.name}" for task in job.tasks()} if job else set(),
        uids={tfjob.uid, *(pod.metadata.uid for pod in pods)},
        since=None if summary.status.waits_for_names else summary.created,
    )
    listed = sync_lists.list_all(client, _EVENTS, EVENTS.path(tfjob.namespace))
    own = filter(subjects.include, listed)
    return [_told_event(each) for each in sorted(own, key=lambda each: each.order)]


def _told_event(event: EventView) -> ToldEvent:
    about = event.involved_object
    recorded = RecordedEvent(
        type="Warning" if event.type == "Warning" else "Normal",
        reason=event.reason,
        message=event.message,
        at=event.at or LONG_AGO,
        count=(event.series.count if event.series else event.count) or 1,
    )
    return ToldEvent(event=recorded, about=f"{about.kind}/{about.name}")
