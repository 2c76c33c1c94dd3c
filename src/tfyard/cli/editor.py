"""Writes the JSON schema of the job file next to job files, for editors."""

import json
from pathlib import Path

from tfyard.cli import files
from tfyard.errors import Usage
from tfyard.formats.jobfile.json_schema import jobfile_schema


def write_schema(job_file: str) -> None:
    """Write it to the path in the first line of the job file: completion then works without a network."""
    folder = Path(job_file).resolve().parent / ".tfyard"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Usage(f"{folder}: {error.strerror}") from None
    files.write_text(str(folder / "jobfile.json"), json.dumps(jobfile_schema(), indent=2) + "\n")
