"""Helpers to read YAML in tests."""

import json

import pytest

from tfyard import errors
from tfyard.formats.yaml import source
from tfyard.model.problem import Problem


def only(text: str | bytes) -> source.Document:
    (document,) = source.read(text, "job.yaml")
    return document


def problems(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(errors.Invalid) as caught:
        source.read(text)
    return caught.value.problems


def problem(text: str | bytes) -> Problem:
    (only,) = problems(text)
    return only


def refusal(text: str | bytes) -> tuple[Problem, ...]:
    try:
        for document in source.read(text):
            json.dumps(document.data)
    except errors.Invalid as error:
        return error.problems or (Problem((), ""),)
    return ()
