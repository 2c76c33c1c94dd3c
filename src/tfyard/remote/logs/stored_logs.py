"""The logs of a job's tasks as they are now, task after task; follow.py goes on with them."""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from tfyard import formats
from tfyard.kube import NotFound, Refused, Transient
from tfyard.kube.sync import BACKOFF, SyncClient
from tfyard.logs import remarks
from tfyard.logs.lines import LogEvent, LogSelection, Remark, Start
from tfyard.logs.position import Gone, LogPosition
from tfyard.logs.splitting import Splitter, new_lines
from tfyard.model import Ending, Status
from tfyard.planner.results import fates
from tfyard.remote.logs.pod_starts import (
    LogRequest,
    endings,
    failed_ends,
    first_request,
    has_log,
    present,
    start_of,
)
from tfyard.remote.reading import views
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.reading.refusals import VIEW, explained
from tfyard.views.pods import PodView
from tfyard.views.program import waits_for

ATTEMPTS = 6


def read(client: SyncClient, tfjob: StoredTFJob, wanted: LogSelection) -> Iterator[LogEvent]:
    """Raises Forbidden with the permission that is missing."""
    with explained(tfjob.namespace, VIEW):
        yield from _read(client, tfjob, wanted)


def _read(client: SyncClient, tfjob: StoredTFJob, wanted: LogSelection) -> Iterator[LogEvent]:
    pods = {pod.task: pod for pod in views.pods(client, tfjob)}
    wanted = since_restart(wanted, pods.values())
    remembered = tfjob.summary.status.endings
    for task in wanted.tasks:
        pod = pods.get(task)
        starts = _starts(pod, task, remembered, wanted)
        for start in starts:
            yield from _one(client, tfjob, pod, start, wanted)
        if not starts:
            yield _nothing(tfjob, task, pod, wanted)
        if pod and pod.is_up:
            yield from (remarks.of_sidecar(present(pod), *each) for each in failed_ends(pod))


def _starts(
    pod: PodView | None, task: str, remembered: Sequence[Ending], wanted: LogSelection
) -> list[Start]:
    """Starts that are asked for, oldest first; without --attempt, the last one."""
    known = {start_of(each) for each in remembered if each.task == task}
    if pod:
        known |= {start_of(each) for each in endings(pod)}
        known |= {present(pod)} if has_log(pod) else set()
    fitting = sorted(start for start in known if wanted.includes(start))
    return fitting if wanted.all_attempts or wanted.attempt is not None else fitting[-1:]


def _one(
    client: SyncClient, tfjob: StoredTFJob, pod: PodView | None, start: Start, wanted: LogSelection
) -> Iterator[LogEvent]:
    ending = _ending(start, (*tfjob.summary.status.endings, *(endings(pod) if pod else ())))
    if pod is None or not _has_log(pod, start):
        yield remarks.stored(start, ending) if ending else remarks.gone(start)
        return
    if start.container:
        yield remarks.of_init_container(start, ending)
    try:
        lines = read_log(client, tfjob.namespace, start, first_request(pod, start, wanted))
        yield from remarks.unless_removed(lines, start, ending)
    except NotFound:  # deleted meanwhile, or a container that the kubelet has removed
        yield remarks.stored(start, ending) if ending else remarks.gone(start)
    except Refused as problem:
        if problem.status.code != 400:
            raise
        yield (
            remarks.stored(start, ending)
            if ending
            else Remark(kind="waiting", text=str(problem), start=start)
        )
    if wanted.all_attempts and ending:
        yield remarks.ended(start, ending)


def read_log(client: SyncClient, namespace: str, start: Start, request: LogRequest) -> Iterator[LogEvent]:
    """Reads on after the last line if the connection breaks."""
    position, backoff, is_after_gap = LogPosition(is_cut=request.tail is not None), BACKOFF, False
    while True:
        try:
            if since := position.reopen(after_gap=is_after_gap):
                request = replace(request, since=since, tail=None)
            for lines in _batches(client, request, namespace):
                yield from new_lines(start, position, lines)
        except Gone:
            is_after_gap = True
            yield remarks.missed(start, position.last, "the log was rotated")
        except Transient:
            backoff = backoff.next()
            if backoff.failures == ATTEMPTS:
                raise
            time.sleep(backoff.delay(random.random()))
        else:
            return


def _batches(client: SyncClient, request: LogRequest, namespace: str) -> Iterator[list[bytes]]:
    splitter = Splitter()
    for chunk in client.chunks(request.at(namespace)):
        yield splitter.feed(chunk)
    yield splitter.close()


def _has_log(pod: PodView, start: Start) -> bool:
    """A kubelet keeps the present run of a container and the one before it."""
    now = present(pod)
    is_same = (start.attempt, start.container) == (now.attempt, now.container)
    return is_same and now.restart - start.restart in (0, 1)


def fate(tfjob: StoredTFJob, status: Status, task: str) -> str:
    """What became of a task whose job has ended; empty: that is not known."""
    job = formats.check(tfjob.manifest).job
    return fates(job, status).get(task, "") if job else ""


def _nothing(tfjob: StoredTFJob, task: str, pod: PodView | None, wanted: LogSelection) -> Remark:
    if wanted.attempt is not None:
        text = f"nothing is known of attempt {wanted.attempt}"
        return Remark(kind="gap", text=text, start=Start(task))
    if pod is None and (known := fate(tfjob, tfjob.summary.status, task)):
        return remarks.gone(Start(task), known)
    text = f"has not started: {waits_for(pod)}" if pod else "has no pod, and nothing is remembered of one"
    return Remark(kind="waiting", text=text, start=Start(task))


def since_restart(wanted: LogSelection, pods: Iterable[PodView]) -> LogSelection:
    """For --since restart, the logs since the last restart of a task."""
    if not wanted.since_restart:
        return wanted
    return replace(wanted, since=max(filter(None, map(_restarted_at, pods)), default=None))


def _restarted_at(pod: PodView) -> datetime | None:
    start, state = present(pod), pod.program.state
    if (start.attempt, start.restart) == (1, 0):
        return None
    begun = state.running or state.terminated
    return begun.started_at if begun else None


def _ending(start: Start, known: Iterable[Ending]) -> Ending | None:
    return next((each for each in known if start_of(each) == start), None)
