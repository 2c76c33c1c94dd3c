"""Writes schemas/jobfile.json and schemas/sweepfile.json, by which editors check such files.

python tools/json_schemas.py
"""

import json
from pathlib import Path

from tfyard.formats.json_schema import SCHEMAS

FOLDER = Path(__file__).parents[1] / "schemas"

if __name__ == "__main__":
    for kind, schema in SCHEMAS.items():
        (FOLDER / f"{kind}.json").write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")
