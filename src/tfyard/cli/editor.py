"""Writes the JSON schema of the job file or the sweep file next to such files, for editors."""

import json
from pathlib import Path

from tfyard.cli import files
from tfyard.errors import Usage
from tfyard.formats.json_schema import SCHEMAS


def write_schema(file: str, kind: str = "jobfile") -> None:
    """Write it to the path in the first line of the file: completion then works without a network."""
    folder = Path(file).resolve().parent / ".tfyard"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Usage(f"{folder}: {error.strerror}") from None
    files.write_text(str(folder / f"{kind}.json"), json.dumps(SCHEMAS[kind](), indent=2) + "\n")
