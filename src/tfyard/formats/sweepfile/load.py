"""Sweep file -> SweepSpec and the path of its job, and back. Options of `tfyard sweep` follow the same rules."""

import re
from math import isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Invalid, Usage
from tfyard.formats import durations, metadata
from tfyard.formats.declarations.reading import Notes, Path, read
from tfyard.formats.yaml.source import Document, locate
from tfyard.model import Manifest, Problem
from tfyard.model.sweep import (
    Choice,
    Objective,
    Parameter,
    Range,
    Sampler,
    SweepSpec,
    grid_size,
    longest_name,
    value_text,
    variable_of,
)

from .words import MOST_TRIALS, NUMBER, OBJECTIVE, RangeWords, SweepFile

SHORTEST_POD_END = len("-ps-0")
USUAL_TRIALS = 20
"""Enough for tpe to learn from: its first ten are chosen by chance."""
_PARAMETER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WHOLE = re.compile(r"[-+]?\d+")
_RANGE = re.compile(r"(?P<low>[^\s,/]+?)\.\.(?P<high>[^\s,/:]+)(:(?P<scale>\w+))?")
"""`1e-4..1e-1:log`; what has a comma or a slash is a list of values, such as ../data."""
LARGEST = 1e100
MOST_DIGITS = 18
"""A whole number with so many digits fits into 64 bits."""
UNNAMED = ""
"""Name of a sweep whose file gives none, until its job is known."""


class SweepDocument(Struct, frozen=True):
    """What a sweep file says."""

    job: str
    """The job, relative to the file."""
    spec: SweepSpec


class CheckedSweep(Struct, frozen=True):
    sweep: SweepDocument | None
    problems: tuple[Problem, ...] = ()


def load(document: Document | Manifest) -> SweepDocument:
    """Raises Invalid with every problem."""
    checked = check(document)
    if checked.sweep is None or checked.problems:
        text = document if isinstance(document, Document) else ()
        raise Invalid(checked.problems, text, getattr(document, "name", ""))
    return checked.sweep


def check(document: Document | Manifest) -> CheckedSweep:
    data = document.data if isinstance(document, Document) else document
    notes = Notes()
    completed = _completed(data, notes)
    words = read(SweepFile, completed, (), notes) or _without_wrong_words(completed, notes)
    spec = _spec(words, notes) if words is not None else None
    problems = tuple(map(_with_example, notes.problems))
    if isinstance(document, Document):
        problems = locate(problems, document)
    return CheckedSweep(SweepDocument(words.job, spec) if words and spec else None, problems)


def _with_example(problem: Problem) -> Problem:
    is_values = len(problem.path) == 2 and problem.path[0] == "over" and not problem.fix
    return replace(problem, fix="for example [32, 64], or {from: 1, to: 4}") if is_values else problem


def _completed(data: Any, notes: Notes) -> Any:
    """The data with stand-ins for required words, so that the problems of the others are reported, too."""
    missing = [key for key in _STAND_INS if isinstance(data, dict) and data.get(key) is None]
    for key in missing:
        notes.error((key,), "must be given", f"for example {_EXAMPLES[key]}")
    return {**data, **{key: _STAND_INS[key] for key in missing}} if missing else data


def _without_wrong_words(data: Any, notes: Notes) -> SweepFile | None:
    """The words with stand-ins for required ones that could not be read. What was reported is not again."""
    if not isinstance(data, dict):
        return None
    wrong = {problem.path[0] for problem in notes.problems if len(problem.path) == 1}
    stand_ins = {key: value for key, value in _STAND_INS.items() if key in wrong}
    return read(SweepFile, {**data, **stand_ins}, (), notes)


_EXAMPLES = {
    "job": "job: job.yaml",
    "over": "over: {lr: {from: 1e-4, to: 1e-1, log: true}}",
    "objective": "objective: max accuracy",
}
_STAND_INS: Manifest = {"job": "", "over": {"x": [1]}, "objective": "max x"}


