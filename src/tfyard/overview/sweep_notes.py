"""What is said of a sweep before it starts, because nothing in its files says it."""

from collections.abc import Iterator

from tfyard.formats.sweepfile import filling
from tfyard.model import Job
from tfyard.model.sweep import SweepSpec


def notes(spec: SweepSpec, job: Job) -> Iterator[str]:
    """`spec`: with its name; `job`: with the names of the parameters in braces."""
    for name, variable in filling.variables(job, spec.over).items():
        yield f"{name} is the variable {variable} of each trial: the job does not name {{{name}}}"
    if paths := filling.own_folders(job):
        folder = f"{spec.name}-…/001 and so on"
        shares = "`readOnly: true` at a volume lets all read the same data"
        yield f"each trial has a folder of its own in {', '.join(paths)}: {folder}; {shares}"
