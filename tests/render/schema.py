"""Checks objects by Kubernetes' own OpenAPI: unknown fields, wrong types, missing fields.

The table is made by tools/podschema.py. TFJob is no kind of Kubernetes; its pod templates are checked.
"""

import json
from collections.abc import Iterator
from typing import Any

from .calling import HERE

DEFINITIONS: dict[str, dict[str, str]] = json.loads((HERE / "data" / "kinds.json").read_text())["definitions"]
SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "time": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "number": (int, float),
    "quantity": (str, int, float),
    "int-or-string": (str, int),
}


def problems(manifest: dict[str, Any]) -> list[str]:
    if manifest["kind"] == "TFJob":
        specs = manifest["spec"]["tfReplicaSpecs"].items()
        return [text for role, spec in specs for text in _check(spec["template"], "PodTemplateSpec", role)]
    kind = f"{manifest['apiVersion']}/{manifest['kind']}"
    if kind not in DEFINITIONS:
        return [f"{kind} is no kind of this table"]
    return list(_check(manifest, kind, manifest["kind"]))


def _check(value: Any, word: str, path: str) -> Iterator[str]:
    if word.startswith("["):
        inner = word[1:].rpartition("]")[0]
        if not isinstance(value, list):
            yield f"{path}: must be a list"
        else:
            for i, item in enumerate(value):
                yield from _check(item, inner, f"{path}[{i}]")
    elif word.startswith("{"):
        if not isinstance(value, dict):
            yield f"{path}: must be a mapping"
        else:
            for key, item in value.items():
                yield from _check(item, word[1:-1], f"{path}.{key}")
    elif word in DEFINITIONS:
        yield from _check_object(value, DEFINITIONS[word], path)
    elif word in SCALARS:
        is_odd = isinstance(value, bool) and word != "boolean"
        if is_odd or not isinstance(value, SCALARS[word]):
            yield f"{path}: {value!r} is no {word}"


def _check_object(value: Any, fields: dict[str, str], path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: must be a mapping"
        return
    for name, word in fields.items():
        if word.endswith("!") and name not in value:
            yield f"{path}.{name}: is required"
    for name, item in value.items():
        if name not in fields:
            yield f"{path}.{name}: unknown field"
        else:
            yield from _check(item, fields[name].rstrip("!"), f"{path}.{name}")
