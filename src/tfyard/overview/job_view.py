"""The text of `describe`, for jobs and runs alike: the state in a sentence, then everything that is known."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from tfyard.model import Condition, Job, Manifest, Role, Status, tensorflow_container
from tfyard.model.summary import JobSummary, RecordedEvent
from tfyard.overview import attempts, lost_peers, table
from tfyard.overview.attempts import Attempt
from tfyard.overview.cause import named
from tfyard.overview.fixes import spoken
from tfyard.overview.job_table import state
from tfyard.overview.waiting import failure_line
from tfyard.overview.wording import age, duration, hours

ROLE_COLUMNS = ("ROLE", "READY", "RESTARTS", "RESTART", "GPU", "MEMORY", "IMAGE", "COMMAND")
SIDECAR_COLUMNS = ("TASK", "CONTAINER", "RESTARTS", "EXIT CODE", "REASON", "LAST LINE")
EVENT_COLUMNS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
CONDITION_COLUMNS = ("TYPE", "STATUS", "AGE", "REASON", "MESSAGE")
LONGEST_COMMAND, MESSAGE_LINES = 60, 12
EVENTS_UNREAD = "events: "
"""Prefix of the line in `unreadable` about events."""


class ToldEvent(Struct, frozen=True, kw_only=True):
    """An event, and the object that it is about, such as Pod/mnist-worker-0."""

    event: RecordedEvent
    about: str = ""


OF_RUNS = "Run/"
"""Prefix of `about` in events of a run on this machine, whose reasons are those of a cluster."""


class FailedSidecar(Struct, frozen=True, kw_only=True):
    """A container beside the program of a task, which has failed."""

    task: str
    container: str
    restarts: int
    exit_code: int
    reason: str = ""
    message: str = ""


class JobView(Struct, frozen=True, kw_only=True):
    summary: JobSummary
    title: str
    """The kind, such as: TFJob of kubeflow.org/v1."""
    job: Job | None = None
    problems: tuple[str, ...] = ()
    """Why the job cannot be read; empty: it can."""
    attempts: tuple[Attempt, ...] = ()
    sidecars: tuple[FailedSidecar, ...] = ()
    failed: tuple[str, ...] = ()
    """Tasks whose last attempt has failed: a job may succeed without them."""
    events: tuple[ToldEvent, ...] = ()
    outputs: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    """What could not be read, and why."""

    @property
    def is_local(self) -> bool:
        """Whether it is a run on this machine: those are in no namespace."""
        return not self.summary.namespace


def lines(view: JobView, now: datetime) -> Iterator[str]:
    yield from _heading(view, now)
    if view.problems:
        yield from _section("Problems", [f"  {problem}" for problem in view.problems])
    if view.job:
        rows = [_role(role, view.summary.status) for role in view.job.roles]
        yield from _section("Roles", _table(ROLE_COLUMNS, rows))
    if view.attempts:
        rows = [attempts.row(each, now) for each in view.attempts]
        lost = [f"  {each}" for each in lost_peers.sentences(view.summary.status.endings)]
        yield from _section("Attempts", [*_table(attempts.COLUMNS, rows), *lost])
    yield from _section("Last words", _last_words(view.attempts))
    rows = [_sidecar(each) for each in view.sidecars]
    yield from _section("Failed sidecars", _table(SIDECAR_COLUMNS, rows) if rows else [])
    yield from _section("Output", [f"  {each}" for each in view.outputs])
    conditions = [_condition(each, now, view.is_local) for each in view.summary.status.conditions]
    yield from _section("Conditions", _table(CONDITION_COLUMNS, conditions) if conditions else [])
    yield from _section("Events", _events(view, now))
    yield from _section("Not seen", [f"  {each}" for each in view.unreadable])


def sentence(view: JobView, now: datetime) -> str:
    """The state and its duration, the ready tasks of each role, restarts, and failed tasks."""
    status, name = view.summary.status, state(view.summary)
    parts = [f"{name}{_since(view, name, now)}", *_readiness(view)]
    if status.restarts:
        parts.append(f"{status.restarts} {'restart' if status.restarts == 1 else 'restarts'}")
    if status.has("Succeeded") and view.failed:
        parts.append(f"{named(view.failed)} failed (tfyard why {view.summary.name})")
    return "; ".join(parts)


def event_rows(events: Sequence[ToldEvent], now: datetime) -> list[tuple[str, ...]]:
    """Rows of EVENT_COLUMNS, as `kubectl events` prints them."""
    return [
        (
            age((now - each.event.at).total_seconds())
            + (f" (x{count})" if (count := each.event.count) > 1 else ""),
            each.event.type,
            each.event.reason.removeprefix("TFJob" if each.about.startswith(OF_RUNS) else ""),
            each.about,
            " ".join(each.event.message.split()),
        )
        for each in events
    ]


class OutputPath(Struct, frozen=True):
    """A path where a role's programs can write files that outlive the pod: the mount of such a volume."""

    role: str
    path: str
    source: str
    """The volume in words."""
    is_claim: bool


def outputs(job: Job) -> list[str]:
    return [f"{each.role}: {each.path} is {each.source}" for each in kept_paths(job)]


