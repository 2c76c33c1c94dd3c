"""The JSON schema of the job file, for editors: generated from its words.

python -m tfyard.formats.jobfile.json_schema > schemas/jobfile.json
"""

import json
from typing import Any

import msgspec

from . import volumes
from .words import JobFile


def jobfile_schema() -> dict[str, Any]:
    (_root,), definitions = msgspec.json.schema_components([JobFile], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition.pop("title")
        definition["additionalProperties"] = False
        fields = definition["properties"]
        definition["properties"] = {name: _for_editors(field) for name, field in fields.items()}
    words = [volumes.WORDS.get(source, source) for source in volumes.SOURCES]
    definitions["VolumeWords"]["oneOf"] = [{"required": [word]} for word in words]
    top = definitions.pop("JobFile")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "tfyard job file, version 1"}
    return {**head, **top, "$defs": definitions}


def _for_editors(field: dict[str, Any]) -> dict[str, Any]:
    """An editor offers what it reads here: so neither null, nor a default of ours, nor one number twice."""
    field = {key: part for key, part in field.items() if key != "default"}
    options = [option for option in field.pop("anyOf", []) if option != {"type": "null"}]
    if {"type": "number"} in options:
        options = [option for option in options if option != {"type": "integer"}]
    if len(options) == 1:
        return {**field, **options[0]}
    return {**field, "oneOf": options} if options else field


if __name__ == "__main__":
    print(json.dumps(jobfile_schema(), indent=2))
