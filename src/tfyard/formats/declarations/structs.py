"""A declared Struct as data: its fields by their keys in a file, each with its type, limits and description.

Reading, `tfyard explain`, the JSON schema of the job file and the schemas of the CRDs all use these functions.
`msgspec.inspect` would do the same, but it translates a whole declaration before the first field is read, which
would take most of the time of a short command.
"""

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec


class Field(NamedTuple):
    name: str
    """Name of the attribute in Python; the keys of `fields` are those of the file."""
    annotation: Any
    is_required: bool


class Type(NamedTuple):
    """One level of an annotation; `type_of` gives the next level for each of `args`."""

    kind: Any
    """str, int, float, bool, dict, list, Struct, Literal, Union, or another annotation."""
    args: tuple[Any, ...] = ()
    """The Struct, the words of a Literal, or the annotations of options, items or values."""
    metas: tuple[msgspec.Meta, ...] = ()
    is_optional: bool = False

    @property
    def description(self) -> str:
        return str(self.limit("description") or "")

    def limit(self, name: str) -> Any:
        """The value of this attribute of `msgspec.Meta`, such as `ge`, in the outermost annotation that has it."""
        return next(
            (value for meta in reversed(self.metas) if (value := getattr(meta, name)) is not None), None
        )


@cache
def fields(cls: type[msgspec.Struct]) -> dict[str, Field]:
    """The fields of a Struct by their keys in a file; those of base classes come first."""
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        annotations |= getattr(base, "__annotations__", {})
    names, keys = cls.__struct_fields__, cls.__struct_encode_fields__
    defaults = dict(zip(reversed(names), reversed(cls.__struct_defaults__), strict=False))
    return {
        key: Field(name, annotations[name], defaults.get(name, msgspec.NODEFAULT) is msgspec.NODEFAULT)
        for key, name in zip(keys, names, strict=True)
    }


def type_of(annotation: Any) -> Type:
    metas: tuple[msgspec.Meta, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, metas = annotation.__origin__, annotation.__metadata__
    kind, args = get_origin(annotation), get_args(annotation)
    if kind is Union or kind is UnionType:
        return _union(args, metas)
    if kind is None and isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return Type(msgspec.Struct, (annotation,), metas)
    if kind is dict or kind is tuple:
        return Type(dict, args[1:], metas) if kind is dict else Type(list, args[:1], metas)
    return Type(kind or annotation, args, metas)


def parts(declared: Type) -> list[Type]:
    """The options of a Union, the items of a list, the values of a dict."""
    return [type_of(arg) for arg in declared.args] if declared.kind in (Union, list, dict) else []


def _union(options: tuple[Any, ...], metas: tuple[msgspec.Meta, ...]) -> Type:
    """`X | None` becomes an optional X."""
    types = tuple(option for option in options if option is not NoneType)
    if len(types) > 1:
        return Type(Union, types, metas, NoneType in options)
    only = type_of(types[0])
    return only._replace(metas=only.metas + metas, is_optional=True)
