"""The trials of a sweep as TFJobs: their manifests, what they say of themselves, and the metrics in their logs."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import ceil

import msgspec
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import NotPossible, TfyardError
from tfyard.formats.sweepfile.filling import as_trial
from tfyard.formats.tfjob import edits
from tfyard.kube import (
    AlreadyExists,
    Forbidden,
    NotFound,
    Refused,
    Request,
    ServerFault,
    Transient,
    requests,
    sync_lists,
)
from tfyard.kube.decoding import decode
from tfyard.kube.requests import FIELD_MANAGER, TFJOBS
from tfyard.kube.sync import ANYTHING, SyncClient
from tfyard.logs.lines import Lines, LogEvent, Start
from tfyard.logs.position import Gone, LogPosition
from tfyard.logs.splitting import Splitter, new_lines
from tfyard.model import TENSORFLOW_CONTAINER, Job, Manifest, tensorflow_container
from tfyard.model.names import QUEUE_NAME, SWEEP, TRIAL, VALUES, pod_name
from tfyard.model.sweep import TRIAL_ACTIVE, TRIAL_DONE, SweepSpec, SweepState, Trial, TrialOf, trial_name
from tfyard.overview.metrics import LogRows, Point, from_row
from tfyard.planner.leaders import deciding_task, leading_role
from tfyard.remote.acting import actions
from tfyard.remote.reading import views
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.sweeps.driver import CannotGoOn
from tfyard.sweeps.observing import TrialSeen, seen

from .saving import SweepStore
from .store import SweepObject

PARALLEL = 4
"""Trials at once, where the sweep does not say."""
LAST = trial_name("", 999, 99)
"""The longest end of the name of a trial's job."""
PATIENCE = 60.0
"""Seconds in which the log of a trial that has ended is asked for again, if its node does not answer, and in which
stopped trials may end."""


class CannotCreate(CannotGoOn):
    """The driver lacks a permission, or the namespace its quota: that is no fault of a trial."""


def labels(sweep: str) -> dict[str, str]:
    """Labels of everything that runs for a sweep."""
    return {SWEEP: sweep}


def trial_job(job: Job, state: SweepState, trial: Trial, now: datetime) -> Job:
    """The job of a trial. It does not outlive the sweep. Its pods stay when it has ended: they have its logs."""
    spec = state.spec
    of = TrialOf(
        sweep=f"{spec.name}-{state.created:%Y%m%d-%H%M%S}",  # a later sweep of this name has other folders
        number=trial.number,
        values=trial.values,
        attempt=trial.attempt,
    )
    own = as_trial(job, of)
    policy = own.run_policy
    left = None if state.due is None else max(1, ceil((state.due - now).total_seconds()))
    limits = [seconds for seconds in (policy.deadline, left) if seconds is not None]
    return replace(
        own,
        name=trial_name(spec.name, trial.number, trial.attempt),
        labels={**job.labels, **labels(spec.name), TRIAL: str(trial.number)},
        annotations={**job.annotations, VALUES: msgspec.json.encode(trial.values).decode()},
        run_policy=replace(
            policy,
            deadline=min(limits, default=None),
            clean="Running" if policy.clean == "All" else policy.clean,
        ),
    )


def manifest(job: Job, *owners: Manifest) -> Manifest:
    """The TFJob of a trial. The sweep owns it: it is deleted with the sweep."""
    document = formats.dump(job, "v1").document
    own = {"namespace": job.namespace, **({"ownerReferences": [*owners]} if owners else {})}
    return {**document, "metadata": {**document["metadata"], **own}}


def is_of(manifest: Manifest, sweep: SweepObject) -> bool:
    """Whether the TFJob is a trial of this very sweep, and of none before it with the same name."""
    owners = manifest["metadata"].get("ownerReferences") or []
    return any(each.get("uid") == sweep.metadata.uid for each in owners)


