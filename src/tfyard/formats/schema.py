"""The JSON schema of the job file, for editors: generated from its words.

python -m tfyard.formats.schema > schemas/jobfile.json
"""

import json
from typing import Any

import msgspec

from .jobfile.words import JobFile


def jobfile_schema() -> dict[str, Any]:
    (_root,), definitions = msgspec.json.schema_components([JobFile], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition["additionalProperties"] = False
        for field in definition.get("properties", {}).values():
            field.pop("default", None)  # a default of ours is no default to type in
    top = definitions.pop("JobFile")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "tfyard job file, version 1"}
    return {**head, **{key: part for key, part in top.items() if key != "title"}, "$defs": definitions}


if __name__ == "__main__":
    print(json.dumps(jobfile_schema(), indent=2))
