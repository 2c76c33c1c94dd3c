"""A sweep in words: one row in a list, the table of its trials, what is said while it runs."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from tfyard.model import Condition, Status
from tfyard.model.summary import JobSummary
from tfyard.model.sweep import (
    TRIAL_DONE,
    SweepSpec,
    SweepState,
    Trial,
    grid_size,
    short_text,
    trial_name,
    values_text,
)
from tfyard.overview import table
from tfyard.overview.curves import Curve
from tfyard.overview.wording import duration, number

LONGEST_MESSAGE = 60
_ORDER = ("Succeeded", "Running", "Pruning", "Pruned", "Planned", "Stopped", "Failed")


def progress(state: SweepState) -> str:
    """`12/24 done, 1 failed, 4 running, best auc 0.9981`."""
    parts = [f"{state.count(*TRIAL_DONE)}/{state.spec.trials} done"]
    counts = {"failed": state.count("Failed"), "pruned": state.count("Pruned")}
    counts["running"] = state.count("Running", "Pruning", "Planned")
    parts += [f"{count} {word}" for word, count in counts.items() if count]
    if best := state.best:
        parts.append(f"best {objective(state, best)}")
    return ", ".join(parts)


def trial_count(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def row(name: str, namespace: str, state: SweepState) -> JobSummary:
    """The sweep as a row among jobs."""
    condition = Condition(type=state.phase, status="True", message=state.message or progress(state))
    status = Status(
        phase=state.phase, conditions=(condition,), start_time=state.created, completion_time=state.ended
    )
    return JobSummary(
        name=name, namespace=namespace, job=state.spec.name, created=state.created, status=status
    )


def run_row(name: str, state: SweepState, now: datetime) -> tuple[str, ...]:
    """Cells of RUN_COLUMNS: the sweep among runs."""
    took = duration(((state.ended or now) - state.created).total_seconds())
    return (name, state.phase, trial_count(len(state.trials)), took, "")


def objective(state: SweepState, trial: Trial) -> str:
    """`auc 0.9981`."""
    return f"{state.spec.objective.metric} {_number(trial.objective)}"


def ranked(state: SweepState) -> list[Trial]:
    """The trials, the best first; those without a value of their own at the end."""
    sign = state.spec.objective.sign

    def key(trial: Trial) -> tuple[object, ...]:
        value = float("-inf") if trial.objective is None else sign * trial.objective
        return _ORDER.index(trial.state), -value, trial.number

    return sorted(state.trials, key=key)


def trial_rows(state: SweepState, now: datetime) -> list[tuple[str, ...]]:
    """A header, and a row for each trial."""
    metric, names = state.spec.objective.metric.upper(), [name.upper() for name in state.spec.over]
    rows = [(_trial_row(state, trial, now)) for trial in ranked(state)]
    return [("TRIAL", "STATE", metric, "AT STEP", *names, "TIME", "MESSAGE"), *rows]


def _trial_row(state: SweepState, trial: Trial, now: datetime) -> tuple[str, ...]:
    values = (short_text(trial.values[name]) if name in trial.values else "" for name in state.spec.over)
    at = "" if trial.at is None else str(trial.at)
    name = trial_name(state.spec.name, trial.number)
    return (
        name,
        trial.state,
        _number(trial.objective),
        at,
        *values,
        _time(trial, state.ended or now),
        _short(trial.message),
    )


def _time(trial: Trial, until: datetime) -> str:
    """`until`: now, or the end of the sweep, which cut its last trials off."""
    if trial.started is None:
        return ""
    return duration(max(0.0, ((trial.ended or until) - trial.started).total_seconds()))


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_MESSAGE else f"{line[:LONGEST_MESSAGE]}…"


def _number(value: float | None) -> str:
    return "" if value is None else number(value)


def best_so_far(state: SweepState) -> Curve:
    """The best value by the number of trials that have ended."""
    ended = sorted(
        (trial for trial in state.trials if trial.state == "Succeeded" and trial.objective is not None),
        key=lambda trial: (trial.ended or state.created, trial.number),
    )
    sign, best, points = state.spec.objective.sign, float("-inf"), list[tuple[int, float]]()
    for count, trial in enumerate(ended, 1):
        best = max(best, sign * (trial.objective or 0.0))
        points.append((count, sign * best))
    return Curve(f"best {state.spec.objective.metric}", "trial", points)


def lines(
    name: str, state: SweepState, now: datetime, importances: Mapping[str, float], curve: Sequence[str] = ()
) -> Iterator[str]:
    """What `describe` prints. `curve`: the best value so far, as it is drawn in a terminal."""
    yield f"Name:       {name}"
    yield f"Kind:       sweep of {trial_count(state.spec.trials)}, {state.spec.objective}"
    yield f"Created:    {state.created:%Y-%m-%d %H:%M:%S} UTC ({_ago(state.created, now)} ago)"
    yield f"State:      {state.phase} {_lasted(state, now)}; {progress(state)}"
    if state.message:
        yield f"Message:    {state.message}"
    yield f"Searched:   {searched(state.spec)}"
    if state.trials:
        yield from ("", "Trials:", *(f"  {line}" for line in table.lines(trial_rows(state, now))))
    if importances:
        rows = [
            (name, f"{share:.0%}") for name, share in sorted(importances.items(), key=lambda each: -each[1])
        ]
        yield from ("", "Importance:", *(f"  {line}" for line in table.lines(rows)))
    if curve:
        yield from ("", *curve)


def _lasted(state: SweepState, now: datetime) -> str:
    return f"after {_ago(state.created, state.ended)}" if state.ended else f"for {_ago(state.created, now)}"


def _ago(since: datetime, until: datetime) -> str:
    return duration(max(0.0, (until - since).total_seconds()))


def described(spec: SweepSpec) -> str:
    """`24 trials, max auc, by tpe, over lr, batch`."""
    return f"{trial_count(spec.trials)}, {spec.objective}, {searched(spec)}"


def searched(spec: SweepSpec) -> str:
    """`by tpe, over lr, batch`: how values are chosen."""
    size = grid_size(spec.over)
    parts = [f"by {spec.sampler}", f"over {', '.join(spec.over)}"]
    parts += [f"{size:,} combination{'s'[: size != 1]}"] if size else []
    parts += [f"pruned by {spec.prune}"] if spec.prune != "none" else []
    return ", ".join(parts)


# --- while it runs


def changes(before: SweepState, after: SweepState) -> Iterator[str]:
    """A line for each trial that has started or ended in between."""
    known = {trial.number: trial for trial in before.trials}
    best = after.best
    for trial in after.trials:
        old = known.get(trial.number)
        is_new = old is None or (old.state, old.attempt) != (trial.state, trial.attempt)
        is_best = best is not None and best.number == trial.number
        if is_new and (text := _change(after, trial, is_best=is_best)):
            yield f"{trial_name(after.spec.name, trial.number)}  {text}"


def _change(state: SweepState, trial: Trial, *, is_best: bool) -> str:
    values = values_text(trial.values)
    if trial.state == "Planned":
        return (
            f"starts: {values}" if trial.attempt == 1 else f"starts again (attempt {trial.attempt}): {values}"
        )
    if trial.state == "Succeeded":
        return f"{objective(state, trial)}: {values}{'  (best)' if is_best else ''}"
    if trial.state in ("Pruned", "Failed"):
        return f"{trial.state.lower()}: {values}: {_short(trial.message)}"
    return ""


def best(state: SweepState, trial: Trial) -> str:
    name = trial_name(state.spec.name, trial.number)
    return f"best: {name}, {objective(state, trial)}: {values_text(trial.values)}"


def summary(state: SweepState) -> Iterator[str]:
    """The end of a sweep, with what can be done next."""
    name = state.spec.name
    yield f"{name}: {state.phase}: {progress(state)}" + (f"; {state.message}" if state.message else "")
    if state.best:
        yield best(state, state.best)
    if state.phase == "Stopped":
        yield f"`tfyard resume {name}` goes on with it"
    elif state.best:
        yield f"`tfyard describe {name}` shows all trials; `tfyard rerun {name} --best` trains the best again"
