"""A Python script or module as a job: the content of an equivalent job file."""

import os
from pathlib import Path

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.formats.metadata import as_name
from tfyard.model import Job, Manifest
from tfyard.model.expansion import escape
from tfyard.model.names import DEFAULT_IMAGE, OUT_VARIABLE

from .options import JobOptions

OUT, OUT_SIZE = "/out", "10Gi"
"""Mount path of a script's volume for outputs, and the size of its claim."""


def words(options: JobOptions) -> Manifest:
    """The job file for a run on this machine: in the caller's working directory, as with `python SCRIPT`."""
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
    """A job file with the working directory as its code, so that it means the same on this machine and on a
    cluster. The path of the code is relative to `folder`, the folder of the job file."""
    if is_outside(options):
        raise outside(options.target)
    fields, code = words(options), os.path.relpath(Path.cwd(), folder)
    del fields["workdir"]
    return {"name": fields["name"], "image": fields["image"], "code": code, **fields}


def with_output(fields: Manifest) -> Manifest:
    """The job file with a volume for outputs, as on a cluster, and for the trials of a sweep."""
    claim = {"claim": f"{fields['name']}-out", "size": OUT_SIZE, "at": OUT}
    return {**fields, "volumes": {"out": claim}, "env": {OUT_VARIABLE: OUT, **fields.get("env", {})}}


def load(fields: Manifest) -> Job:
    """The job of a job file; a problem is reported by the option of the field's name."""
    try:
        return formats.load(fields)
    except Invalid as error:
        problem = error.problems[0]
        text = f"{problem.message}; {problem.fix}" if problem.fix else problem.message
        raise Usage(f"--{problem.path[0]}: {text}") from None


def _stem(options: JobOptions) -> str:
    return Path(options.target).stem if options.module is None else options.module.rpartition(".")[2]


def _program(options: JobOptions) -> list[str]:
    """The arguments of `python`."""
    if options.module is not None:
        return ["-m", options.module]
    if Path(options.target).is_dir():
        raise Usage(f"{options.target} is a folder; name the script in it")
    if not Path(options.target).is_file():
        raise Usage(f"{options.target}: file not found")
    return [options.target if is_outside(options) else os.path.relpath(options.target)]


def is_outside(options: JobOptions) -> bool:
    """Whether the script is outside of the working directory."""
    return options.module is None and Path(os.path.relpath(options.target)).parts[0] == os.pardir


def outside(target: str) -> Usage:
    text = f"{target} is outside of this folder, which becomes the code of the job"
    return Usage(f"{text}; call tfyard from the folder of its project")
