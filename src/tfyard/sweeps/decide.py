"""One step of a sweep: from its state and what its jobs say to its next state, and what is to be done. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model.spelling import did_you_mean
from tfyard.model.sweep import (
    TRIAL_ACTIVE,
    TRIAL_DONE,
    SweepSpec,
    SweepState,
    Trial,
    TrialState,
    trial_name,
)

from .observing import SeenPhase, TrialSeen, judged, thinned
from .pruning import is_worse
from .search import ValueSearch

FAILURES_AT_START = 3
"""Number of failures before anything else that are a mistake in the job, not values that do not work."""


class StepPlan(Struct, frozen=True):
    """What to do next. `state` is stored first; if that fails, nothing is done."""

    state: SweepState
    start: tuple[Trial, ...] = ()
    stop: tuple[Trial, ...] = ()


def begun(spec: SweepSpec, now: datetime) -> SweepState:
    return SweepState(spec=spec, created=now, due=_due(now, spec.deadline))


def resumed(state: SweepState, now: datetime) -> SweepState:
    """The state with which a stopped sweep goes on. The first step says which of the trials that were stopped run
    again, and which had ended before they were asked to stop."""
    left = (state.due - state.ended).total_seconds() if state.due and state.ended else state.spec.deadline
    due = state.due if state.ended is None else _due(now, left)
    return replace(state, phase="Running", message="", ended=None, due=due)


def stopped(state: SweepState, now: datetime, message: str) -> SweepState:
    """The state of a sweep whose jobs are asked to stop, and that may be resumed."""
    trials = tuple(
        replace(trial, state="Stopped") if trial.state in TRIAL_ACTIVE else trial for trial in state.trials
    )
    return replace(state, phase="Stopped", message=message, ended=now, trials=trials)


def decide(
    state: SweepState, seen: Mapping[int, TrialSeen], search: ValueSearch, parallel: int, now: datetime
) -> StepPlan:
    """`seen`: the jobs of the present attempts, by number of the trial."""
    trials = [_observed(state.spec, trial, seen.get(trial.number), now) for trial in state.trials]
    trials = [_judged(state.spec, trial, seen.get(trial.number), trials) for trial in trials]
    state = replace(state, trials=tuple(trials))
    running = [number for number, each in seen.items() if each.phase == "Running"]
    if end := _end(state, seen, now):
        phase, message = end
        over = replace(stopped(state, now, message), phase=phase)
        return StepPlan(over, stop=tuple(trial for trial in state.trials if trial.number in running))
    state = _planned(state, search, parallel)
    start = (trial for trial in state.trials if trial.state == "Planned" and trial.number not in seen)
    stop = (trial for trial in state.trials if trial.state == "Pruning" and trial.number in running)
    return StepPlan(state, tuple(start), tuple(stop))


def _due(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=max(0.0, seconds))


# --- one trial


def _observed(spec: SweepSpec, trial: Trial, job: TrialSeen | None, now: datetime) -> Trial:
    if job is None and trial.state in ("Running", "Pruning"):
        return replace(trial, state="Pruned", message="its job was deleted", ended=now)
    if trial.state == "Stopped" and (job is None or job.phase != "Succeeded"):
        return _next_attempt(trial)
    if job is None or job.attempt != trial.attempt or trial.state in TRIAL_DONE:
        return trial
    point = judged(job.curve, spec.objective)
    known = replace(
        trial,
        job=job.job,
        started=job.started,
        curve=thinned(job.curve),
        at=point[0] if point else None,
        objective=point[1] if point else None,
    )
    if job.phase == "Running":
        return replace(known, state="Pruning" if trial.state == "Pruning" else "Running")
    if job.phase == "Cut":
        return _next_attempt(known)
    if job.phase == "Failed" and trial.failures < spec.retry_trials:
        return _next_attempt(replace(known, failures=trial.failures + 1))
    return _ended(spec, known, job)


def _ended(spec: SweepSpec, trial: Trial, job: TrialSeen) -> Trial:
    state, message = _ENDS[job.phase], job.message
    if state == "Succeeded" and (problem := _no_value(spec, trial, job)):
        state, message = "Failed", problem
    if state == "Pruned" and trial.state != "Pruning":
        message = "it was stopped by `tfyard stop`"
    return replace(trial, state=state, message=message or trial.message, ended=job.ended)


def _no_value(spec: SweepSpec, trial: Trial, job: TrialSeen) -> str:
    """Why a trial that ended well has no value to be judged by; empty: it has one."""
    if job.lost and (trial.objective is None or not spec.objective.is_best):
        return f"its last {spec.objective.metric} is {job.lost}"
    return "" if trial.objective is not None else f"it printed no {spec.objective.metric}"


_ENDS: dict[SeenPhase, TrialState] = {"Succeeded": "Succeeded", "Failed": "Failed", "Stopped": "Pruned"}


def _next_attempt(trial: Trial) -> Trial:
    """The trial as it is before its next attempt."""
    return Trial(
        number=trial.number,
        values=trial.values,
        failures=trial.failures,
        attempt=trial.attempt + 1 if trial.job else trial.attempt,
    )


def _judged(spec: SweepSpec, trial: Trial, job: TrialSeen | None, trials: list[Trial]) -> Trial:
    """The trial, to be pruned if it is worse than the others. All points of its own curve count, because those of
    the others are thinned out."""
    if trial.state != "Running" or job is None or not is_worse(spec, replace(trial, curve=job.curve), trials):
        return trial
    text = f"worse than the others at step {trial.curve[-1][0]}"
    return replace(trial, state="Pruning", message=text)


# --- the whole


def _planned(state: SweepState, search: ValueSearch, parallel: int) -> SweepState:
    """The state with as many new trials as there are free places."""
    trials, spec = list(state.trials), state.spec
    while state.count(*TRIAL_ACTIVE) < parallel and len(trials) < spec.trials:
        number = len(trials) + 1
        trials.append(Trial(number=number, values=search.values(number, trials)))
        state = replace(state, trials=tuple(trials))
    return state


def _end(state: SweepState, seen: Mapping[int, TrialSeen], now: datetime) -> tuple[str, str] | None:
    """Phase and message, if the sweep is over."""
    done, ends_well = state.count(*TRIAL_DONE), state.best is not None
    if (problem := _no_metric(state, seen)) or (problem := _only_failures(state)):
        return "Failed", problem
    if state.due is not None and now >= state.due:
        left = state.spec.trials - done
        return (
            "Succeeded" if ends_well else "Failed",
            f"the deadline was over before {left} of the trials ended",
        )
    if done == state.spec.trials:
        return ("Succeeded", "") if ends_well else ("Failed", f"no trial has succeeded{_first_cause(state)}")
    return None


def _only_failures(state: SweepState) -> str:
    ended = [trial for trial in state.trials if trial.state in TRIAL_DONE]
    failed = [trial for trial in ended if trial.state == "Failed"]
    if len(failed) < FAILURES_AT_START or len(failed) < len(ended):
        return ""
    return f"the first {len(failed)} trials have failed{_first_cause(state)}"


def _first_cause(state: SweepState) -> str:
    """What ended the first trial that failed; empty: none has."""
    failed = [trial for trial in state.trials if trial.state == "Failed"]
    if not failed:
        return ""
    first = min(failed, key=lambda trial: trial.number)
    says = f": {first.message}" if first.message else ""
    return f"; `tfyard why {trial_name(state.spec.name, first.number)}` says why{says}"


def _no_metric(state: SweepState, seen: Mapping[int, TrialSeen]) -> str:
    """The message if a trial has ended well, and none has ever printed the metric of the objective."""
    metric = state.spec.objective.metric
    silent = [each for each in seen.values() if each.phase == "Succeeded" and metric not in each.metrics]
    if not silent or any(trial.curve for trial in state.trials):
        return ""
    printed = silent[0].metrics
    hint = (
        did_you_mean(metric, printed)
        if printed
        else "it printed no metrics; `tfyard metrics` says what is read"
    )
    return f"{silent[0].job} has ended and printed no metric called {metric!r}; {hint}"
