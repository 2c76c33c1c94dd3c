"""Plain data -> declared Structs, with every problem reported, not only the first.

msgspec's own decoder stops at the first error, so the declaration is walked here.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, Union

import msgspec

from tfyard.model import Problem
from tfyard.model.spelling import closest, did_you_mean

from .structs import Type, fields, parts, type_of

Path = tuple[str | int, ...]
T = TypeVar("T")

MAX_PROBLEMS = 100
"""Limit for errors, and for warnings: more are useless, and comparing all words of a hostile file takes hours."""


class Notes:
    """Collects problems while reading continues."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._room = {"error": MAX_PROBLEMS, "warning": MAX_PROBLEMS}

    def error(self, path: Path, message: str, fix: str = "", value: object = msgspec.UNSET) -> None:
        self.extend([Problem(path, message, fix, value)])

    def warn(self, path: Path, message: str, fix: str = "") -> None:
        self.extend([Problem(path, message, fix, severity="warning")])

    def unknown(self, path: Path, message: str, known: Iterable[str]) -> None:
        """Adds an error: the last step of the path is none of the known words."""
        if self._room["error"]:
            self.error(path, message, did_you_mean(str(path[-1]), known))

    def extend(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if self._room[problem.severity] and problem not in self.problems:
                self._room[problem.severity] -= 1
                self.problems.append(problem)


def read(cls: type[T], value: object, path: Path, notes: Notes) -> T | None:
    """The value as `cls`, or None if it is invalid."""
    result = _read(cls, value, path, notes)
    return result if isinstance(result, cls) else None


def not_one_of(words: Iterable[object], value: object, path: Path, notes: Notes) -> None:
    """Adds an error: the value is none of the words. The fix names the word that was probably meant."""
    shown = [str(word) for word in words if word != ""]
    best = closest(value, shown) if isinstance(value, str) else None
    fix = f'did you mean "{best}"?' if best else ""
    notes.error(path, f"must be one of {', '.join(shown)}", fix, value)


def name_of(value: object) -> str:
    """Name of a value's type for messages."""
    return _NAMES.get(type(value), "nothing")


_INVALID = object()


def _read(annotation: Any, value: object, path: Path, notes: Notes) -> Any:
    expected = type_of(annotation)
    reader = _READERS.get(expected.kind)
    return reader(expected, value, path, notes) if reader else value


def _read_struct(expected: Type, value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, dict):
        return _wrong(value, "a mapping", path, notes)
    (cls,) = expected.args
    known = fields(cls)
    for key in value:
        if key not in known:
            notes.unknown((*path, key), f"unknown field {key!r}", known)
    values = {}
    for key, field in known.items():
        if value.get(key) is None:
            if field.is_required:
                notes.error((*path, key), "must be given", _purpose(field.annotation))
        elif (part := _read(field.annotation, value[key], (*path, key), notes)) is not _INVALID:
            values[field.name] = part
    missing = [field.name for field in known.values() if field.is_required and field.name not in values]
    return _INVALID if missing else cls(**values)


def _purpose(annotation: Any) -> str:
    """The purpose of a missing field: the first sentence of its description."""
    return type_of(annotation).description.split(". ")[0]


def _read_dict(expected: Type, value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, dict):
        return _wrong(value, "a mapping", path, notes)
    read_parts = {key: _read(expected.args[0], part, (*path, key), notes) for key, part in value.items()}
    return {key: part for key, part in read_parts.items() if part is not _INVALID}


def _read_list(expected: Type, value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, list):
        return _wrong(value, "a list", path, notes)
    items = [_read(expected.args[0], part, (*path, i), notes) for i, part in enumerate(value)]
    return [item for item in items if item is not _INVALID]


def _read_int(expected: Type, value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        fix = "remove the quotes" if isinstance(value, str) and value.lstrip("-").isdigit() else ""
        return _wrong(value, "a whole number", path, notes, fix)
    low, high = expected.limit("ge"), expected.limit("le")
    if (low is not None and value < low) or (high is not None and value > high):
        return _wrong(value, f"a number {_range(low, high)}", path, notes)
    return value


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"of at most {high}" if low is None else f"of at least {low}"
    return f"from {low} to {high}"


def _read_bool(_expected: Type, value: object, path: Path, notes: Notes) -> object:
    return value if isinstance(value, bool) else _wrong(value, "true or false", path, notes)


def _read_float(_expected: Type, value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(value, "a number", path, notes)
    return float(value)


def _read_str(_expected: Type, value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, str):
        return value
    return _wrong(value, "text", path, notes, "" if isinstance(value, dict | list) else "quote it")


def _read_literal(expected: Type, value: object, path: Path, notes: Notes) -> object:
    if value in expected.args and not isinstance(value, bool):
        return value
    not_one_of(expected.args, value, path, notes)
    return _INVALID


def _read_union(expected: Type, value: object, path: Path, notes: Notes) -> object:
    if value is None and expected.is_optional:
        return None
    options = parts(expected)
    for annotation, option in zip(expected.args, options, strict=True):
        if _accepts(option, value):
            return _read(annotation, value, path, notes)
    kinds = [_python_type(option) for option in options]
    named = (_NAMES[kind] for kind in kinds if kind is not int or float not in kinds)
    return _wrong(value, " or ".join(named), path, notes)


def _accepts(option: Type, value: object) -> bool:
    kind = _python_type(option)
    if isinstance(value, bool):
        return kind is bool  # Python counts True as a number; a file does not
    return isinstance(value, (int, float) if kind is float else kind)


def _python_type(option: Type) -> type:
    """The Python type in a file of a value of this type: a Struct is a mapping, a choice is text."""
    plain: type = {msgspec.Struct: dict, Literal: str}.get(option.kind, option.kind)
    return plain


def _wrong(value: object, expected: str, path: Path, notes: Notes, fix: str = "") -> object:
    notes.error(path, f"must be {expected}", fix or _quoted_braces(value), value)
    return _INVALID


def _quoted_braces(value: object) -> str:
    """The fix for `LR: {lr}`, which YAML reads as a mapping whose key is lr."""
    is_name = isinstance(value, dict) and list(value.values()) == [None]
    return f'quote it: "{{{next(iter(value))}}}"' if is_name and isinstance(value, dict) else ""


_READERS: dict[Any, Callable[[Type, object, Path, Notes], object]] = {
    str: _read_str,
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
    dict: _read_dict,
    list: _read_list,
    Literal: _read_literal,
    Union: _read_union,
    msgspec.Struct: _read_struct,
}
_NAMES: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}
