"""Help for editors: the job file's schema, beside the files that we write."""

import json
from pathlib import Path


def write_schema(beside: str) -> None:
    """Next to a job file, where its first line says: completion then works without a network."""
    from tfyard.formats.schema import jobfile_schema

    folder = Path(beside).resolve().parent / ".tfyard"
    folder.mkdir(exist_ok=True)
    (folder / "jobfile.json").write_text(json.dumps(jobfile_schema(), indent=2) + "\n")
