"""Reading plain data into declared Structs, with every problem noted instead of the first one raised.

The Structs are the single declaration of a format: they also give the JSON schema, `tfyard explain` and the
"did you mean". msgspec's own decoder stops at the first error, so the walk over the declaration is ours.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect as mi

from tfyard.model import Problem

Path = tuple[str | int, ...]
T = TypeVar("T")


MAX_PROBLEMS = 100
"""Of errors, and of warnings. Nobody reads more, and a hostile file would be compared word by word for hours."""


class Notes:
    """Where problems are collected while reading goes on."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._room = {"error": MAX_PROBLEMS, "warning": MAX_PROBLEMS}

    def error(self, path: Path, message: str, fix: str = "", value: object = msgspec.UNSET) -> None:
        self.extend([Problem(path, message, fix, value)])

    def warn(self, path: Path, message: str, fix: str = "") -> None:
        self.extend([Problem(path, message, fix, severity="warning")])

    def unknown(self, path: Path, message: str, known: Iterable[str]) -> None:
        """A word that is none of the known ones: the last step of the path."""
        if self._room["error"]:
            self.error(path, message, did_you_mean(str(path[-1]), known))

    def extend(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if self._room[problem.severity] and problem not in self.problems:
                self._room[problem.severity] -= 1
                self.problems.append(problem)


def read(cls: type[T], value: object, path: Path, notes: Notes) -> T | None:
    """The value as `cls`, or None if it is not even of the right kind."""
    result = _read(_type_info(cast(Hashable, cls)), value, path, notes)
    return result if isinstance(result, cls) else None


@cache
def _type_info(cls: Hashable) -> mi.Type:
    return mi.type_info(cls)


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    from difflib import get_close_matches  # imported only when there is a typo to explain

    folded = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    known = list(known)
    best = closest(word, known)
    return f"did you mean {best}?" if best else f"one of: {', '.join(known)}"


_INVALID = object()


def _read(kind: mi.Type, value: object, path: Path, notes: Notes) -> Any:
    kind = _bare(kind)
    if isinstance(kind, mi.UnionType):
        return _read_union(kind, value, path, notes)
    reader = _READERS.get(type(kind))
    return reader(kind, value, path, notes) if reader else value


def _bare(kind: mi.Type) -> mi.Type:
    return kind.type if isinstance(kind, mi.Metadata) else kind


def _read_struct(kind: mi.StructType, value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, dict):
        return _wrong(value, "a mapping", path, notes)
    fields = {field.encode_name: field for field in kind.fields}
    for key in value:
        if key not in fields:
            notes.unknown((*path, key), f"unknown field {key!r}", fields)
    given = {}
    for name, field in fields.items():
        if value.get(name) is None and not isinstance(_bare(field.type), mi.AnyType):
            if field.required:
                notes.error((*path, name), "must be given", _purpose(field.type))
        elif (part := _read(field.type, value[name], (*path, name), notes)) is not _INVALID:
            given[field.name] = part
    missing = [field.name for field in kind.fields if field.required and field.name not in given]
    return _INVALID if missing else kind.cls(**given)


def _read_dict(kind: mi.DictType, value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, dict):
        return _wrong(value, "a mapping", path, notes)
    parts = {key: _read(kind.value_type, part, (*path, key), notes) for key, part in value.items()}
    return {key: part for key, part in parts.items() if part is not _INVALID}


def _read_list(kind: mi.ListType | mi.VarTupleType, value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, list | tuple):
        return _wrong(value, "a list", path, notes)
    parts = [_read(kind.item_type, part, (*path, i), notes) for i, part in enumerate(value)]
    return [part for part in parts if part is not _INVALID]


def _read_int(kind: mi.IntType, value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        fix = "remove the quotes" if isinstance(value, str) and value.lstrip("-").isdigit() else ""
        return _wrong(value, "a whole number", path, notes, fix)
    low, high = kind.ge, kind.le
    if (low is not None and value < low) or (high is not None and value > high):
        return _wrong(value, f"a number {_range(low, high)}", path, notes)
    return value


def _range(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return f"of at most {high}" if low is None else f"of at least {low}"
    return f"from {low} to {high}"


def _read_bool(_kind: mi.Type, value: object, path: Path, notes: Notes) -> object:
    return value if isinstance(value, bool) else _wrong(value, "true or false", path, notes)


def _read_float(_kind: mi.Type, value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(value, "a number", path, notes)
    return float(value)


def _read_str(_kind: mi.Type, value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, str):
        return value
    return _wrong(value, "text", path, notes, "" if isinstance(value, dict | list) else "quote it")


def _read_literal(kind: mi.LiteralType, value: object, path: Path, notes: Notes) -> object:
    if value in kind.values and not isinstance(value, bool):
        return value
    words = [str(word) for word in kind.values if word != ""]
    best = closest(value, words) if isinstance(value, str) else None
    fix = f'did you mean "{best}"?' if best else ""
    notes.error(path, f"must be one of {', '.join(words)}", fix, value)
    return _INVALID


def _read_union(kind: mi.UnionType, value: object, path: Path, notes: Notes) -> object:
    options = [_bare(option) for option in kind.types]
    for option in options:
        if isinstance(value, _ACCEPTS.get(type(option), ())) and not _is_odd_bool(option, value):
            return _read(option, value, path, notes)
    names = [_NAMES[type(option)] for option in options if type(option) in _NAMES]
    return _wrong(value, " or ".join(names), path, notes)


def _is_odd_bool(option: mi.Type, value: object) -> bool:
    """To Python, True is a number; to people it is not."""
    return isinstance(value, bool) and not isinstance(option, mi.BoolType | mi.AnyType)


def _wrong(value: object, expected: str, path: Path, notes: Notes, fix: str = "") -> object:
    notes.error(path, f"must be {expected}", fix, value)
    return _INVALID


def _purpose(kind: mi.Type) -> str:
    """What a missing field is for, from its own description."""
    schema = (kind.extra_json_schema or {}) if isinstance(kind, mi.Metadata) else {}
    return str(schema.get("description", "")).split(". ")[0]


_READERS: dict[type[mi.Type], Callable[..., Any]] = {
    mi.StructType: _read_struct,
    mi.DictType: _read_dict,
    mi.ListType: _read_list,
    mi.VarTupleType: _read_list,
    mi.IntType: _read_int,
    mi.FloatType: _read_float,
    mi.BoolType: _read_bool,
    mi.StrType: _read_str,
    mi.LiteralType: _read_literal,
}
_ACCEPTS: dict[type[mi.Type], type | tuple[type, ...]] = {
    mi.StructType: dict,
    mi.DictType: dict,
    mi.ListType: list,
    mi.IntType: int,
    mi.FloatType: (int, float),
    mi.BoolType: bool,
    mi.StrType: str,
    mi.LiteralType: str,
    mi.NoneType: type(None),
    mi.AnyType: object,
}
_NAMES: dict[type[mi.Type], str] = {
    mi.StructType: "a mapping",
    mi.DictType: "a mapping",
    mi.ListType: "a list",
    mi.IntType: "a whole number",
    mi.FloatType: "a number",
    mi.BoolType: "true or false",
    mi.StrType: "text",
    mi.LiteralType: "one of its words",
}
