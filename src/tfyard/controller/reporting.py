"""Reports about the operator's work: metrics, events and logs."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from tfyard import kube, planner
from tfyard.backends.kubernetes.events import EventRecorder
from tfyard.model import Decision, Event, Job, Manifest, Outcome, Status, shortened
from tfyard.model.backoff import Backoff

from .metrics import Metrics

log = logging.getLogger(__name__)

WATCH_RETRY = Backoff(first=0.5, longest=10.0, jitter=0.5)
"""The back-off of watches is short: jobs wait for them, and an operator has so few that they do no harm to an
apiserver that restarts."""
DENIED = (kube.Unauthorized, kube.Forbidden, kube.NotFound)
"""Answers to a watch that stay the same until an administrator changes something; they are logged once."""
EXPECTED = {"NamespaceTerminating"}
"""Causes for which a refused event is not a problem."""


RETELL = 180.0
"""Seconds after the end of a job during which an operator that starts tells it again: the one that wrote the
status may have been killed before it could. A standby becomes the leader sooner; and a start must cost little."""


class Reporter:
    def __init__(self, metrics: Metrics, events: EventRecorder, clock: Callable[[], datetime]) -> None:
        self._metrics, self._events, self._clock = metrics, events, clock
        self._stalled = set[str]()
        metrics.stalled_jobs.set_function(self._stalled.__len__)

    def status_reported(self, job: Job, before: Status, decision: Decision) -> None:
        """Count a status and record its events, after the status itself was stored."""
        self._metrics.count_status(job, before, decision.status)
        (self._stalled.add if decision.status.has("Stalled") else self._stalled.discard)(job.uid)
        end = decision.status.completion_time
        events = self._retold(job, before) if before.is_finished else decision.events
        for event in events:
            self._events.record(job, event, str(end or ""))

    def actions_done(self, job: Job, outcome: Outcome) -> None:
        self._metrics.count_actions(job, outcome.done)
        for event in planner.narrate(outcome.done):
            self._events.record(job, event, " ".join(sorted(outcome.uids)))

    def forget(self, uid: str) -> None:
        self._stalled.discard(uid)

    def event(self, job: Job, event: Event) -> None:
        self._events.record(job, event)

    def _retold(self, job: Job, status: Status) -> Iterable[Event]:
        end = status.completion_time
        is_recent = end is not None and self._clock() - end < timedelta(seconds=RETELL)
        return planner.tell_end(status) if is_recent and not planner.is_ignored(job, deleting=False) else ()


def log_lost_event(event: Manifest, problem: kube.KubeError) -> None:
    """Log an event that was refused; in a namespace that is being deleted that is no problem."""
    job = event["involvedObject"]
    is_expected = isinstance(problem, kube.Refused) and problem.causes & EXPECTED
    level = logging.DEBUG if is_expected else logging.WARNING
    text = "cannot create event %s of %s/%s: %s"
    log.log(level, text, event["reason"], job["namespace"], job["name"], shortened(str(problem)))


def watch_options(metrics: Metrics, resource: str) -> kube.WatchOptions:
    """Options of watches that retry for ever, and log it. The counter is there from the start: `increase` does not
    see the first value of one that appears."""
    metrics.watch_restarts.labels(resource)
    return kube.WatchOptions(
        backoff=WATCH_RETRY, retry_first_list=True, on_interrupt=_on_interrupt(metrics, resource)
    )


def _on_interrupt(metrics: Metrics, resource: str) -> Callable[[kube.KubeError | None], None]:
    logged = ""

    def on_interrupt(problem: kube.KubeError | None) -> None:
        nonlocal logged
        metrics.watch_restarts.labels(resource).inc()
        before, logged = logged, str(problem or "")
        if problem is None or logged == before:
            return
        if isinstance(problem, DENIED):
            log.warning("cannot watch %s: %s (retrying)", resource, shortened(logged))
        else:
            log.info("watch on %s interrupted: %s (retrying)", resource, shortened(logged))

    return on_interrupt
