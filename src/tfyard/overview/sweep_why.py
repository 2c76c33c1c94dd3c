"""`tfyard why` of a sweep: the state of the whole, and the cause of the trial that says most about it."""

from tfyard.model.sweep import SweepPhase, SweepState
from tfyard.overview import sweep_text
from tfyard.overview.why import Answer

_VERDICTS: dict[SweepPhase, str] = {
    "Running": "is running",
    "Succeeded": "has succeeded",
    "Failed": "has failed",
    "Stopped": "was stopped",
}
_FAILED = 1


def explain(name: str, state: SweepState, trial: Answer | None) -> Answer:
    """`trial`: the answer about a trial that failed, or else one that runs; None: none has started."""
    cause = trial if trial and trial.causes and _is_about_it(state, trial) else None
    code = _FAILED if state.phase == "Failed" else cause.code if cause and state.phase == "Running" else 0
    verdict = f"{name} {_VERDICTS[state.phase]}: {sweep_text.progress(state)}"
    is_new = cause is not None and cause.sentence not in state.message
    parts = [verdict, state.message, f"{cause.job}: {cause.sentence}" if cause and is_new else ""]
    return Answer(
        job=name,
        state="failed" if code == _FAILED else cause.state if cause and code else "fine",
        code=code,
        sentence="; ".join(part for part in parts if part),
        causes=cause.causes if cause else (),
        looked_at=trial.looked_at if trial else (),
        unreadable=trial.unreadable if trial else (),
    )


def _is_about_it(state: SweepState, trial: Answer) -> bool:
    """Whether the cause of the trial says something about the sweep. A pruned trial was stopped on purpose."""
    return state.count("Failed") > 0 or (state.phase == "Running" and trial.code != 0)
