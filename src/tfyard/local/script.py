"""A Python script as a job: the words of the job file that does the same."""

import os
from pathlib import Path

from tfyard.errors import Usage
from tfyard.formats.metadata import as_name
from tfyard.local.settings import Settings
from tfyard.model import Manifest
from tfyard.model.names import DEFAULT_IMAGE


def job_file(settings: Settings) -> Path:
    """Where the job file of the script is, or would be if it is not saved."""
    return Path(settings.save or "job.yaml").resolve()


def words(settings: Settings) -> Manifest:
    script = Path(settings.target)
    if not script.is_file():
        raise Usage(f"{settings.target}: file not found")
    variables = settings.variables
    return {
        "name": settings.name or as_name(script.stem, "training"),
        "image": DEFAULT_IMAGE,
        "code": os.path.relpath(script.parent.resolve(), job_file(settings).parent),
        "run": ["python", script.name, *settings.args],
        **({"env": variables} if variables else {}),
        **(settings.roles or {"worker": 1}),
    }
