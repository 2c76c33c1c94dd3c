"""Whether a job can be the job of a sweep: every problem at once, of the file that it is about."""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.formats import limits
from tfyard.formats.declarations.reading import Notes, Path
from tfyard.formats.jobfile.load import where
from tfyard.formats.yaml.source import Document, locate
from tfyard.model import Job, Problem
from tfyard.model.spelling import closest
from tfyard.model.sweep import LAST_TRIAL, Choice, Parameter, SweepSpec, trial_name, value_text, variable_of

from . import filling

TAKEN = frozenset(
    (
        "HOME",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "PATH",
        "PYTHONHOME",
        "PYTHONPATH",
        "SHELL",
        "TF_CONFIG",
        "TMPDIR",
    )
)
"""Variables without which a program does not find its files, its modules or its peers."""


def named(spec: SweepSpec, job: Job) -> SweepSpec:
    return spec if spec.name else replace(spec, name=f"{job.name}-sweep")


def check(spec: SweepSpec, job: Job, last: str = LAST_TRIAL) -> None:
    """Raises Usage for a job that cannot be the job of this sweep, which has a name. `last`: the longest end of
    the names of its trials."""
    problems = [*of_sweep(spec, job, last), *of_job(spec, job)]
    if problems:
        raise Usage("\n".join(f"{each.message}; {each.fix}" for each in problems))


def of_sweep(spec: SweepSpec, job: Job, last: str = LAST_TRIAL) -> tuple[Problem, ...]:
    """Problems of the sweep file with this job."""
    notes = Notes()
    if problem := _name_problem(named(spec, job), job, last):
        notes.extend([problem if spec.name else replace(problem, value=UNSET)])
    placeholders, unprotected = filling.placeholders(job), filling.unprotected(job)
    for name, parameter in spec.over.items():
        if name not in placeholders and variable_of(name) in TAKEN:
            text = (
                f"the job does not name {{{name}}}, so {name} would replace the variable {variable_of(name)}"
            )
            notes.error(("over", name), text, "name it in the job, or rename it")
        if name in unprotected:
            notes.extend(_not_plain(name, parameter))
    return tuple(notes.problems)


def of_job(spec: SweepSpec, job: Job, document: Document | None = None) -> tuple[Problem, ...]:
    """Problems of the job, with their positions in its document."""
    problems = [_misspelt(name, meant, document) for name, meant in misspelt(job, list(spec.over)).items()]
    return tuple(problems) if document is None else locate(problems, document)


def misspelt(job: Job, parameters: list[str]) -> dict[str, str]:
    """Names in braces that are no parameters, but look like one -> that parameter."""
    unused = sorted(set(parameters) - filling.placeholders(job))
    others = filling.placeholders(job, filling.ALMOST) - set(parameters)
    close = {name: closest(name.strip(), unused) for name in sorted(others)}
    return {name: parameter for name, parameter in close.items() if parameter is not None}


def _misspelt(name: str, meant: str, document: Document | None) -> Problem:
    text = f"{{{name}}} in the job is no parameter of the sweep"
    place, value = _place(document.data if document else None, f"{{{name}}}") or ((), name)
    return Problem(place, text, f"did you mean {{{meant}}}?", value)


def _place(data: Any, text: str, path: Path = ()) -> tuple[Path, str] | None:
    """The path of the first value with this text, and the value."""
    if isinstance(data, str):
        return (path, data) if text in data else None
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return next(filter(None, (_place(part, text, (*path, key)) for key, part in parts)), None)


def _not_plain(name: str, parameter: Parameter) -> Iterator[Problem]:
    """The values of a parameter that the job names where a shell line has no quoting."""
    text = f"cannot be quoted where the job has {{{name}}}: in a comment, a here-document or backticks"
    for at, value in enumerate(parameter.values if isinstance(parameter, Choice) else ()):
        if not filling.is_plain(value_text(value)):
            yield Problem(("over", name, at), text, "let the program read it from a variable", value)


def _name_problem(spec: SweepSpec, job: Job, last: str) -> Problem | None:
    """The names of the pods of each trial must not be too long."""
    size = len(spec.name)
    most = next((size for size in range(size, 0, -1) if _fits(spec.name[:size] + last, job)), 0)
    if most == size:
        return None
    trial = trial_name(spec.name, 1)
    text = f"the name {spec.name} is too long: its trials are called {trial}, and their pods {trial}-worker-0"
    return Problem(("name",), text, f"give a name of at most {most} characters", spec.name)


def _fits(name: str, job: Job) -> bool:
    notes = Notes()
    limits.check(replace(job, name=name), where(job), notes)
    return not any(problem.path == ("name",) for problem in notes.problems)
