"""The JSON schemas of the job file and the sweep file for editors, generated from the declarations of their words.

`python tools/json_schemas.py` writes them into schemas/.
"""

from typing import Any, Literal, Union

from msgspec import Struct

from .declarations.structs import Type, fields, parts, type_of
from .jobfile import volumes
from .jobfile.words import JobFile
from .sweepfile.words import SweepFile

Schema = dict[str, Any]

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
_LIMITS = {"ge": "minimum", "le": "maximum", "pattern": "pattern"}


def jobfile_schema() -> Schema:
    definitions = _definitions_below(JobFile)
    definitions["VolumeWords"]["oneOf"] = [{"required": [word]} for word in volumes.SOURCES.values()]
    return _json_schema(JobFile, "tfyard job file, version 1", definitions)


def sweepfile_schema() -> Schema:
    return _json_schema(SweepFile, "tfyard sweep file", _definitions_below(SweepFile))


def _json_schema(file: type[Struct], title: str, definitions: dict[str, Schema]) -> Schema:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **_of_struct(file), "$defs": dict(sorted(definitions.items()))}


def _definitions_below(file: type[Struct]) -> dict[str, Schema]:
    return {cls.__name__: _of_struct(cls) for cls in _structs(file) - {file}}


def _structs(cls: type[Struct]) -> set[type[Struct]]:
    """The Struct itself and all Structs below its fields."""
    structs = {cls}
    waiting = [type_of(field.annotation) for field in fields(cls).values()]
    while waiting:
        part = waiting.pop()
        waiting += parts(part)
        if part.kind is Struct:
            structs |= _structs(part.args[0])
    return structs


def _of_struct(cls: type[Struct]) -> Schema:
    known = fields(cls)
    schema: Schema = {
        "description": str(cls.__doc__),
        "type": "object",
        "properties": {key: _of_field(type_of(field.annotation)) for key, field in known.items()},
        "required": [key for key, field in known.items() if field.is_required],
        "additionalProperties": False,
    }
    return {key: part for key, part in schema.items() if part != []}


def _of_field(declared: Type) -> Schema:
    """The schema of a field, without null and with one type of number, because editors offer all its options."""
    text = {"description": declared.description}
    if declared.kind is not Union:
        return {**text, **_of_type(declared)}
    options = [_of_type(part) for part in parts(declared)]
    if {"type": "number"} in options:
        options = [option for option in options if option != {"type": "integer"}]
    return {**text, "oneOf": options}


def _of_type(declared: Type) -> Schema:
    if declared.kind is Struct:
        return {"$ref": f"#/$defs/{declared.args[0].__name__}"}
    if declared.kind is Literal:
        return {"enum": sorted(declared.args)}
    if declared.kind is Union:
        null = [{"type": "null"}] if declared.is_optional else []
        return {"anyOf": [*map(_of_type, parts(declared)), *null]}
    if declared.kind not in _TYPES:
        return {}
    limits = {word: declared.limit(name) for name, word in _LIMITS.items()}
    schema = {
        "type": _TYPES[declared.kind],
        **{word: limit for word, limit in limits.items() if limit is not None},
    }
    below = [inside for part in parts(declared) if (inside := _of_type(part))]
    inner = "items" if declared.kind is list else "additionalProperties"
    return {**schema, inner: below[0]} if below else schema


SCHEMAS = {"jobfile": jobfile_schema, "sweepfile": sweepfile_schema}
