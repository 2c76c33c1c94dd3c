"""A Python script or module as a job: the words of the job file that does the same."""

import os
from pathlib import Path

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.formats.metadata import as_name
from tfyard.model import Job, Manifest
from tfyard.model.expansion import escape
from tfyard.model.names import DEFAULT_IMAGE

from .options import JobOptions


def words(options: JobOptions) -> Manifest:
    """As it runs here: in the caller's working directory, as with `python SCRIPT`."""
    variables = {name: escape(value) for name, value in options.variables.items()}
    return {
        "name": options.name or as_name(_stem(options), "training"),
        "image": DEFAULT_IMAGE,
        "run": [escape(word) for word in ("python", *_program(options), *options.args)],
        "workdir": str(Path.cwd()),
        **({"env": variables} if variables else {}),
        **({"tf1": True} if options.tf1 else {}),
        **options.policies,
        **(options.roles or {"worker": 1}),
    }


def portable_words(options: JobOptions, folder: Path) -> Manifest:
    """The working directory is the code, so that the job means the same here and on a cluster. The code is
    relative to `folder`, that of the job file."""
    if options.module is None and _is_outside(options.target):
        text = f"{options.target} is outside of this folder, which becomes the code of the job"
        raise Usage(f"{text}; call tfyard from the folder of its project")
    found, code = words(options), os.path.relpath(Path.cwd(), folder)
    del found["workdir"]
    return {"name": found["name"], "image": found["image"], "code": code, **found}


def load(found: Manifest) -> Job:
    """The job that these words are. Each word is an option of that name."""
    try:
        return formats.load(found)
    except Invalid as error:
        problem = error.problems[0]
        told = f"{problem.message}; {problem.fix}" if problem.fix else problem.message
        raise Usage(f"--{problem.path[0]}: {told}") from None


def _stem(options: JobOptions) -> str:
    return Path(options.target).stem if options.module is None else options.module.rpartition(".")[2]


def _program(options: JobOptions) -> list[str]:
    """What follows `python`."""
    if options.module is not None:
        return ["-m", options.module]
    if not Path(options.target).is_file():
        raise Usage(f"{options.target}: file not found")
    return [options.target if _is_outside(options.target) else os.path.relpath(options.target)]


def _is_outside(path: str) -> bool:
    """Of the working directory."""
    return Path(os.path.relpath(path)).parts[0] == os.pardir
