"""Mutated files: whatever they contain, `check` returns problems and never raises."""

import copy
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.samples import EVERY, decide, document
from tfyard import errors, formats
from tfyard.cli.problems import format_problem
from tfyard.model import Problem

DATA = [document(path).data for path in EVERY]
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 1.5, math.nan, math.inf, "", "x", "0", "Worker"),
    *(
        "x" * 300,
        "ü\u0000\n",
        [],
        {},
        [None],
        [[]],
        {"": None},
        {"a": {"b": 1}},
        [{}],
        [{"name": "tensorflow"}],
    ),
]
WORDS = [
    *("name", "spec", "replicas", "template", "containers", "image", "ports", "env", "overlay", "$patch"),
    *("Chief", "master", "WORKER", "volumes", "at", "claim", "size", "restartPolicy", "kind", "status"),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    value = copy.deepcopy(draw(st.sampled_from(DATA)))
    for _ in range(draw(st.integers(1, 4))):
        value = mutated(draw, value)
    return value


def mutated(draw: st.DrawFn, value: Any) -> Any:
    path = draw(st.sampled_from(places(value)))
    if not path:
        return value
    *parents, last = path
    owner = value
    for step in parents:
        owner = owner[step]
    how = draw(st.sampled_from(["delete", "replace", "rename", "wrap", "double"]))
    if how == "delete":
        del owner[last]
    elif how == "replace":
        owner[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
    elif how == "wrap":
        owner[last] = draw(st.sampled_from([[owner[last]], {"a": owner[last]}]))
    elif isinstance(owner, list):
        owner.append(copy.deepcopy(owner[last]))
    else:
        owner[draw(st.sampled_from(WORDS))] = (
            owner.pop(last) if how == "rename" else copy.deepcopy(owner[last])
        )
    return value


@settings(max_examples=300, derandomize=True)
@given(mutants())
def test_a_mutated_file_is_read_or_refused_and_what_is_read_can_be_written_and_planned(data: Any) -> None:
    checked = formats.check(data)
    assert all(isinstance(problem, Problem) and problem.message for problem in checked.problems)
    if checked.errors or checked.job is None:
        assert checked.errors
        with pytest.raises(errors.Invalid):
            formats.load(data)
        return
    assert decide(checked.job).status.conditions
    for version in ("v1", "jobfile"):
        (written,) = formats.read(formats.dump(checked.job, version).text())
        assert formats.check(written).errors == ()


@settings(max_examples=100, derandomize=True)
@given(mutants())
def test_a_mutated_file_as_text_has_a_position_for_every_problem(data: Any) -> None:
    text = formats.to_yaml(data)
    for parsed in read(text):
        for problem in formats.check(parsed).problems:
            assert problem.position is not None
            assert 1 <= problem.position.line <= text.count("\n") + 1
            assert all(line.isprintable() for line in format_problem(problem, parsed).split("\n"))


def read(text: str) -> tuple[formats.Document, ...]:
    """The documents; none for mutants that are not even YAML: control characters, numbers beyond 64 bits."""
    try:
        return formats.read(text)
    except errors.Invalid:
        return ()
