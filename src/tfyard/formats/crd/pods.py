"""The schema of a pod template: in full, and with only the fields that rules use.

Unknown fields are kept at every depth, so that fields of later Kubernetes releases reach the pod. The descriptions
are Kubernetes' own; they are most of the CRD's size, and a second copy would exceed the limit of etcd.
"""

from typing import Any

from tfyard.formats.pods.fields import definitions

from .schema import INT_OR_STRING, KEEP_UNKNOWN, OPEN, QUANTITY, Schema

MAX_CONTAINERS = 64
"""Without a bound, the API server rejects rules over containers because of their estimated cost."""

_WORDS = {"description": "description", "type": "type", "format": "format"}
_LISTS = {
    "listType": "x-kubernetes-list-type",
    "listMapKeys": "x-kubernetes-list-map-keys",
    "mapType": "x-kubernetes-map-type",
}
_KEY_DEFAULTS = {"protocol": "TCP"}
"""Default of a list item's key that is absent: the server identifies items by their keys."""

_TEMPLATE_METADATA: Schema = {
    **OPEN,
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}
"""Times are not declared: Go clients write `creationTimestamp: null`, which a declared field would reject."""

_SPECIAL: dict[str, Schema] = {
    "Quantity": QUANTITY,
    "IntOrString": INT_OR_STRING,
    "Time": {"type": "string", "format": "date-time"},
    "FieldsV1": OPEN,
    "ObjectMeta": OPEN,
    "EphemeralContainer": {**OPEN, "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
"""Schemas that replace Kubernetes' definitions. Ephemeral containers need no fields: templates have none."""


_WHOLE: Schema = {"x-kubernetes-map-type": "atomic"}
_OWNED_AS_A_WHOLE = ("Container", "Volume")
"""The server records the owner of each field in managedFields, which it reads and writes with every change of the
job or its status. The fields of containers and volumes would be most of it. One owner per container or volume is
enough: other clients add their own, or change fields beside them, such as a node selector."""


def described() -> Schema:
    """The full schema of PodTemplateSpec, for `kubectl explain` and for type checks at admission."""
    schema = _definition("PodTemplateSpec", definitions())
    metadata = {**schema["properties"]["metadata"], **_TEMPLATE_METADATA}
    return {**schema, "properties": {**schema["properties"], "metadata": metadata}}


def open_template() -> Schema:
    """A schema of PodTemplateSpec that declares only the fields that rules use."""
    text: Schema = {"type": "string"}
    container = {**OPEN, **_WHOLE, "required": ["name"], "properties": {"name": text, "image": text}}
    containers: Schema = {
        "type": "array",
        "items": container,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    lists = {"containers": containers, "initContainers": containers}
    spec = {**OPEN, "required": ["containers"], "properties": lists}
    return {**OPEN, "properties": {"metadata": OPEN, "spec": spec}}


def _definition(name: str, known: dict[str, Any]) -> Schema:
    if name in _SPECIAL:
        return _SPECIAL[name]
    definition = known[name]
    fields = {key: _field(field, known) for key, field in definition.get("fields", {}).items()}
    whole = _WHOLE if name in _OWNED_AS_A_WHOLE else {}
    schema: Schema = {**OPEN, **whole, **({"properties": fields} if fields else {})}
    for word in ("description", "required"):
        if word in definition:
            schema[word] = definition[word]
    return schema


def _field(field: dict[str, Any], known: dict[str, Any]) -> Schema:
    schema: Schema = _definition(field["ref"], known) if "ref" in field else {}
    schema = {**schema, **{new: field[old] for old, new in {**_WORDS, **_LISTS}.items() if old in field}}
    if "items" in field:
        return {**schema, "items": _with_keys(_field(field["items"], known), field.get("listMapKeys", []))}
    if "values" in field:
        return {**schema, "additionalProperties": _field(field["values"], known)}
    return {**schema, **KEEP_UNKNOWN} if schema == {"type": "object"} else schema


def _with_keys(item: Schema, keys: list[str]) -> Schema:
    properties = dict(item.get("properties", {}))
    for key in keys:
        if key not in item.get("required", []):
            properties[key] = {**properties[key], "default": _KEY_DEFAULTS.get(key, "")}
    return {**item, "properties": properties} if keys else item
