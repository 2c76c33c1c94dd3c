"""Loads the one job of a file, with the file's other objects. This module prints nothing."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tfyard import formats
from tfyard.errors import Usage
from tfyard.job_input import files
from tfyard.model import Job, Manifest, Problem


class Loaded(Struct, frozen=True, kw_only=True):
    job: Job
    file: Path
    """The file; `code` is relative to its folder."""
    others: list[Manifest] = []
    """The other objects of the file."""
    changes: tuple[str, ...] | None = None
    """Differences from the workloads that the job was read from; None: it was read from a job."""
    warnings: tuple[Problem, ...] = ()
    text: formats.Document | Sequence[str] = ()
    """The document that the warnings are about."""


def from_documents(documents: list[formats.Document], name: str, *, uses_images: bool) -> Loaded:
    """The one job of a file's documents. `name`: of the file. `uses_images`: whether tasks run in their images."""
    files.refuse_sweep(documents, name)
    jobs = [document for document in documents if formats.is_job(document.data)]
    file = Path.cwd() / "-" if name == "-" else Path(name).resolve()
    others = [d.data for d in documents if d not in jobs and isinstance(d.data, dict)]
    if files.has_only_workloads(documents):
        return _from_workloads(documents, file, others, uses_images=uses_images)
    if len(jobs) != 1:
        text = f"has {len(jobs)} jobs" if jobs else "has no TFJob, no tfyard job file and no workload"
        is_text = not any(isinstance(document.data, dict | list) for document in documents)
        fix = "the name of a Python script must end with .py" if is_text else "give a file with one"
        raise Usage(f"{files.display_name(name)} {text}; {fix}")
    job, warnings = files.load(jobs[0], name, uses_images=uses_images)
    return Loaded(job=job, file=file, others=others, warnings=warnings, text=jobs[0])


def _from_workloads(
    documents: list[formats.Document], file: Path, others: list[Manifest], *, uses_images: bool
) -> Loaded:
    converted = files.load_workloads(documents, documents[0].name, uses_images=uses_images)
    return Loaded(
        job=converted.one,
        file=file,
        others=others,
        changes=tuple(converted.said),
        warnings=tuple(problem for _, problem in converted.problems),
        text=documents[0],
    )
