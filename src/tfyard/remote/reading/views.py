"""A TFJob with its pods and events, as `describe` shows it."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from tfyard import formats
from tfyard.kube import Kind, KubeError, requests, sync_lists
from tfyard.kube.sync import SyncClient
from tfyard.model import Job, Status
from tfyard.model.names import JOB_NAME
from tfyard.overview.attempts import Attempt, failed, gone, merged, remembered
from tfyard.overview.job_view import EVENTS_UNREAD, FailedSidecar, JobView, outputs
from tfyard.planner.results import fates
from tfyard.remote.reading.events import events
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.views.pods import PodDetails, TimedCondition
from tfyard.views.program import ProgramRun, failed_sidecars, runs

PODS = Kind(PodDetails)


def view(client: SyncClient, tfjob: StoredTFJob) -> JobView:
    """The view names what may not be read, and shows the rest."""
    unreadable: list[str] = []
    checked = formats.check(tfjob.manifest)
    job = checked.job
    try:
        there = pods(client, tfjob)
    except KubeError as problem:
        there, unreadable = [], [*unreadable, f"pods: {problem}"]
    status = tfjob.summary.status
    seen = attempts_of_pods(job, status, there)
    try:
        recorded = events(client, tfjob, job, there)
    except KubeError as problem:
        recorded, unreadable = [], [*unreadable, f"{EVENTS_UNREAD}{problem}"]
    return JobView(
        summary=tfjob.summary,
        title=f"TFJob of {tfjob.manifest['apiVersion']}",
        job=job,
        problems=tuple(problem.message for problem in checked.errors),
        attempts=tuple(all_attempts(job, status, seen)),
        sidecars=tuple(each for pod in there for each in _sidecars(pod)),
        failed=failed(seen, status),
        events=tuple(recorded),
        outputs=tuple(outputs(job)) if job else (),
        unreadable=tuple(unreadable),
    )


# --- pods


def pods(client: SyncClient, tfjob: StoredTFJob) -> list[PodDetails]:
    """Pods of the tasks of this job."""
    of = requests.selecting(labels={JOB_NAME: tfjob.name})
    return [pod for pod in list_pods(client, tfjob.namespace, of) if pod.is_of(tfjob.uid)]


def list_pods(client: SyncClient, namespace: str, query: dict[str, str]) -> list[PodDetails]:
    """Pods of a namespace; of all without one."""
    return sync_lists.list_all(client, PODS, requests.PODS.path(namespace), query)


def attempts_of_pods(job: Job | None, status: Status, pods: Iterable[PodDetails]) -> list[Attempt]:
    fate_of_tasks = fates(job, status) if job else {}
    return [attempt for pod in pods for attempt in attempts_of(pod, fate_of_tasks)]


def all_attempts(job: Job | None, status: Status, seen: Sequence[Attempt]) -> list[Attempt]:
    """The attempts of all tasks: of pods, those that the status remembers, and those that only the end of the job
    tells of."""
    ended = remembered(status)
    others = gone(job, status, [*ended, *seen]) if job else []
    return merged(ended, [*seen, *others], [task.name for task in job.tasks()] if job else [])


def attempts_of(pod: PodDetails, fate_of_tasks: Mapping[str, str] | None = None) -> list[Attempt]:
    """The present run of the pod's program, and the one before it, if the kubelet restarted it in place.
    `fate_of_tasks`: of a job that has ended; how a task ended that was stopped tells nothing."""
    *before, present = [_attempt(pod, run) for run in runs(pod)]
    is_stopped = (fate_of_tasks or {}).get(
        pod.task
    ) == "Stopped" and pod.metadata.deletion_timestamp is not None
    return [*before, replace(present, state="Stopped") if is_stopped and present.finished else present]


def _attempt(pod: PodDetails, run: ProgramRun) -> Attempt:
    ended, running, restart = run.state.terminated, run.state.running, run.restart
    scheduled = pod.condition("PodScheduled") or TimedCondition()
    name = ("Preparing" if run.container else "Running") if running else "Waiting"
    refused = scheduled.reason if scheduled.status != "True" else ""
    return Attempt(
        task=pod.task,
        attempt=pod.attempt + 1,
        restart=restart,
        state=run.end or name,
        created=None if restart else pod.metadata.creation_timestamp,
        scheduled=None if restart or scheduled.status != "True" else scheduled.last_transition_time,
        started=ended.started_at if ended else running.started_at if running else None,
        finished=ended.finished_at if ended else None,
        exit_code=ended.exit_code if ended else None,
        container=run.container,
        reason=run.reason or refused,
        message=run.message,
        node=pod.spec.node_name,
    )


def _sidecars(pod: PodDetails) -> list[FailedSidecar]:
    """Sidecars that have failed; not those that a kubelet or the operator ended after the program."""
    if not pod.is_up:
        return []
    return [
        FailedSidecar(
            task=pod.task,
            container=status.name,
            restarts=status.restart_count,
            exit_code=end.exit_code,
            reason=end.reason,
            message=end.message,
        )
        for status, end in failed_sidecars(pod)
    ]
