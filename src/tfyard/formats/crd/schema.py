"""Declared Structs as the structural schemas in which a CRD describes its fields.

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
    """`special`: schemas for fields of that name which the declaration leaves open, such as `template`."""
    found = type_of(annotation)
    text = {"description": found.description} if found.description else {}
    return {**text, **_of_type(found, special or {})}


def _of_type(found: Type, special: Mapping[str, Schema]) -> Schema:
    if found.kind is Struct:
        return _of_struct(found.args[0], special)
    if found.kind is Union:
        return _of_union(found, special)
    if found.kind is Literal:
        return {"type": "string", "enum": sorted(map(str, found.args))}
    if found.kind is int:
        return _of_int(found)
    if found.kind is list:
        return {"type": "array", "items": _of_item(found.args[0], special)}
    if found.kind is dict:
        return _of_dict(found.args[0], special)
    return dict(_SCALARS[found.kind])


def _of_struct(cls: type[Struct], special: Mapping[str, Schema]) -> Schema:
    known = fields(cls)
    properties = {
        key: {**of(field.annotation, special), **special.get(key, {})} for key, field in known.items()
    }
    required = [key for key, field in known.items() if field.is_required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _of_item(annotation: Any, special: Mapping[str, Schema]) -> Schema:
    """An item of a list; one of any type is at least a mapping."""
    schema = of(annotation, special)
    return OPEN if schema == KEEP_UNKNOWN else schema


def _of_dict(value: Any, special: Mapping[str, Schema]) -> Schema:
    if value is Any:
        return dict(OPEN)
    return {"type": "object", "additionalProperties": of(value, special)}


def _of_union(found: Type, special: Mapping[str, Schema]) -> Schema:
    """Choices become one choice; text or a number is a quantity."""
    options = [of(option, special) for option in found.args]
    if all("enum" in option for option in options):
        return {"type": "string", "enum": sorted({word for option in options for word in option["enum"]})}
    return dict(QUANTITY)


def _of_int(found: Type) -> Schema:
    limits = {"minimum": found.limit("ge"), "maximum": found.limit("le")}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    return {"type": "integer", "format": "int64", **known}


def within(schema: Schema, steps: Path, more: Schema) -> Schema:
    """The schema with `more` added at that path; the step `*` is each item of a list or value of a mapping."""
    if not steps:
        return {**schema, **more}
    step, rest = str(steps[0]), steps[1:]
    if step == "*":
        name = "items" if "items" in schema else "additionalProperties"
        return {**schema, name: within(schema[name], rest, more)}
    properties = schema["properties"]
    return {**schema, "properties": {**properties, step: within(properties[step], rest, more)}}
