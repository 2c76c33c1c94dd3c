"""Declared Structs as the structural schemas in which a CRD describes its fields.

A structural schema is JSON schema with the freedom taken out: one type per place, no `oneOf` of types, no
references. So the walk is ours; the texts are those of the declarations.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import inspect as mi

from tfyard.formats.declarations.reading import Path

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
WIRE_NAMES = {"runtimeId": "RuntimeId", "isDefaultPs": "IsDefaultPS"}
"""The two fields to which the first operator gave no JSON name: Go's own are stored in clusters."""

_SCALARS: dict[type[mi.Type], Schema] = {
    mi.FloatType: {"type": "number"},
    mi.StrType: {"type": "string"},
    mi.BoolType: {"type": "boolean"},
    mi.DateTimeType: {"type": "string", "format": "date-time"},
    mi.AnyType: KEEP_UNKNOWN,
}


def of(kind: mi.Type, special: Mapping[str, Schema] | None = None) -> Schema:
    """`special` are schemas for fields of that name which the declaration leaves open: `template`."""
    special = special or {}
    if isinstance(kind, mi.Metadata):
        text = (kind.extra_json_schema or {}).get("description")
        return {**({"description": text} if text else {}), **of(kind.type, special)}
    if isinstance(kind, mi.UnionType):
        return _of_union(kind, special)
    if isinstance(kind, mi.LiteralType):
        return {"type": "string", "enum": sorted(map(str, kind.values))}
    if isinstance(kind, mi.IntType):
        return _of_int(kind)
    if isinstance(kind, mi.ListType | mi.VarTupleType):
        return {"type": "array", "items": _of_part(kind.item_type, special)}
    if isinstance(kind, mi.DictType):
        return _of_dict(kind, special)
    if isinstance(kind, mi.StructType):
        return of_struct(kind, special)
    return dict(_SCALARS[type(kind)])


def of_struct(kind: mi.StructType, special: Mapping[str, Schema] | None = None) -> Schema:
    special = special or {}
    fields = {WIRE_NAMES.get(f.encode_name, f.encode_name): f for f in kind.fields}
    properties = {name: {**of(f.type, special), **special.get(name, {})} for name, f in fields.items()}
    required = [name for name, field in fields.items() if field.required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _of_part(kind: mi.Type, special: Mapping[str, Schema]) -> Schema:
    """An item of a list; one that nobody describes is at least a mapping."""
    schema = of(kind, special)
    return OPEN if schema == KEEP_UNKNOWN else schema


def _of_dict(kind: mi.DictType, special: Mapping[str, Schema]) -> Schema:
    if isinstance(kind.value_type, mi.AnyType):
        return dict(OPEN)
    return {"type": "object", "additionalProperties": of(kind.value_type, special)}


def _of_union(kind: mi.UnionType, special: Mapping[str, Schema]) -> Schema:
    """`or nothing` is an absent field, text or number an amount, and two choices are one."""
    options = [of(option, special) for option in kind.types if not isinstance(option, mi.NoneType)]
    if len(options) == 1:
        return options[0]
    if all("enum" in option for option in options):
        return {"type": "string", "enum": sorted({word for option in options for word in option["enum"]})}
    return dict(QUANTITY)


def _of_int(kind: mi.IntType) -> Schema:
    limits = {"minimum": kind.ge, "maximum": kind.le}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    return {"type": "integer", "format": "int64", **known}


def within(schema: Schema, steps: Path, more: Schema) -> Schema:
    """The schema with `more` at that place; the step `*` is each item of a list or each value of a mapping."""
    if not steps:
        return {**schema, **more}
    step, rest = str(steps[0]), steps[1:]
    if step == "*":
        name = "items" if "items" in schema else "additionalProperties"
        return {**schema, name: within(schema[name], rest, more)}
    properties = schema["properties"]
    return {**schema, "properties": {**properties, step: within(properties[step], rest, more)}}