def _spec(words: SweepFile, notes: Notes) -> SweepSpec:
    if not words.over and not any(problem.path[:1] == ("over",) for problem in notes.problems):
        notes.error(("over",), "must name a parameter", f"for example {_EXAMPLES['over']}")
    over = _parameters(words.over, notes)
    sampler = words.sampler or _usual_sampler(over)
    _check_name(words.name, notes)
    return SweepSpec(
        name=words.name or UNNAMED,
        over=over,
        objective=_objective(words.objective, notes),
        trials=_trials(words, over, sampler, notes),
        parallel=words.parallel,
        sampler=sampler,
        prune=words.prune,
        seed=words.seed,
        deadline=_deadline(words.deadline, notes),
        retry_trials=words.retry_trials,
        service_account=words.service_account,
    )


def _deadline(written: str | int | None, notes: Notes) -> int | None:
    seconds = None if written is None else durations.read(written, ("deadline",), notes)
    if seconds == 0:
        notes.error(("deadline",), "must be at least 1s", "remove it, if there is none", written)
    return seconds


def _check_name(name: str | None, notes: Notes) -> None:
    if name is None:
        return
    metadata.check_name(name, ("name",), notes)
    most = longest_name(SHORTEST_POD_END)
    if len(name) > most:
        text = "is too long: its trials are called NAME-001, and their pods NAME-001-worker-0"
        notes.error(("name",), text, f"use at most {most} characters", name)


def _objective(text: str, notes: Notes) -> Objective:
    if re.fullmatch(OBJECTIVE, text) is None:
        fix = "for example `max auc`, `min val_loss` or `max best auc`"
        notes.error(("objective",), "must be max or min, and the name of a metric", fix, text)
        return Objective("", is_max=True)
    direction, *best, metric = text.split()
    return Objective(metric, is_max=direction == "max", is_best=bool(best))


# --- parameters


def _parameters(over: dict[str, Any], notes: Notes) -> dict[str, Parameter]:
    capitals: dict[str, str] = {}
    for name in over:
        if not _PARAMETER.fullmatch(name):
            better = re.sub(r"[^a-zA-Z0-9_]+", "_", name).strip("_")
            fix = f"for example {better}" if _PARAMETER.fullmatch(better) else "for example lr"
            notes.error(("over", name), "must be letters, digits and _, and not begin with a digit", fix)
        elif (other := capitals.setdefault(variable_of(name), name)) != name:
            notes.error(("over", name), f"differs from {other} only in the letter case", "rename one")
    return {name: _parameter(part, ("over", name), notes) for name, part in over.items()}


def _parameter(part: RangeWords | list[Any], path: Path, notes: Notes) -> Parameter:
    return _range(part, path, notes) if isinstance(part, RangeWords) else _choice(part, path, notes)


def _choice(values: list[Any], path: Path, notes: Notes) -> Choice:
    if not values and not any(problem.path[: len(path)] == path for problem in notes.problems):
        notes.error(path, "must have a value", "for example [32, 64]", values)
    texts = [value_text(value) for value in values]
    for at, value in enumerate(values):
        if isinstance(value, float) and not isfinite(value):
            notes.error((*path, at), "must be a number that is finite", "", value)
        elif isinstance(value, str) and "\0" in value:
            notes.error((*path, at), "must have no zero byte: programs cannot be given one", "", value)
        elif texts[at] in texts[:at]:
            notes.error(
                (*path, at), f"is given twice: programs get {texts[at]}", "keep one of the two", value
            )
    return Choice(tuple(values))


def _range(words: RangeWords, path: Path, notes: Notes) -> Range:
    ends = [_number(words.from_, (*path, "from"), notes), _number(words.to, (*path, "to"), notes)]
    low, high = (float(end or 0) for end in ends)
    if None not in ends:
        _check_range(words, low, high, path, notes)
    is_int = all(isinstance(end, int) for end in ends)
    return Range(low=low, high=high, is_log=words.log, is_int=is_int)


