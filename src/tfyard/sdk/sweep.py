"""`tfyard.Sweep`: one job with many values, that runs or has ended, on this machine or on a cluster."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict

from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import Invalid, NotPossible
from tfyard.formats import sweepfile
from tfyard.job_input import files
from tfyard.job_input.files import SweepGiven
from tfyard.model import Manifest
from tfyard.model.sweep import SweepSpec, Trial, Values
from tfyard.overview import sweep_text, sweep_why
from tfyard.overview.why import explain
from tfyard.sdk.job import Job
from tfyard.sdk.place import Place
from tfyard.sdk.run import Run, rerun_options
from tfyard.sdk.sweep_place import SweepPlace
from tfyard.sdk.why import Why, of_answer


class SweepTrial(Run):
    """A trial of a sweep: a `Run` that knows its values."""

    def __init__(self, place: Place, trial: Trial) -> None:
        super().__init__(place)
        self._trial = trial

    @property
    def number(self) -> int:
        return self._trial.number

    @property
    def values(self) -> Values:
        """The values of the parameters, by name."""
        return dict(self._trial.values)

    @property
    def objective(self) -> float | None:
        """The value of the objective's metric, as it was when the sweep was asked; None: it has printed none."""
        return self._trial.objective

    @property
    def state(self) -> str:
        """What became of it: Planned, Running, Pruning, Succeeded, Failed, Pruned or Stopped."""
        return self._trial.state

    def __repr__(self) -> str:
        return f"<SweepTrial {self.name} {self.state}>"


class Sweep(Run):
    """One job with many values. `tfyard.sweep` starts one, `tfyard.find` finds one.

    `logs`, `metrics`, `wait`, `stop` and `delete` are those of the whole; `trials` has a `Run` for each trial.
    """

    def __init__(self, place: SweepPlace) -> None:
        super().__init__(place)
        self._whole = place

    @property
    def best(self) -> SweepTrial | None:
        """The best trial that has succeeded so far."""
        trial = self._whole.sweep().best
        return None if trial is None else SweepTrial(self._whole.trial_place(trial), trial)

    @property
    def trials(self) -> list[SweepTrial]:
        """The trials that have started, in their order."""
        present = self._whole.present(self._whole.sweep().trials)
        return [SweepTrial(place, trial) for trial, place in present]

    def frame(self) -> Any:
        """All trials as a frame of pandas: their values, state, objective and times. A parameter that is called as
        another column, such as state, is `values.state`."""
        try:
            import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError:
            raise NotPossible("a frame needs pandas: `pip install pandas`") from None
        state = self._whole.sweep()
        rows = [_row(state.spec, trial) for trial in state.trials]
        return pandas.DataFrame(rows, columns=_columns(state.spec)).set_index("number")

    def describe(self) -> str:
        """The output of `tfyard describe`."""
        from tfyard.sweeps.search import importances  # 400 ms with Optuna

        state = self._whole.sweep()
        return "\n".join(sweep_text.lines(self.name, state, datetime.now(UTC), importances(state)))

    def why(self) -> Why:
        """Why the sweep has failed, with the cause of the trial that says most."""
        state, now = self._whole.sweep(), datetime.now(UTC)
        try:
            trial = explain(self._place.evidence(), now)
        except NotPossible:  # no trial has a job
            trial = None
        return of_answer(sweep_why.explain(self.name, state, trial), now)

    def resume(self) -> "Sweep":
        """Go on with a stopped sweep: finished trials stay, those that were cut run again."""
        self._do(self._place.resume())
        return self

    def rerun(
        self,
        /,
        *,
        name: str | None = None,
        env: Mapping[str, object] | None = None,
        exact: bool = False,
        **roles: int,
    ) -> Run:
        """Run the best trial again, as a job of its own: `rerun(worker=4)`."""
        return self._do(self._place.rerun(replace(rerun_options(name, env, exact, roles), is_best=True)))

    def __repr__(self) -> str:
        return f"<Sweep {self.name} {self._place.where}>"


_FIRST, _LAST = ("number", "name", "state"), ("step", "started", "ended", "message")


def _columns(spec: SweepSpec) -> list[str]:
    taken = {*_FIRST, spec.objective.metric, *_LAST}
    values = (f"values.{name}" if name in taken else name for name in spec.over)
    return [*_FIRST, *values, spec.objective.metric, *_LAST]


def _row(spec: SweepSpec, trial: Trial) -> list[Any]:
    """The cells, in the order of the columns."""
    values = [trial.values[name] for name in spec.over]
    last = (trial.objective, trial.at, trial.started, trial.ended, trial.message)
    return [trial.number, trial.job, trial.state, *values, *last]


def of_place(place: Place) -> Run:
    """The place in the words of Python."""
    return Sweep(place) if isinstance(place, SweepPlace) else Run(place)


# --- the arguments of `tfyard.sweep`


PathLike = str | os.PathLike[str]


class SweepWords(TypedDict, total=False):
    """Words of the sweep file, and options of its runs."""

    name: str
    trials: int
    parallel: int
    sampler: Literal["grid", "random", "tpe"]
    prune: Literal["none", "median", "asha"]
    seed: int
    deadline: str | int
    retryTrials: int

    python: PathLike
    mount: Mapping[str, PathLike]
    metric: str
    share_gpus: bool


OF_RUNS = ("python", "mount", "metric", "share_gpus")


def described_sweep(job: Job | PathLike, words: Mapping[str, Any]) -> tuple[Job, SweepSpec]:
    """Raises Invalid with every problem; those of a sweep file have their positions."""
    words = {word: _plain(value) for word, value in words.items() if word not in OF_RUNS}
    given = None if isinstance(job, Job) else _sweep_file(os.fspath(job))
    if given is None:
        described = job if isinstance(job, Job) else Job(job)
        return described, _spec({"job": described.name, **words})
    read = sweepfile.load(given)
    beside = os.path.join(os.path.dirname(os.fspath(job)), read.job)  # type: ignore[arg-type]  # noqa: PTH118, PTH120
    return Job(beside), _spec({**given.data, **words}) if words else read.spec


def _sweep_file(path: str) -> formats.Document | None:
    """The document of a sweep file; None: it is a job."""
    if path.endswith(".py"):
        return None
    try:
        files.refuse_sweep(files.read_documents(path), path)
    except SweepGiven as given:
        return given.document
    return None


def _spec(words: Manifest) -> SweepSpec:
    try:
        return sweepfile.load(words).spec
    except Invalid as error:
        raise Invalid(error.problems, (), "sweep") from None


def _plain(value: Any) -> Any:
    """Mappings and sequences of any type, and numbers of numpy, as a file has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    if hasattr(value, "tolist"):  # an array, or a number, of numpy
        return value.tolist()
    return list(map(_plain, value)) if hasattr(value, "__iter__") else value
