"""A Python script or module as a job: the words of the job file that does the same."""

import os
from pathlib import Path

from tfyard.errors import Usage
from tfyard.formats.metadata import as_name
from tfyard.local.settings import Settings
from tfyard.model import Manifest
from tfyard.model.expansion import escape
from tfyard.model.names import DEFAULT_IMAGE


def job_file(settings: Settings) -> Path:
    """Where the job file of the script is, or would be if it is not saved."""
    return Path(settings.save or "job.yaml").resolve()


def words(settings: Settings) -> Manifest:
    """As it runs here: in the caller's working directory, as with `python SCRIPT`."""
    variables = {name: escape(value) for name, value in settings.variables.items()}
    return {
        "name": settings.name or as_name(_stem(settings), "training"),
        "image": DEFAULT_IMAGE,
        "run": [escape(word) for word in ("python", *_program(settings), *settings.args)],
        "workdir": str(Path.cwd()),
        **({"env": variables} if variables else {}),
        **({"tf1": True} if settings.tf1 else {}),
        **settings.policies,
        **(settings.roles or {"worker": 1}),
    }


def saved_words(settings: Settings) -> Manifest:
    """The working directory is the code, so that the job means the same here and on a cluster."""
    if settings.module is None and _is_outside(settings.target):
        text = f"--save: {settings.target} is outside of this folder, which becomes the code of the job"
        raise Usage(f"{text}; run it from the folder of its project")
    found, code = words(settings), os.path.relpath(Path.cwd(), job_file(settings).parent)
    del found["workdir"]
    return {"name": found["name"], "image": found["image"], "code": code, **found}


def _stem(settings: Settings) -> str:
    return Path(settings.target).stem if settings.module is None else settings.module.rpartition(".")[2]


def _program(settings: Settings) -> list[str]:
    """What follows `python`."""
    if settings.module is not None:
        return ["-m", settings.module]
    if not Path(settings.target).is_file():
        raise Usage(f"{settings.target}: file not found")
    return [settings.target if _is_outside(settings.target) else os.path.relpath(settings.target)]


def _is_outside(path: str) -> bool:
    """Of the working directory."""
    return Path(os.path.relpath(path)).parts[0] == os.pardir
