"""The search by Optuna: values that look promising after the trials so far (TPE)."""

import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import TrialState as OptunaState
from optuna.trial import create_trial

from tfyard.model.sweep import (
    TRIAL_ACTIVE,
    TRIAL_DONE,
    Choice,
    Parameter,
    SweepSpec,
    Trial,
    TrialState,
    Value,
    Values,
    trial_name,
    value_text,
)

from .search import ValueSearch

optuna.logging.set_verbosity(optuna.logging.WARNING)
_STATES: dict[TrialState, OptunaState] = {
    "Succeeded": OptunaState.COMPLETE,
    "Pruned": OptunaState.PRUNED,
    "Failed": OptunaState.FAIL,
    "Stopped": OptunaState.FAIL,
}


class OptunaSearch(ValueSearch):
    """A study that knows each trial from when its values were chosen, so that parallel trials get different ones.
    The journal has the same trials, for people; it is written anew by each driver."""

    def __init__(self, spec: SweepSpec, journal: Path | None) -> None:
        self._spec = spec
        self._seed = spec.seed if spec.seed is not None else random.getrandbits(32)
        self._known = _Study(spec, InMemoryStorage())
        self._journal = journal
        self._shown: _Study | None = None

    def learn(self, trials: Sequence[Trial]) -> None:
        self._known.learn(trials)
        if self._journal is not None and self._shown is None:
            self._shown = _Study(self._spec, _new_journal(self._journal))
        if self._shown is not None:
            self._shown.learn(trials)

    def values(self, number: int, trials: Sequence[Trial]) -> Values:
        self._known.learn(trials)
        # Seeded by the number: the same values again, also when the sweep was resumed in between.
        return self._known.suggested(random.Random(f"{self._seed}:{number}").getrandbits(32))


class _Study:
    """A study of Optuna with the trials of a sweep."""

    def __init__(self, spec: SweepSpec, storage: BaseStorage) -> None:
        self._name, self._over = spec.name, spec.over
        self._distributions = {name: _distribution(each) for name, each in spec.over.items()}
        self._ids = dict[int, tuple[int, int]]()
        """Number of a trial -> number and ID that Optuna has given it."""
        self._reported = set[int]()
        direction = StudyDirection.MAXIMIZE if spec.objective.is_max else StudyDirection.MINIMIZE
        self.optuna = optuna.create_study(storage=storage, study_name=spec.name, direction=direction)

    def learn(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            if trial.number not in self._ids:
                self._add(trial)
            if trial.state not in TRIAL_ACTIVE and trial.number not in self._reported:
                self._report_trial(trial)

    def suggested(self, seed: int) -> Values:
        """Values for the next trial. What Optuna suggests is given up at once: the trial is learnt with the values
        that its program really gets, which have fewer digits."""
        self.optuna.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        asked = self.optuna.ask(self._distributions)
        self.optuna.tell(asked, state=OptunaState.FAIL)
        return {name: _value(self._over[name], each) for name, each in asked.params.items()}

    def _add(self, trial: Trial) -> None:
        chosen = {name: _chosen(self._over[name], value) for name, value in trial.values.items()}
        self.optuna.add_trial(
            create_trial(
                state=OptunaState.RUNNING,
                params=chosen,
                distributions=self._distributions,
                user_attrs={"trial": trial_name(self._name, trial.number)},  # Optuna counts from 0
            )
        )
        added = self.optuna.get_trials(deepcopy=False)[-1]
        self._ids[trial.number] = added.number, added._trial_id

    def _report_trial(self, trial: Trial) -> None:
        self._reported.add(trial.number)
        number, own_id = self._ids[trial.number]
        for step, value in trial.curve:
            self.optuna._storage.set_trial_intermediate_value(own_id, step, value)
        state = OptunaState.FAIL if trial.objective is None else _STATES[trial.state]
        self.optuna.tell(number, trial.objective if state is OptunaState.COMPLETE else None, state)


def importances(spec: SweepSpec, trials: Sequence[Trial]) -> dict[str, float]:
    """How much each parameter decides about the objective, from 0 to 1; empty: too few trials tell."""
    study = _Study(spec, InMemoryStorage())
    study.learn([trial for trial in trials if trial.state in TRIAL_DONE])
    if len([each for each in study.optuna.trials if each.state is OptunaState.COMPLETE]) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            return get_param_importances(study.optuna, evaluator=PedAnovaImportanceEvaluator())
        except (ValueError, RuntimeError, UserWarning):  # the objectives of the trials do not differ
            return {}


def _new_journal(path: Path) -> BaseStorage:
    """An empty journal. What a driver that was killed has left is removed, its lock, too."""
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    return JournalStorage(JournalFileBackend(str(path)))


def _distribution(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Choice):
        return CategoricalDistribution(_choices(parameter))
    if parameter.is_int:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.is_log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.is_log)


def _choices(parameter: Choice) -> list[Value]:
    """The values as Optuna tells them apart, for which 1, 1.0 and true are the same."""
    is_distinct = len({*parameter.values}) == len(parameter.values)
    return list(parameter.values) if is_distinct else [value_text(value) for value in parameter.values]


def _chosen(parameter: Parameter, value: Value) -> Any:
    return (
        _choices(parameter)[_texts(parameter).index(value_text(value))]
        if isinstance(parameter, Choice)
        else value
    )


def _value(parameter: Parameter, chosen: Any) -> Value:
    if not isinstance(parameter, Choice):
        return parameter.of(chosen)
    return parameter.values[_texts(parameter).index(value_text(chosen))]


def _texts(parameter: Choice) -> list[str]:
    return [value_text(value) for value in parameter.values]
