"""How the program of a task ended, by its pod: the one place for decisions, logs and explanations.

A task is its training container: neither its sidecars nor the later life of the pod change its result.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from tfyard.model import Phase, Pod, ProgramEnd, Task
from tfyard.model.exit_codes import restarts_in_place

from .pods import Container, ContainerStateTerminated, ContainerStatus, PodView, State


class Conclusion(Struct, frozen=True, kw_only=True):
    program: ContainerStatus
    preparations: Sequence[ContainerStatus]
    """Init containers, without sidecars."""
    outcome: ProgramEnd
    """How the program ended for good; empty: it has not."""
    end: ContainerStateTerminated | None
    """End of the program's present run, or of an init container that failed before it."""
    end_before: ContainerStateTerminated | None
    """End of the run before the present one, or before the restart that is due."""
    reason: str
    message: str
    """Reason and message for the end of the whole pod, such as a drain: they explain more than the exit code."""

    @property
    def needed(self) -> tuple[ContainerStatus, ...]:
        """The program, and the init containers that must run before it."""
        return (*self.preparations, self.program)

    @property
    def last_end(self) -> ContainerStateTerminated | None:
        return self.end or self.end_before

    @property
    def failure(self) -> ContainerStateTerminated | None:
        """The last end, if it failed; that of an init container only until it has succeeded."""
        last, done = self.last_end, [each for each in self.preparations if _has_succeeded(each.state)]
        if last is None or any(each.last_state.terminated is last for each in done):
            return None
        return last if last.has_failed or last.reason == "OOMKilled" else None

    @property
    def failed_preparation(self) -> str:
        """Name of the init container whose end is `failure`; empty: it is the program's, or there is none."""
        failure = self.failure
        of_failure = (
            each.name
            for each in self.preparations
            if failure in (each.state.terminated, each.last_state.terminated)
        )
        return next(of_failure, "") if failure else ""

    @property
    def exit_code(self) -> int | None:
        """Exit code of the last end; None if it is 0 and the pod failed: the program only handled SIGTERM."""
        last = self.last_end
        return None if last is None or (not last.exit_code and self.outcome == "Failed") else last.exit_code

    @property
    def running_since(self) -> datetime | None:
        """Start of the program's present run."""
        running = self.program.state.running
        return running.started_at if running else None

    @property
    def restarts(self) -> int:
        """Number of restarts in place of the program and of the init containers before it."""
        return sum(each.restart_count for each in self.needed)


def conclude(pod: PodView) -> Conclusion:
    program, preparations = pod.program, pod.preparations
    failed = (end for each in preparations if (end := each.state.terminated) and end.has_failed)
    ended = program.state.terminated
    end = ended if ended and ended.has_failed else next(failed, ended)
    earlier = (each.last_state.terminated for each in (program, *reversed(preparations)))
    end_before = next(filter(None, earlier), None)
    reason, message = _ended_by(pod)
    return Conclusion(
        program=program,
        preparations=preparations,
        outcome=_outcome(pod, program),
        end=end,
        end_before=end_before,
        reason=reason,
        message=message,
    )


def pod_of(view: PodView, program: Conclusion, task: Task, phase: Phase) -> Pod:
    """The model's pod, with what is concluded from the pod alone."""
    end = program.last_end or ContainerStateTerminated()
    return Pod(
        name=view.name,
        uid=view.metadata.uid,
        task=task,
        attempt=view.attempt,
        phase=phase,
        program="" if program.outcome == view.status.phase else program.outcome,
        exit_code=program.exit_code,
        failed_init=program.failed_preparation,
        message=program.message or end.message,
        reason=program.reason or end.reason,
        run_started=end.started_at,
        run_ended=end.finished_at,
        running_since=program.running_since,
        restarts=program.restarts,
        lingers_since=lingers_since(view, program),
        started=view.status.start_time,
        deleting=view.metadata.deletion_timestamp,
    )


def _has_succeeded(state: State) -> bool:
    return state.terminated is not None and not state.terminated.has_failed


def _outcome(pod: PodView, program: ContainerStatus) -> ProgramEnd:
    """How the program ended for good. The pod's phase changes later and depends on other containers, too. But a
    kubelet that ends a whole pod sets a reason; the exit code then only shows how the program reacted."""
    phase: ProgramEnd = "Failed" if pod.status.phase == "Failed" else "Succeeded" if pod.is_over else ""
    ended = program.state.terminated
    if ended is None or (phase == "Failed" and pod.status.reason and not pod.is_told_to_end):
        return phase
    if not phase and will_restart(pod, program.name, ended) is not False:
        return ""
    return _end(ended)


