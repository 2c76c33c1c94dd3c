"""structs.py reads the same from a declaration as msgspec itself."""

from typing import Annotated, Any, Literal, Union

import pytest
from msgspec import Meta, Struct
from msgspec import inspect as mi

from tfyard.formats.controllerconfig import OperatorConfig
from tfyard.formats.declarations.structs import fields, parts, type_of
from tfyard.formats.jobfile.words import JobFile
from tfyard.formats.tfjob.fields import TFJobSpec
from tfyard.formats.tfjob.v1alpha1 import TfJobSpec
from tfyard.model import Status


def structs(cls: type[Struct]) -> set[type[Struct]]:
    classes = {cls}
    waiting = [type_of(field.annotation) for field in fields(cls).values()]
    while waiting:
        part = waiting.pop()
        waiting += parts(part)
        classes |= structs(part.args[0]) if part.kind is Struct else set()
    return classes


DECLARED = [
    cls
    for root in (JobFile, TFJobSpec, TfJobSpec, OperatorConfig, Status)
    for cls in sorted(structs(root), key=str)
]


@pytest.mark.parametrize("cls", DECLARED)
def test_fields_are_those_that_msgspec_sees(cls: type[Struct]) -> None:
    seen: Any = mi.type_info(cls)
    declared = [(key, field.name, field.is_required) for key, field in fields(cls).items()]
    assert declared == [(field.encode_name, field.name, field.required) for field in seen.fields]


def test_an_optional_type_is_the_type_itself_and_the_outer_description_wins() -> None:
    inner = Annotated[int, Meta(ge=1, description="inner")]
    declared = type_of(Annotated[inner | None, Meta(description="outer")])
    assert (declared.kind, declared.is_optional, declared.description) == (int, True, "outer")
    assert (declared.limit("ge"), declared.limit("le")) == (1, None)


def test_the_parts_of_a_type_are_types() -> None:
    union = type_of(dict[str, list[Status] | Literal["all"]] | bool)
    assert (union.kind, [part.kind for part in parts(union)]) == (Union, [dict, bool])
    (options,) = parts(parts(union)[0])
    assert [part.kind for part in parts(options)] == [list, Literal]
    assert parts(parts(options)[0])[0].args == (Status,)
    assert type_of(tuple[int, ...]).kind is list
