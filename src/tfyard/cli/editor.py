"""Help for editors: the job file's schema, beside the files that we write."""

import json
from pathlib import Path

from tfyard.cli import files
from tfyard.errors import Usage


def write_schema(beside: str) -> None:
    """Next to a job file, where its first line says: completion then works without a network."""
    from tfyard.formats.jobfile.json_schema import jobfile_schema

    folder = Path(beside).resolve().parent / ".tfyard"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Usage(f"{folder}: {error.strerror}") from None
    files.write_text(str(folder / "jobfile.json"), json.dumps(jobfile_schema(), indent=2) + "\n")