def listed(client: SyncClient, sweep: SweepObject, numbers: list[int] | None = None) -> Iterator[StoredTFJob]:
    """The trials that have a TFJob; of these numbers, or all of them."""
    selector = f"{SWEEP}={sweep.name}"
    selector += f",{TRIAL} in ({','.join(map(str, numbers))})" if numbers is not None else ""
    for page in sync_lists.pages(client, TFJOBS.path(sweep.namespace), {"labelSelector": selector}):
        answer = decode(ANYTHING, page)
        head = {"apiVersion": answer["apiVersion"], "kind": "TFJob"}
        yield from (StoredTFJob(TFJOBS, {**head, **each}) for each in answer["items"] if is_of(each, sweep))


def running(client: SyncClient, sweep: SweepObject) -> list[StoredTFJob]:
    """The trials that have neither ended nor been stopped, and those that wait in a queue of Kueue."""
    return [
        job
        for job in listed(client, sweep)
        if not job.summary.status.is_finished and (_is_queued(job) or not edits.is_suspended(job.manifest))
    ]


def _is_queued(job: StoredTFJob) -> bool:
    """Whether Kueue suspends the job while it waits, so that `suspend` does not say whether it was stopped."""
    return QUEUE_NAME in job.labels


def stop_all(client: SyncClient, sweep: SweepObject, but: Collection[str] = ()) -> list[str]:
    """Stops all trials that run, apart from `but`. Returns the names of those that were stopped."""
    others = [job for job in running(client, sweep) if job.name not in but]
    for job in others:
        with suppress(NotPossible):  # it has ended meanwhile
            _stop(client, job)
    return [job.name for job in others]


def _stop(client: SyncClient, job: StoredTFJob) -> None:
    """Stop one trial. Its pods stay, with their logs."""
    actions.perform(client, actions.stop(client, job, keeps_pods=True))


class TrialsOnCluster:
    look_every = 2.0

    def __init__(self, client: SyncClient, store: SweepStore, job: Job, spec: SweepSpec) -> None:
        self._client, self._store, self._job, self._spec = client, store, job, spec
        self._state: SweepState | None = None
        self._logs = dict[str, TrialLog]()
        self.parallel = spec.parallel or PARALLEL

    def save(self, state: SweepState) -> None:
        self._store.save(state)
        self._state = state

    def look(self, state: SweepState) -> Mapping[int, TrialSeen]:
        self._state = state
        active = {trial.number: trial for trial in state.trials if trial.state not in TRIAL_DONE}
        names = {self._name(trial): trial for trial in active.values()}
        self._logs = {name: log for name, log in self._logs.items() if name in names}
        jobs = listed(self._client, self._store.sweep, [*active]) if active else ()
        return {names[job.name].number: self._seen(names[job.name], job) for job in jobs if job.name in names}

    def stop_others(self, state: SweepState) -> None:
        """Stops what a driver that was killed should have stopped."""
        active = [trial for trial in state.trials if state.phase == "Running" and trial.state in TRIAL_ACTIVE]
        stop_all(self._client, self._store.sweep, {self._name(trial) for trial in active})

    def wait_for_others(self, state: SweepState) -> None:
        """Trials that were stopped have a grace period. Others start when it is over, so that there are never more
        at once than there should be."""
        end = time.monotonic() + PATIENCE
        while self._ending(state) and time.monotonic() < end:
            self._store.look()
            time.sleep(self.look_every)

    def _ending(self, state: SweepState) -> bool:
        """Whether programs run of trials that should not."""
        sweep = self._store.sweep
        active = {self._name(trial) for trial in state.trials if trial.state in TRIAL_ACTIVE}
        stopped = {job.name for job in listed(self._client, sweep)} - active
        pods = views.list_pods(self._client, sweep.namespace, requests.selecting(labels=labels(sweep.name)))
        return any(pod.job in stopped and not pod.is_over for pod in pods)

    def start(self, trial: Trial) -> None:
        assert self._state is not None  # it is saved, or looked at, before it starts
        job = trial_job(self._job, self._state, trial, datetime.now(UTC))
        wanted = manifest(job, self._store.sweep.owner)
        path = TFJOBS.path(self._store.sweep.namespace)
        try:
            self._client.send(requests.create(path, wanted, {"fieldManager": FIELD_MANAGER}))
        except AlreadyExists:
            self._require_ours(job.name)
        except Forbidden as problem:
            raise CannotCreate(f"{job.name} cannot be created: {problem}") from problem
        except Transient as problem:
            raise CannotGoOn(str(problem)) from problem

    def is_asked_to_stop(self) -> bool:
        return self._store.look().is_asked_to_stop

    def stop(self, trial: Trial) -> None:
        path = TFJOBS.path(self._store.sweep.namespace, self._name(trial))
        try:
            job = StoredTFJob(TFJOBS, self._client.send(requests.get(path)))
        except NotFound:
            return
        _stop(self._client, job)

    def _name(self, trial: Trial) -> str:
        return trial_name(self._spec.name, trial.number, trial.attempt)

    def _require_ours(self, name: str) -> None:
        try:
            there = self._client.send(requests.get(TFJOBS.path(self._store.sweep.namespace, name)))
        except NotFound:
            there = {"metadata": {}}
        if not is_of(there, self._store.sweep):
            raise TfyardError(f"there is another TFJob {name}; `tfyard delete {name}` removes it")

    def _seen(self, trial: Trial, job: StoredTFJob) -> TrialSeen:
        summary = job.summary
        log = self._logs.setdefault(job.name, TrialLog(self._job, job))
        is_known = summary.status.start_time is None or log.read(self._client)
        now = seen(summary, log.points, self._spec.objective, trial.attempt)
        if not log.points:  # the pod is gone: the curve of an earlier look counts
            now = replace(now, curve=trial.curve)
        if now.phase != "Running":
            return now if is_known or log.is_given_up(now.ended) else replace(now, phase="Running")
        return replace(now, phase="Stopped") if self._is_stopped(trial, job) else now

    def _is_stopped(self, trial: Trial, job: StoredTFJob) -> bool:
        """Whether the job was stopped, and none of its pods runs."""
        if not edits.is_suspended(job.manifest) or (_is_queued(job) and trial.state != "Pruning"):
            return False
        return not any(not pod.is_over for pod in views.pods(self._client, job))


