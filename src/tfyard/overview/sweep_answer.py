"""A sweep as JSON and YAML tell it: in the words of the sweep file and of the tables."""

from collections.abc import Mapping

from msgspec import to_builtins

from tfyard.formats import sweepfile
from tfyard.model import Manifest
from tfyard.model.sweep import SweepState, Trial, trial_name
from tfyard.overview import sweep_text


def described(name: str, namespace: str, state: SweepState, importances: Mapping[str, float]) -> Manifest:
    """What `describe` prints."""
    where = {"namespace": namespace} if namespace else {}
    told = {**where, "state": state.phase, **status(state), "importance": dict(importances)}
    return {"name": name, **told, "sweep": sweepfile.words(state.spec)}


def status(state: SweepState) -> Manifest:
    """The status of the sweep as an object, without its phase."""
    best = state.best
    told: Manifest = {
        "progress": sweep_text.progress(state),
        "message": state.message,
        "created": state.created,
        "ended": state.ended,
        "due": state.due,
        "best": trial_name(state.spec.name, best.number) if best else None,
        "trials": [of_trial(state, trial) for trial in sweep_text.ranked(state)],
    }
    return dict(to_builtins(told))


def of_trial(state: SweepState, trial: Trial) -> Manifest:
    told: Manifest = {
        "trial": trial_name(state.spec.name, trial.number),
        "number": trial.number,
        "state": trial.state,
        "value": trial.objective,
        "step": trial.at,
        "values": trial.values,
        "attempt": trial.attempt,
        "job": trial.job,
        "started": trial.started,
        "ended": trial.ended,
        "message": trial.message,
        "curve": trial.curve,
    }
    return dict(to_builtins(told))
