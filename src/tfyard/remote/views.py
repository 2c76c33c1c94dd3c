"""A TFJob with its pods and events, as `describe` shows it."""

from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.kube import KubeError, requests, sync_lists
from tfyard.kube.decoding import decode
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.model.names import ATTEMPT, JOB_NAME
from tfyard.overview.attempts import Attempt, failed, merged
from tfyard.overview.job_view import EVENTS_UNREAD, JobView, outputs
from tfyard.overview.objects import Condition, Pod, State

from .events import events
from .jobs import Found

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def view(client: SyncClient, found: Found) -> JobView:
    """What may not be read is said in the view, and the rest is shown."""
    unreadable: list[str] = []
    checked = formats.check(found.manifest)
    job = checked.job
    tasks = [task.name for task in job.tasks()] if job else []
    try:
        seen = [attempt for pod in pods(client, found) for attempt in attempts_of(pod)]
    except KubeError as problem:
        seen, unreadable = [], [*unreadable, f"pods: {problem}"]
    try:
        told = events(client, found, job)
    except KubeError as problem:
        told, unreadable = [], [*unreadable, f"{EVENTS_UNREAD}{problem}"]
    return JobView(
        summary=found.summary,
        title=f"TFJob of {found.manifest['apiVersion']}",
        job=job,
        problems=tuple(problem.message for problem in checked.errors),
        attempts=tuple(merged(remembered(found.manifest), seen, tasks)),
        failed=failed(seen, found.summary.status),
        events=tuple(told),
        outputs=tuple(outputs(job)) if job else (),
        unreadable=tuple(unreadable),
    )


def remembered(manifest: Manifest) -> list[Attempt]:
    """What the operator wrote down of attempts whose pods may be gone."""
    endings = (manifest.get("status") or {}).get("endings") or []
    try:
        return msgspec.convert(endings, list[Attempt])
    except msgspec.ValidationError:  # written by somebody else
        return []


# --- as it was given


def given(manifest: Manifest) -> tuple[str, Manifest] | None:
    """By whom, and what: as kubectl wrote it down, else the fields that the last apply owns, so without those that
    others have changed since. None of a job that was created as it is."""
    metadata = manifest["metadata"]
    if text := (metadata.get("annotations") or {}).get(LAST_APPLIED):
        with suppress(msgspec.DecodeError):  # it was edited
            return "kubectl apply", msgspec.json.decode(text)
    applied = [each for each in metadata.get("managedFields") or [] if _is_apply(each)]
    if not applied:
        return None
    last = max(applied, key=lambda each: str(each.get("time", "")))
    by = "tfyard submit" if last["manager"] == requests.FIELD_MANAGER else last["manager"]
    owned: Manifest = _owned(manifest, last["fieldsV1"])
    names = {key: metadata[key] for key in ("name", "namespace")}
    head = {key: manifest[key] for key in ("apiVersion", "kind")}
    document = {**head, **owned, "metadata": names | owned.get("metadata", {})}
    return f"{by}; without what was changed since", document


def _is_apply(entry: dict[str, Any]) -> bool:
    return entry["operation"] == "Apply" and not entry.get("subresource")


def _owned(value: Any, fields: dict[str, Any]) -> Any:
    """The part of a value that is named in a server's notation; a field with nothing below is owned as a whole."""
    below = {key: each for key, each in fields.items() if key != "."}
    if not below:
        return value
    if isinstance(value, dict):
        names = {key[2:]: each for key, each in below.items()}
        return {name: _owned(each, names[name]) for name, each in value.items() if name in names}
    found = [(item, key) for item in value for key in below if _is_named(item, key)]
    return [_owned(item, below[key]) for item, key in found]


def _is_named(item: Any, key: str) -> bool:
    """An item of a list: by its keys (`k:`) or its value (`v:`)."""
    asked = msgspec.json.decode(key[2:])
    return bool(item == asked if key.startswith("v:") else asked.items() <= item.items())


# --- pods


class _Pods(Struct, frozen=True):
    items: list[Pod] = []


_PODS = msgspec.json.Decoder(_Pods)


def pods(client: SyncClient, found: Found) -> list[Pod]:
    of = requests.selecting(labels={JOB_NAME: found.name})
    answers = sync_lists.pages(client, requests.PODS.path(found.namespace), of)
    return [pod for answer in answers for pod in decode(_PODS, answer).items]


def attempts_of(pod: Pod) -> list[Attempt]:
    """The present run of its program, and the one before it, if the kubelet restarted it in place."""
    number = pod.metadata.annotations.get(ATTEMPT, "0")
    attempt = int(number) + 1 if number.isdigit() else 1
    program, count = pod.program, pod.program.restart_count
    if not program.last_state.terminated:
        return [_as_told(pod, _attempt(pod, program.state, attempt, count))]
    # A restart is counted when it begins: in a back-off, the last one that was counted is the one that has ended.
    restart = count + 1 if program.state.waiting else count
    last = _attempt(pod, program.last_state, attempt, restart - 1)
    return [last, _as_told(pod, _attempt(pod, program.state, attempt, restart))]


def _as_told(pod: Pod, present: Attempt) -> Attempt:
    """By whoever ends the pod, if anybody does. Of a pod that was not admitted no container could have failed."""
    reason, message = pod.ended_by
    state = "Failed" if pod.status.phase == "Failed" else present.state
    told = (reason or present.reason, message or present.message)
    return replace(present, state=state, reason=told[0], message=told[1])


def _attempt(pod: Pod, state: State, attempt: int, restart: int) -> Attempt:
    ended, running, waiting = state.terminated, state.running, state.waiting
    scheduled = pod.condition("PodScheduled") or Condition()
    name = "Running" if running else "Waiting"
    if ended:
        name = "Failed" if ended.exit_code else "Succeeded"
    refused = scheduled.reason if scheduled.status != "True" else ""
    return Attempt(
        task=pod.task,
        attempt=attempt,
        restart=restart,
        state=name,
        created=None if restart else pod.metadata.creation_timestamp,
        scheduled=None if restart or scheduled.status != "True" else scheduled.last_transition_time,
        started=ended.started_at if ended else running.started_at if running else None,
        finished=ended.finished_at if ended else None,
        exit_code=ended.exit_code if ended else None,
        reason=ended.reason if ended else waiting.reason if waiting else refused,
        message=ended.message if ended else waiting.message if waiting else "",
        node=pod.spec.node_name,
    )