def _end(ended: ContainerStateTerminated) -> ProgramEnd:
    return "Failed" if ended.has_failed else "Succeeded"


def _ended_by(pod: PodView) -> tuple[str, str]:
    """Reason and message for the end of the whole pod."""
    if pod.is_ended_in_place:
        return "", ""
    taken, status = pod.taken_away, pod.status
    return status.reason or (taken.reason if taken else ""), status.message or (
        taken.message if taken else ""
    )


def lingers_since(pod: PodView, concluded: Conclusion) -> datetime | None:
    """When the program ended, if other containers still run that nothing will end. The kubelet itself ends
    sidecars among the init containers."""
    program = concluded.program
    ended = program.state.terminated
    if ended is None or pod.is_over or pod.is_told_to_end or not concluded.outcome:
        return None
    others = (each for each in pod.status.container_statuses if each.name != program.name)
    return ended.finished_at if any(_goes_on(pod, each) for each in others) else None


def _goes_on(pod: PodView, status: ContainerStatus) -> bool:
    ended = status.state.terminated
    return ended is None or will_restart(pod, status.name, ended) is not False


def will_restart(pod: PodView, name: str, ended: ContainerStateTerminated) -> bool | None:
    """Whether the kubelet restarts a container; None if that has rules for exit codes, which only the kubelet
    applies."""
    named = (each for each in (*pod.spec.containers, *pod.spec.init_containers) if each.name == name)
    own = next(named, Container())
    if own.restart_policy_rules:
        return None
    is_init = own in pod.spec.init_containers
    return restarts_in_place(pod.spec.restart_policy, ended.exit_code, own.restart_policy, is_init=is_init)


def failed_sidecars(pod: PodView) -> list[tuple[ContainerStatus, ContainerStateTerminated]]:
    """Containers beside the program that have failed, and how: for good, or until their next restart."""
    before = {each.name for each in pod.preparations} | {pod.program.name}
    beside = [each for each in pod.statuses if each.name not in before]
    ends = [
        (each, each.state.terminated or (each.state.waiting and each.last_state.terminated))
        for each in beside
    ]
    return [(status, end) for status, end in ends if end and end.has_failed]


# --- run by run


class ProgramRun(Struct, frozen=True):
    """One run of the program in its pod, or of an init container before it."""

    restart: int
    """Number of the restart in place; 0: the first run."""
    state: State
    end: ProgramEnd
    """How the run ended; empty: it has not."""
    reason: str = ""
    message: str = ""
    """Message for the end of the whole pod, or else of the container's state."""
    container: str = ""
    """The init container that runs or has failed, because of which the program has not started; empty: none."""


def runs(pod: PodView) -> list[ProgramRun]:
    """The present run of the program, and before it the one that ended, if the kubelet restarted it in place.
    Until the program starts, those of the init container that it waits for."""
    held_by = holding(pod)
    program, (reason, message) = held_by or pod.program, _ended_by(pod)
    state, before = program.state, program.last_state.terminated
    # A restart is counted when it begins: in a back-off, the last one that was counted is the one that has ended.
    restart = program.restart_count + (1 if before and state.waiting else 0)
    why = state.terminated or state.waiting
    name = held_by.name if held_by else ""
    # Of a pod that was not admitted, no container could have failed.
    has_failed = conclude(pod).outcome == "Failed"
    end: ProgramEnd = "Failed" if has_failed else _end(state.terminated) if state.terminated else ""
    reason, message = reason or (why.reason if why else ""), message or (why.message if why else "")
    present = ProgramRun(restart, state, end, reason, message, name)
    if before is None:
        return [present]
    earlier = ProgramRun(restart - 1, program.last_state, _end(before), before.reason, before.message, name)
    return [earlier, present]


def holding(pod: PodView) -> ContainerStatus | None:
    """The init container that a program waits for which has never started: it runs, or has failed."""
    if pod.program.has_started:
        return None
    begun = (each for each in pod.preparations if each.has_started and not _has_succeeded(each.state))
    return next(begun, None)


def waits_for(pod: PodView) -> str:
    """What the pod waits for, in the words of the scheduler or the kubelet."""
    held_by = holding(pod)
    if held_by and held_by.state.running:
        return f"its init container {held_by.name} runs"
    waiting = (held_by or pod.program).state.waiting
    if waiting and waiting.reason:
        return f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
    refusal = pod.unscheduled
    return f"{refusal.reason}: {refusal.message}" if refusal else "its pod is not running yet"
