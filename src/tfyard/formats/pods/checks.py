"""Checks of pod templates against the fields that Kubernetes declares.

An unknown field is only a warning: Kubernetes adds fields in every release, and templates are passed on unchanged.
A list instead of a mapping is an error in every release.
"""

import json
from collections.abc import Callable
from typing import Any

from tfyard.formats import quantities
from tfyard.formats.pods import fields
from tfyard.formats.pods.fields import Shape
from tfyard.model.problem import FieldPath, Problem
from tfyard.model.spelling import closest

# Without a limit, every name in a hostile file would be compared with all known names.
MAX_PROBLEMS = 100
_LONGEST_GUESS = 64


def unknown_fields(value: object, path: FieldPath = (), definition: str = fields.ROOT) -> list[Problem]:
    """Warnings for unknown fields, errors for values of the wrong type."""
    problems: list[Problem] = []
    _check(value, fields.shape(definition), path, problems)
    return problems[:MAX_PROBLEMS]


def _check(value: Any, shape: Shape, path: FieldPath, problems: list[Problem]) -> None:
    if value is None or len(problems) >= MAX_PROBLEMS:
        return  # null means "not set" everywhere in Kubernetes
    if shape.form == "scalar":
        _check_scalar(value, shape.of, path, problems)
    elif shape.form == "list":
        _check_list(value, shape, path, problems)
    elif not isinstance(value, dict):
        problems.append(_clash(path, value, "a mapping"))
    elif shape.form == "map":
        for key, inner in value.items():
            _check(inner, fields.shape(shape.of), (*path, key), problems)
    else:
        _check_object(value, shape.of, path, problems)


def _check_list(value: Any, shape: Shape, path: FieldPath, problems: list[Problem]) -> None:
    if not isinstance(value, list):
        fix = "start each item with -" if isinstance(value, dict) else "write it as a list: [ ]"
        problems.append(_clash(path, value, "a list", fix))
        return
    for index, item in enumerate(value):
        if item is None and len(problems) < MAX_PROBLEMS:  # "not set" has no meaning inside a list
            problems.append(
                Problem((*path, index), "must not be null", "remove the item, or fill it in", None)
            )
        elif shape.merge_key and isinstance(item, dict) and item.get(shape.merge_key) in (None, ""):
            problems.append(
                Problem(
                    (*path, index, shape.merge_key), "must be given", "it identifies the items of this list"
                )
            )
        _check(item, fields.shape(shape.of), (*path, index), problems)


def _check_object(value: dict[str, Any], definition: str, path: FieldPath, problems: list[Problem]) -> None:
    known = fields.fields(definition)
    for key, inner in value.items():
        if key in known:
            _check(inner, fields.shape(known[key]), (*path, key), problems)
        elif len(problems) < MAX_PROBLEMS:
            problems.append(_unknown(key, known, path))


def _unknown(key: str, known: Any, path: FieldPath) -> Problem:
    message = f"unknown field in Kubernetes {fields.release()}"
    guess = closest(key, known, 0.7) if len(key) <= _LONGEST_GUESS else None
    if guess:
        message += f'; did you mean "{guess}"?'
    return Problem((*path, key), message, severity="warning")


def _check_scalar(value: Any, kind: str, path: FieldPath, problems: list[Problem]) -> None:
    accepts, expected, fix = _SCALARS.get(kind, _ANY)
    if not accepts(value):
        is_quotable = fix != "quote it" or not isinstance(value, dict | list)
        problems.append(_clash(path, value, expected, fix if is_quotable else ""))
    elif kind == "quantity":
        problems.extend(quantities.problems(value, path))


def _clash(path: FieldPath, value: Any, expected: str, fix: str = "") -> Problem:
    return Problem(path, f"must be {expected}, not {_name(value)}", fix, value=value)


def _name(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    """1e3 is a whole number, too: it reaches the API server as 1000."""
    return not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    )


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text_or_whole(value: Any) -> bool:
    return _is_text(value) or _is_whole(value)


def _is_text_or_number(value: Any) -> bool:
    return _is_text_or_whole(value) or isinstance(value, float)


_Rule = tuple[Callable[[Any], bool], str, str]
_ANY: _Rule = (lambda _value: True, "", "")
_SCALARS: dict[str, _Rule] = {
    "string": (_is_text, "text", "quote it"),
    "time": (_is_text, "a time as text", "quote it"),
    "integer": (_is_whole, "a whole number", "write it without quotes"),
    "boolean": (_is_bool, "true or false", "write true or false, without quotes"),
    "int-or-string": (_is_text_or_whole, "a whole number or text", ""),
    "quantity": (_is_text_or_number, 'a quantity such as 500m, 2 or "8Gi"', ""),
}
