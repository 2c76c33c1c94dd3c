"""How the tests of this room read text."""

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
    (found,) = problems(text)
    return found


def refusal(text: str | bytes) -> tuple[Problem, ...]:
    try:
        for document in source.read(text):
            json.dumps(document.data)
    except errors.Invalid as error:
        return error.problems or (Problem((), ""),)
    return ()