def kept_paths(job: Job) -> list[OutputPath]:
    paths = []
    for role in job.roles:
        volumes = {each.get("name"): each for each in (role.template.get("spec") or {}).get("volumes") or []}
        for mount in tensorflow_container(role.template).get("volumeMounts") or []:
            volume = volumes.get(mount.get("name")) or {}
            if (kept := _kept(volume)) and not mount.get("readOnly"):
                is_claim = "persistentVolumeClaim" in volume
                paths.append(OutputPath(role.name.lower(), str(mount.get("mountPath")), kept, is_claim))
    return paths


def _heading(view: JobView, now: datetime) -> Iterator[str]:
    summary = view.summary
    yield f"Name:       {summary.name}"
    if summary.namespace:
        yield f"Namespace:  {summary.namespace}"
    yield f"Kind:       {view.title}"
    ago = age((now - summary.created).total_seconds())
    yield f"Created:    {summary.created:%Y-%m-%d %H:%M:%S} UTC ({ago} ago)"
    yield f"State:      {sentence(view, now)}"
    for name in ("Blocked", "Waiting", "Stalled"):
        condition = summary.status.condition(name)
        if condition and condition.status == "True":
            yield f"{name + ':':11} {condition.message}"
    failure = summary.status.failure
    if failure and failure.message:
        yield f"Failure:    {failure_line(failure)}"
    stopped = [each.task for each in view.attempts if each.state == "Stopped"]
    cut, fix = attempts.cut_off(view.job.roles, stopped) if view.job else ("", "")
    if cut and summary.status.has("Succeeded"):
        yield f"Stopped:    {cut}; {fix}" + ("" if view.is_local else f" ({spoken(fix, 'tfjob')})")
    gpu_hours = attempts.gpu_hours(view.job, view.attempts, now) if view.job and view.attempts else None
    if gpu_hours is not None:
        yield f"GPU-hours:  {hours(gpu_hours)} of the attempts below"


def _since(view: JobView, name: str, now: datetime) -> str:
    status = view.summary.status
    start, end = status.start_time or view.summary.created, status.completion_time
    if end:
        return f" after {duration((end - start).total_seconds())}, {age((now - end).total_seconds())} ago"
    condition = status.condition(name)
    begin = condition.last_transition_time if condition and condition.last_transition_time else start
    return f" for {duration((now - begin).total_seconds())}"


def _readiness(view: JobView) -> list[str]:
    roles = view.summary.status.replica_statuses
    return [f"{name.lower()} {role.ready}" for name, role in roles.items() if role.ready]


def _role(role: Role, status: Status) -> tuple[str, ...]:
    """Cells of ROLE_COLUMNS."""
    container, known = tensorflow_container(role.template), status.replica_statuses.get(role.name)
    limits = (container.get("resources") or {}).get("limits") or {}
    words = [str(word) for word in (*(container.get("command") or []), *(container.get("args") or []))]
    command = " ".join(" ".join(words).split())
    gpu = attempts.gpus(role)
    return (
        role.name,
        known.ready if known and known.ready else f"0/{role.replicas}",
        str(known.restarts if known else 0),
        role.restart,
        f"{gpu:g}" if gpu else "",
        str(limits.get("memory") or ""),
        str(container.get("image") or ""),
        command if len(command) <= LONGEST_COMMAND else f"{command[: LONGEST_COMMAND - 1]}…",
    )


def _kept(volume: Manifest) -> str:
    if claim := volume.get("persistentVolumeClaim"):
        return f"the claim {claim.get('claimName')}"
    if nfs := volume.get("nfs"):
        return f"nfs://{nfs.get('server')}{nfs.get('path')}"
    if host := volume.get("hostPath"):
        return f"{host.get('path')} of the node"
    return f"the volume {volume.get('name')}" if volume.get("csi") or volume.get("ephemeral") else ""


def _events(view: JobView, now: datetime) -> list[str]:
    """Lines of the events; none if they could not be read, which another section tells."""
    if rows := event_rows(view.events, now):
        return _table(EVENT_COLUMNS, rows)
    is_known = not any(each.startswith(EVENTS_UNREAD) for each in view.unreadable)
    return [f"  none{'' if view.is_local else ' (they are kept for an hour)'}"] if is_known else []


def _last_words(tried: Sequence[Attempt]) -> list[str]:
    """The message of the last failed attempt that has one: from its program, or about its pod's eviction."""
    last = next(
        (attempt for attempt in reversed(tried) if attempt.message and attempt.state == "Failed"), None
    )
    if last is None:
        return []
    kept = last.message.strip().splitlines()[-MESSAGE_LINES:]
    return [f"  {last.task}, attempt {last.attempt}:", *(f"    {line}" for line in kept)]


def _sidecar(failed: FailedSidecar) -> tuple[str, ...]:
    """Cells of SIDECAR_COLUMNS."""
    counts = (str(failed.restarts), str(failed.exit_code))
    return failed.task, failed.container, *counts, failed.reason, failed.message.strip().rpartition("\n")[2]


def _condition(condition: Condition, now: datetime, is_local: bool) -> tuple[str, ...]:
    since = condition.last_transition_time
    when = age((now - since).total_seconds()) if since else ""
    message = " ".join(condition.message.split())
    reason = condition.reason.removeprefix("TFJob") if is_local else condition.reason
    return (condition.type, condition.status, when, reason, message)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in table.lines([columns, *rows])]


def _section(title: str, body: Sequence[str]) -> Iterator[str]:
    if body:
        yield ""
        yield f"{title}:"
        yield from body
