"""Causes in containers beside the training container: init containers that fail or do not end, and sidecars that
end; and readiness probes that do not succeed. A fix for the training container is no fix for them."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from tfyard.model.names import CODE_VOLUME, PACKAGES_VOLUME
from tfyard.overview.cause import TASKS, Cause, Quote, S, cut
from tfyard.overview.causes import leaving
from tfyard.overview.evidence import End, Evidence, Preparation
from tfyard.overview.wording import age
from tfyard.views.pods import PodDetails
from tfyard.views.program import failed_sidecars, holding

OWN = {
    CODE_VOLUME: ("which brings the code", "check what `code:` names"),
    PACKAGES_VOLUME: ("which installs the packages", "correct the file that `requirements:` names"),
}
"""Init containers that tfyard adds -> what each does, and the fix if it fails. Image and memory are the job's."""
_NO_PIP = "the image has no pip"
"""Words of the script that installs the packages."""
_WITH_PIP = (
    "job file: an `image:` that has pip; or build the packages into the image, without `requirements:`"
)
_OF_THE_JOB = ("out-of-memory", "image-pull", "command")
"""Kinds for which the fix of the training container holds for an init container of tfyard, too."""
_FIXES = {
    "image-pull": "correct the `image` of",
    "command": "correct the `command`, or choose an `image` that has it, in",
    "missing-module": "choose an `image` that has it in",
    "out-of-memory": "raise the memory limit of",
}
READY = timedelta(minutes=2)
"""Time in which a task may become ready, if no event says that its probe has failed."""
_READINESS = "Readiness probe "


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    """Causes of tasks that run."""
    for pod in () if evidence.status.is_finished else evidence.running:
        yield from _sidecars(pod)
        if not leaving.unseen(evidence, pod):
            yield from _not_ready(evidence, pod, now)


# --- init containers


def of_init_container(end: End, cause: Cause) -> Cause:
    """The cause of an end, which names the init container if it is that of one."""
    return _told(cause, "init container", end.init_container) if end.init_container else cause


def of_container(pod: PodDetails, name: str, cause: Cause) -> Cause:
    """The cause of a container that waits, which names it if it is not the training container."""
    if name == pod.trainer.name:
        return cause
    is_init = any(each.name == name and not each.is_sidecar for each in pod.spec.init_containers)
    return _told(cause, "init container" if is_init else "container", name)


def _told(cause: Cause, kind: str, name: str) -> Cause:
    does = f", {OWN[name][0]}" if name in OWN else ""
    return replace(cause, sentence=f"{cause.sentence} (its {kind} {name}{does})", fix=_fix(cause, kind, name))


def _fix(cause: Cause, kind: str, name: str) -> str:
    if name in OWN and _NO_PIP in cause.sentence:
        return _WITH_PIP
    if name in OWN:
        return cause.fix if cause.kind in _OF_THE_JOB else OWN[name][1]
    if cause.fix and "`" not in cause.fix and "job file" not in cause.fix:
        return cause.fix  # a command, or a sentence that is about no container
    return f"{_FIXES.get(cause.kind, 'correct')} the {kind} {name} in the pod template"


def preparing(evidence: Evidence, pod: PodDetails, now: datetime) -> Cause | None:
    """The cause of a task whose init container runs: it may never end."""
    held_by = holding(pod)
    if held_by is None or held_by.state.running is None:
        return None
    since, log = held_by.state.running.started_at, evidence.logs.get(pod.task)
    return of_preparation(evidence, Preparation(pod.task, held_by.name, since, log), now)


def of_preparation(evidence: Evidence, step: Preparation, now: datetime) -> Cause:
    name, since = step.container, step.since or now
    does = f", {OWN[name][0]}," if name in OWN else ""
    line = step.log.text.strip().rpartition("\n")[2] if step.log else ""
    printed = (Quote("log", cut(line), step.log.at),) if step.log and line else ()
    where = "--local" if evidence.is_local else f"-n {evidence.namespace}"
    ran = age((now - since).total_seconds())
    return Cause(
        kind="init-container",
        sentence=f"{TASKS} wait{S} for the init container {name}{does} to end; it has run for {ran}",
        fix=f"see what it does: `tfyard logs {evidence.name} {where}`",
        tasks=(step.task,),
        evidence=(
            Quote("container", f"{name} runs" + ("" if line else ", and printed nothing"), since),
            *printed,
        ),
    )


# --- sidecars and readiness


def _sidecars(pod: PodDetails) -> Iterator[Cause]:
    for status, ended in failed_sidecars(pod):
        end = End(
            task=pod.task,
            exit_code=ended.exit_code,
            reason=ended.reason,
            text=ended.message,
            at=ended.finished_at,
        )
        last = ended.message.strip().rpartition("\n")[2]
        words = f"{end.words}: {cut(last, 240)}" if last else end.words
        goes_on = "it is restarted" if status.state.terminated is None else "the training goes on"
        yield Cause(
            kind="sidecar",
            sentence=f"the container {status.name} of {TASKS} ended with {words}; {goes_on}",
            fix=f"correct the container {status.name} in the pod template",
            tasks=(pod.task,),
            evidence=(end.quote(),),
        )


def _not_ready(evidence: Evidence, pod: PodDetails, now: datetime) -> Iterator[Cause]:
    ready = pod.condition("Ready")
    if ready is None or ready.status != "False" or "readinessProbe" not in evidence.container(pod.task):
        return
    since = pod.program.state.running.started_at if pod.program.state.running else None
    failed = [each for each in evidence.warnings(pod, "Unhealthy") if each.message.startswith(_READINESS)]
    if not failed and (since is None or now - since < READY):
        return
    answer = failed[0].message.partition(": ")[2].strip() if failed else ""
    quote = (
        Quote("event", cut(failed[0].message), failed[0].at)
        if failed
        else Quote("condition", cut(f"Ready is False: {ready.message}"), ready.last_transition_time)
    )
    yield Cause(
        kind="not-ready",
        sentence=f"{TASKS} run{S}, and the readiness probe fails"
        + (f": {cut(answer, 200)}" if answer else ""),
        fix="correct or remove the `readinessProbe` in the pod template: tfyard itself needs none",
        tasks=(pod.task,),
        evidence=(quote,),
    )