class TrialLog:
    """The metrics in the log of the task that decides a trial. Each look reads on from the last one."""

    def __init__(self, job: Job, tfjob: StoredTFJob) -> None:
        task, role = deciding_task(job), leading_role(job)
        self._task = task.name if task else ""
        pod = pod_name(tfjob.name, task) if task else ""
        self._path = requests.PODS.path(tfjob.namespace, pod, "log")
        trains = tensorflow_container(role.template) if role else {}
        self._container = str(trains.get("name") or TENSORFLOW_CONTAINER)
        self._position, self._rows, self._is_after_gap = LogPosition(), LogRows(), False
        self.points = list[Point]()

    def read(self, client: SyncClient) -> bool:
        """Reads the new lines. Returns False if the node of the pod does not answer."""
        query = {"container": self._container, "timestamps": "true"}
        try:
            since = self._position.reopen(after_gap=self._is_after_gap)
            self._is_after_gap = False
            self._take(client, requests.get(self._path, {**query, **({"sinceTime": since} if since else {})}))
        except Gone:  # the log was rotated, or is that of another pod
            self._is_after_gap = True
        except Forbidden:
            raise
        except Refused:  # there is no pod, or its program has not started
            return True
        except ServerFault:
            return False
        return True

    def is_given_up(self, ended: datetime | None) -> bool:
        return ended is None or (datetime.now(UTC) - ended).total_seconds() > PATIENCE

    def _take(self, client: SyncClient, request: Request) -> None:
        splitter, start = Splitter(), Start(self._task)
        for chunk in client.chunks(request):
            self._note(new_lines(start, self._position, splitter.feed(chunk)))
        self._note(new_lines(start, self._position, splitter.close()))

    def _note(self, events: Sequence[LogEvent]) -> None:
        rows = (row for each in events if isinstance(each, Lines) for row in self._rows.of(each))
        self.points += map(from_row, rows)
