"""Declared Structs -> structural schemas, in which a CRD describes its fields.

A structural schema is JSON schema with less freedom: one type per field, no `oneOf` of types, no references.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Union

from msgspec import Struct

from tfyard.formats.declarations.reading import Path
from tfyard.formats.declarations.structs import Type, fields, type_of

Schema = dict[str, Any]

KEEP_UNKNOWN: Schema = {"x-kubernetes-preserve-unknown-fields": True}
OPEN: Schema = {"type": "object", **KEEP_UNKNOWN}
INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
QUANTITY: Schema = {
    **INT_OR_STRING,
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)"
    r"|(\.[0-9]+))))?$",
}
_SCALARS: dict[Any, Schema] = {
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Any: KEEP_UNKNOWN,
}


def of(annotation: Any, special: Mapping[str, Schema] | None = None) -> Schema:
    """The schema of an annotation. `special` has schemas of fields that the declaration leaves open, such as
    `template`, by name."""
    declared = type_of(annotation)
    text = {"description": declared.description} if declared.description else {}
    return {**text, **_of_type(declared, special or {})}


def _of_type(declared: Type, special: Mapping[str, Schema]) -> Schema:
    if declared.kind is Struct:
        return _of_struct(declared.args[0], special)
    if declared.kind is Union:
        return _of_union(declared, special)
    if declared.kind is Literal:
        return {"type": "string", "enum": sorted(map(str, declared.args))}
    if declared.kind is int:
        return _of_int(declared)
    if declared.kind is list:
        return {"type": "array", "items": _of_item(declared.args[0], special)}
    if declared.kind is dict:
        return _of_dict(declared.args[0], special)
    return dict(_SCALARS[declared.kind])


def _of_struct(cls: type[Struct], special: Mapping[str, Schema]) -> Schema:
    known = fields(cls)
    properties = {
        key: {**of(field.annotation, special), **special.get(key, {})} for key, field in known.items()
    }
    required = [key for key, field in known.items() if field.is_required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _of_item(annotation: Any, special: Mapping[str, Schema]) -> Schema:
    """The schema of a list's items; items of any type are at least mappings."""
    schema = of(annotation, special)
    return OPEN if schema == KEEP_UNKNOWN else schema


def _of_dict(value: Any, special: Mapping[str, Schema]) -> Schema:
    if value is Any:
        return dict(OPEN)
    return {"type": "object", "additionalProperties": of(value, special)}


def _of_union(declared: Type, special: Mapping[str, Schema]) -> Schema:
    """A union of choices becomes one choice; text or a number is a quantity."""
    options = [of(option, special) for option in declared.args]
    if all("enum" in option for option in options):
        return {"type": "string", "enum": sorted({word for option in options for word in option["enum"]})}
    return dict(QUANTITY)


def _of_int(declared: Type) -> Schema:
    limits = {"minimum": declared.limit("ge"), "maximum": declared.limit("le")}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    return {"type": "integer", "format": "int64", **known}


def within(schema: Schema, steps: Path, more: Schema) -> Schema:
    """The schema with `more` added at that path; the step `*` is each item of a list or value of a mapping."""
    if not steps:
        return {**schema, **more}
    step, below = str(steps[0]), steps[1:]
    if step == "*":
        name = "items" if "items" in schema else "additionalProperties"
        return {**schema, name: within(schema[name], below, more)}
    properties = schema["properties"]
    return {**schema, "properties": {**properties, step: within(properties[step], below, more)}}
