"""The schema of the job file, written next to job files for editors."""

import json
from pathlib import Path

from tfyard.cli import files
from tfyard.errors import Usage


def write_schema(job_file: str) -> None:
    """In the folder that the first line of a job file names: completion works without a network."""
    from tfyard.formats.jobfile.json_schema import jobfile_schema

    folder = Path(job_file).resolve().parent / ".tfyard"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Usage(f"{folder}: {error.strerror}") from None
    files.write_text(str(folder / "jobfile.json"), json.dumps(jobfile_schema(), indent=2) + "\n")
