"""A sweep as a command is given it: a sweep file, or options with a job or a script."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.formats import sweepfile
from tfyard.formats.sweepfile import fitting
from tfyard.job_input import files, script
from tfyard.job_input.files import SweepGiven
from tfyard.job_input.load import from_documents
from tfyard.job_input.options import JobOptions
from tfyard.model import Job, Problem
from tfyard.model.sweep import SweepSpec


class SweepOptions(Struct, frozen=True, kw_only=True):
    """The options of `tfyard sweep`, as the user wrote them."""

    over: tuple[str, ...] = ()
    objective: str = ""
    name: str | None = None
    trials: int | None = None
    parallel: int | None = None
    sampler: str | None = None
    prune: str | None = None
    seed: int | None = None
    deadline: str | None = None
    retry_trials: int | None = None


NONE = SweepOptions()


class GivenSweep(Struct, frozen=True):
    spec: SweepSpec
    job: str
    """Path of the job file or script; empty: a module."""


class CheckedFiles(Struct, frozen=True):
    sweep: sweepfile.SweepDocument | None
    problems: tuple["ProblemOfFile", ...] = ()


class ProblemOfFile(Struct, frozen=True):
    """A problem of a sweep file, or of the file of its job."""

    problem: Problem
    name: str
    text: formats.Document | Sequence[str]


def check_files(document: formats.Document, name: str) -> CheckedFiles:
    """Every problem of a sweep file and of its job. `name`: path of the sweep file, to which that of the job is
    relative."""
    checked = sweepfile.check(document)
    problems = [ProblemOfFile(each, document.name, document) for each in checked.problems]
    if checked.sweep is not None and checked.sweep.job:
        problems += _of_job(checked.sweep, document, name, is_read=not checked.problems)
    return CheckedFiles(checked.sweep, tuple(problems))


def _of_job(
    sweep: sweepfile.SweepDocument, document: formats.Document, name: str, *, is_read: bool
) -> Iterator[ProblemOfFile]:
    """Problems of the job; if the sweep could be read, also whether the two fit together."""
    file = files.beside(name, sweep.job)
    try:
        loaded, job_document = job(file)
    except Invalid as error:
        for each in error.problems:
            yield ProblemOfFile(each, error.name or file, error.text)
        return
    except Usage as error:
        yield _located(Problem(("job",), str(error), "", sweep.job), document)
        return
    for each in fitting.of_sweep(sweep.spec, loaded) if is_read else ():
        yield _located(each, document)
    for each in fitting.of_job(sweep.spec, loaded, job_document) if is_read else ():
        yield ProblemOfFile(each, file, job_document or ())


def _located(problem: Problem, document: formats.Document) -> ProblemOfFile:
    (located,) = formats.locate((problem,), document)
    return ProblemOfFile(located, document.name, document)


def job(file: str) -> tuple[Job, formats.Document | None]:
    """The job of a file or a script, as a run on this machine has it, and its document."""
    if file.endswith(".py"):
        return script.load(script.words(JobOptions(target=file))), None
    loaded = from_documents(files.read_documents(file), file, uses_images=False)
    return loaded.job, loaded.text if isinstance(loaded.text, formats.Document) else None


def of_file(given: SweepGiven, options: SweepOptions = NONE) -> GivenSweep:
    """The sweep of a sweep file; options win over its words. Raises Invalid with every problem of the file."""
    changed_words = words(options)
    if not changed_words:
        read = sweepfile.load(given.document)
    else:
        sweepfile.load(given.document)  # its own problems have positions
        read = _of_words({**given.document.data, **changed_words})
    return GivenSweep(read.spec, files.beside(given.file, read.job))


def of_options(target: str, options: SweepOptions) -> GivenSweep:
    """The sweep of a job file or script; a problem is reported by the option of the word's name."""
    return GivenSweep(_of_words({"job": target, **words(options)}).spec, target)


def words(options: SweepOptions) -> dict[str, Any]:
    """The words of a sweep file that the options stand for."""
    plain = {
        "name": options.name,
        "objective": options.objective or None,
        "trials": options.trials,
        "parallel": options.parallel,
        "sampler": options.sampler,
        "prune": options.prune,
        "seed": options.seed,
        "deadline": options.deadline,
        "retryTrials": options.retry_trials,
        "over": _over(options.over),
    }
    return {word: value for word, value in plain.items() if value is not None}


def _over(texts: Sequence[str]) -> dict[str, Any] | None:
    pairs = list(map(sweepfile.over_words, texts))
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Usage(f"--over {twice}: is given twice")
    return dict(pairs) or None


def _of_words(data: dict[str, Any]) -> sweepfile.SweepDocument:
    try:
        return sweepfile.load(data)
    except Invalid as error:
        raise Usage("\n".join(_as_option(problem) for problem in error.problems)) from None


def _as_option(problem: Problem) -> str:
    first, *rest = problem.path
    option = {"retryTrials": "retry-trials"}.get(str(first), first)
    place = "".join(f"[{step}]" if isinstance(step, int) else f" {step}" for step in rest)
    text = f"--{option}{place}: {problem.message}"
    return f"{text}; {problem.fix}" if problem.fix else text
