"""What the operator says about its work: metrics, events and logs."""

import logging
from collections.abc import Callable, Iterable

from tfyard import kube, planner
from tfyard.backends.kubernetes.events import EventRecorder
from tfyard.model import Action, Decision, Event, Job, Manifest, Status
from tfyard.model.backoff import Backoff

from .metrics import Metrics

log = logging.getLogger(__name__)

WATCH_RETRY = Backoff(first=0.5, longest=10.0, jitter=0.5)
"""Jobs wait for the few watches that an operator has, and an apiserver that comes back can bear them."""
DENIED = (kube.Unauthorized, kube.Forbidden, kube.NotFound)
"""Answers to a watch that stay the same until a person does something; logged once."""
EXPECTED = {"NamespaceTerminating"}
"""Why events are refused without anybody having to care."""


class Reporter:
    def __init__(self, metrics: Metrics, events: EventRecorder) -> None:
        self._metrics, self._events = metrics, events

    def status_reported(self, job: Job, before: Status, decision: Decision) -> None:
        """After the status itself was stored."""
        self._metrics.count_status(job, before, decision.status)
        for event in decision.events:
            self.event(job, event)

    def actions_done(self, job: Job, done: Iterable[Action]) -> None:
        actions = list(done)
        self._metrics.count_actions(job, actions)
        for event in planner.narrate(actions):
            self.event(job, event)

    def event(self, job: Job, event: Event) -> None:
        self._events.record(job, event)


def log_lost_event(event: Manifest, problem: kube.KubeError) -> None:
    """A namespace that is being deleted accepts no events, which is nothing to worry about."""
    job = event["involvedObject"]
    is_expected = isinstance(problem, kube.Refused) and problem.causes & EXPECTED
    level = logging.DEBUG if is_expected else logging.WARNING
    text = "cannot create event %s of %s/%s: %s"
    log.log(level, text, event["reason"], job["namespace"], job["name"], problem)


def watch_options(metrics: Metrics, resource: str) -> kube.WatchOptions:
    """Watches retry for ever, and say so."""
    return kube.WatchOptions(
        backoff=WATCH_RETRY, retry_first_list=True, on_interrupt=_on_interrupt(metrics, resource)
    )


def _on_interrupt(metrics: Metrics, resource: str) -> Callable[[kube.KubeError | None], None]:
    logged = ""

    def on_interrupt(problem: kube.KubeError | None) -> None:
        nonlocal logged
        metrics.watch_restarts.labels(resource).inc()
        if isinstance(problem, DENIED):
            if logged != str(problem):
                log.warning("cannot watch %s: %s (retrying)", resource, problem)
        elif problem is not None:
            log.info("watch on %s interrupted: %s (retrying)", resource, problem)
        logged = str(problem)

    return on_interrupt