def _check_range(words: RangeWords, low: float, high: float, path: Path, notes: Notes) -> None:
    if low >= high:
        fix = "exchange from and to" if low > high else "write a list with one value, as in [1]"
        notes.error(path, f"is empty: from {words.from_} to {words.to}", fix, None)
    if words.log and low <= 0:
        fix = "use a small number such as 1e-6, or remove log"
        notes.error((*path, "from"), "must be more than 0 with log", fix, words.from_)


def _number(value: float | str, path: Path, notes: Notes) -> float | int | None:
    """The number; None, after a note, if it is none. Whole numbers stay whole."""
    text = str(value).strip()
    if not re.fullmatch(NUMBER, text):
        notes.error(path, "must be a number", "for example 0.001 or 1e-3", value)
        return None
    if abs(float(text)) > LARGEST:
        notes.error(path, f"must be at most {LARGEST:g}, and at least {-LARGEST:g}", "", value)
        return None
    return int(text) if _WHOLE.fullmatch(text) else float(text)


# --- what follows from all parameters


def _usual_sampler(over: dict[str, Parameter]) -> Sampler:
    return "tpe" if any(isinstance(parameter, Range) for parameter in over.values()) else "grid"


def _trials(words: SweepFile, over: dict[str, Parameter], sampler: Sampler, notes: Notes) -> int:
    size = grid_size(over)
    if sampler == "grid" and size is None:
        endless = next(name for name in over if grid_size({name: over[name]}) is None)
        fix = "give a list of values, or use the sampler random or tpe"
        notes.error(("over", endless), "has no end of values, and the sampler grid tries all of them", fix)
    if any(problem.path == ("trials",) for problem in notes.problems):
        return 1
    if words.trials is not None:
        return min(words.trials, size) if sampler == "grid" and size else words.trials
    if sampler != "grid":
        return min(USUAL_TRIALS, size or USUAL_TRIALS)
    if size and size > MOST_TRIALS:
        text = f"must be given: there are {size:,} combinations, and at most {MOST_TRIALS} trials"
        notes.error(("trials",), text, "for example trials: 100, with the sampler random")
    return size or 1


# --- and back


def words(spec: SweepSpec) -> Manifest:
    """The words of the file, without that of the job."""
    written = {
        "name": spec.name,
        "over": {name: _over_word(parameter) for name, parameter in spec.over.items()},
        "objective": str(spec.objective),
        "trials": spec.trials,
        "parallel": spec.parallel,
        "sampler": spec.sampler,
        "prune": spec.prune,
        "seed": spec.seed,
        "deadline": spec.deadline,
        "retryTrials": spec.retry_trials,
        "serviceAccount": spec.service_account or None,
    }
    return {word: value for word, value in written.items() if value is not None}


def _over_word(parameter: Parameter) -> Any:
    if isinstance(parameter, Choice):
        return list(parameter.values)
    ends = [int(end) if parameter.is_int else end for end in (parameter.low, parameter.high)]
    return {"from": ends[0], "to": ends[1], "log": parameter.is_log}


# --- options


def over_words(text: str) -> tuple[str, dict[str, Any] | list[Any]]:
    """Reads `--over lr=1e-4..1e-1:log` or `--over batch=32,64` as the words of a sweep file."""
    name, sign, values = text.partition("=")
    if not sign or not name or not values:
        raise Usage(f"--over {text}: must be NAME=FROM..TO, NAME=FROM..TO:log or NAME=VALUE,VALUE")
    if match := _RANGE.fullmatch(values):
        if match["scale"] not in (None, "log"):
            raise Usage(f"--over {text}: {match['scale']} is unknown; only :log may follow a range")
        return name, {"from": match["low"], "to": match["high"], "log": match["scale"] is not None}
    parts = values.split(",")
    if "" in parts:
        raise Usage(f"--over {text}: a value between two commas is empty; remove one of them")
    return name, [_value(part) for part in parts]


def _value(text: str) -> Any:
    """The value as a file has it: a number keeps its text if the program would be given another one."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text) if str(int(text)) == text and len(text) <= MOST_DIGITS else text
    return float(text) if re.fullmatch(NUMBER, text) and isfinite(float(text)) else text
