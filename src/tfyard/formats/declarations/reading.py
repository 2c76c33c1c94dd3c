"""Reading plain data into declared Structs, with every problem noted instead of the first one raised.

The Structs are the single declaration of a format: they also give the JSON schema, `tfyard explain` and the
"did you mean". msgspec's own decoder stops at the first error, so the walk over the declaration is ours; and
`msgspec.inspect` translates all of it before the first word is read, which would be most of a short command.
"""

from collections.abc import Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

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
    result = _read(cls, value, path, notes)
    return result if isinstance(result, cls) else None


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    from difflib import get_close_matches  # imported only when there is a typo to explain

    folded = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def name_of(value: object) -> str:
    """What a value is, in words for people."""
    return _NAMES.get(type(value), "nothing")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    known = list(known)
    best = closest(word, known)
    return f"did you mean {best}?" if best else f"one of: {', '.join(known)}"


_INVALID = object()


class _Field(NamedTuple):
    name: str
    """In Python; the key in the file is that of `_fields`."""
    kind: Any
    required: bool


@cache
def _fields(cls: type[msgspec.Struct]) -> dict[str, _Field]:
    kinds: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        kinds |= getattr(base, "__annotations__", {})
    names, keys = cls.__struct_fields__, cls.__struct_encode_fields__
    optional = dict(zip(reversed(names), reversed(cls.__struct_defaults__), strict=False))
    required = [optional.get(name, msgspec.NODEFAULT) is msgspec.NODEFAULT for name in names]
    fields = zip(keys, names, required, strict=True)
    return {key: _Field(name, kinds[name], is_required) for key, name, is_required in fields}


def _read(kind: Any, value: object, path: Path, notes: Notes) -> Any:
    kind, metas = _bare(kind)
    origin = get_origin(kind)
    if origin is Union or origin is UnionType:
        return _read_union(get_args(kind), value, path, notes)
    if origin is Literal:
        return _read_literal(get_args(kind), value, path, notes)
    if origin is dict:
        return _read_dict(get_args(kind)[1], value, path, notes)
    if origin is list:
        return _read_list(get_args(kind)[0], value, path, notes)
    if kind is int:
        return _read_int(metas, value, path, notes)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _read_struct(kind, value, path, notes)
    reader = {str: _read_str, bool: _read_bool, float: _read_float}.get(kind)
    return reader(value, path, notes) if reader else value


def _bare(kind: Any) -> tuple[Any, tuple[msgspec.Meta, ...]]:
    return (kind.__origin__, kind.__metadata__) if get_origin(kind) is Annotated else (kind, ())


def _read_struct(cls: type[msgspec.Struct], value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, dict):
        return _wrong(value, "a mapping", path, notes)
    fields = _fields(cls)
    for key in value:
        if key not in fields:
            notes.unknown((*path, key), f"unknown field {key!r}", fields)
    given = {}
    for key, field in fields.items():
        if value.get(key) is None:
            if field.required:
                notes.error((*path, key), "must be given", _purpose(field.kind))
        elif (part := _read(field.kind, value[key], (*path, key), notes)) is not _INVALID:
            given[field.name] = part
    missing = [field.name for field in fields.values() if field.required and field.name not in given]
    return _INVALID if missing else cls(**given)


def _read_dict(kind: Any, value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, dict):
        return _wrong(value, "a mapping", path, notes)
    parts = {key: _read(kind, part, (*path, key), notes) for key, part in value.items()}
    return {key: part for key, part in parts.items() if part is not _INVALID}


def _read_list(kind: Any, value: object, path: Path, notes: Notes) -> object:
    if not isinstance(value, list):
        return _wrong(value, "a list", path, notes)
    parts = [_read(kind, part, (*path, i), notes) for i, part in enumerate(value)]
    return [part for part in parts if part is not _INVALID]


def _read_int(metas: tuple[msgspec.Meta, ...], value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        fix = "remove the quotes" if isinstance(value, str) and value.lstrip("-").isdigit() else ""
        return _wrong(value, "a whole number", path, notes, fix)
    low = next((meta.ge for meta in metas if meta.ge is not None), None)
    high = next((meta.le for meta in metas if meta.le is not None), None)
    if (low is not None and value < low) or (high is not None and value > high):
        return _wrong(value, f"a number {_range(low, high)}", path, notes)
    return value


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"of at most {high}" if low is None else f"of at least {low}"
    return f"from {low} to {high}"


def _read_bool(value: object, path: Path, notes: Notes) -> object:
    return value if isinstance(value, bool) else _wrong(value, "true or false", path, notes)


def _read_float(value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(value, "a number", path, notes)
    return float(value)


def _read_str(value: object, path: Path, notes: Notes) -> object:
    if isinstance(value, str):
        return value
    return _wrong(value, "text", path, notes, "" if isinstance(value, dict | list) else "quote it")


def _read_literal(values: tuple[Any, ...], value: object, path: Path, notes: Notes) -> object:
    if value in values and not isinstance(value, bool):
        return value
    words = [str(word) for word in values if word != ""]
    best = closest(value, words) if isinstance(value, str) else None
    fix = f'did you mean "{best}"?' if best else ""
    notes.error(path, f"must be one of {', '.join(words)}", fix, value)
    return _INVALID


def _read_union(options: tuple[Any, ...], value: object, path: Path, notes: Notes) -> object:
    for option in options:
        if _accepts(option, value) or {option, NoneType} == {*options}:
            return _read(option, value, path, notes)
    names = [_NAMES[kind] for kind in map(_python_type, options) if kind in _NAMES]
    return _wrong(value, " or ".join(names), path, notes)


def _accepts(option: Any, value: object) -> bool:
    kind = _python_type(option)
    if isinstance(value, bool):
        return kind is bool  # to Python, True is a number; to people it is not
    return isinstance(value, (int, float) if kind is float else kind)


def _python_type(option: Any) -> type:
    """What a value of this kind is before it is read: a Struct comes as a mapping, a choice as text."""
    kind, _ = _bare(option)
    kind = get_origin(kind) or kind
    if kind is Literal:
        return str
    return dict if issubclass(kind, msgspec.Struct) else kind


def _wrong(value: object, expected: str, path: Path, notes: Notes, fix: str = "") -> object:
    notes.error(path, f"must be {expected}", fix, value)
    return _INVALID


def _purpose(kind: Any) -> str:
    """What a missing field is for, from its own description."""
    _, metas = _bare(kind)
    described = [meta.description for meta in metas if meta.description]
    return described[-1].split(". ")[0] if described else ""


_NAMES: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}
