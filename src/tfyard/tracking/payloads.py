"""What MLflow is sent, as version 2.0 of its REST API has it: parameters, tags and ends. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tfyard.model.origin import CodeState

Payload = dict[str, Any]
T = TypeVar("T")

MOST_METRICS, MOST_PARAMETERS = 1000, 100
"""The most metrics and parameters of one request; a server refuses more."""
LONGEST_KEY, LONGEST_VALUE = 250, 500
"""Characters: what the server refuses, and what those before MLflow 2.9 refuse of a parameter."""
_ENDS = {"Succeeded": "FINISHED", "Failed": "FAILED"}
_NOT_IN_KEYS = re.compile(r"[^\w.\- /]")
_DOTS = re.compile(r"(^|/)\.+(?=/|$)")


def end(phase: str) -> str:
    """MLflow's word for the phase in which a job ended. What was stopped before its end is killed."""
    return _ENDS.get(phase, "KILLED")


def key(name: str) -> str:
    """The name as MLflow accepts it: it is also a path, in which nothing may lead upwards."""
    path = re.sub(r"/+", "/", _NOT_IN_KEYS.sub("_", name)).strip("/")
    return _DOTS.sub(r"\g<1>_", path)[:LONGEST_KEY].rstrip("/") or "_"


def pairs(values: Mapping[str, str]) -> list[Payload]:
    """Tags or parameters; of those whose keys would be equal, the last."""
    return [{"key": name, "value": value} for name, value in {key(k): v for k, v in values.items()}.items()]


def parameters(values: Mapping[str, str]) -> Iterator[Sequence[Payload]]:
    """Parameters in parts that are small enough for one request."""
    short = {name: value[:LONGEST_VALUE] for name, value in values.items()}
    yield from parts(pairs(short), MOST_PARAMETERS)


def of_code(code: "CodeState") -> dict[str, str]:
    """Tags by which MLflow knows the code, as far as git knows it."""
    names = {"commit": code.commit, "branch": code.branch, "repoURL": code.remote}
    tags = {f"mlflow.source.git.{name}": text for name, text in names.items() if text}
    return tags if code.is_dirty is None else {**tags, "tfyard.git_dirty": str(code.is_dirty).lower()}


def parts(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]


def thinned(rows: Sequence[T], most: int) -> Sequence[T]:
    """At most `most` of the rows, evenly spread, and always the last one."""
    every = -(-len(rows) // most)
    return rows[::-1][::every][::-1] if every > 1 else rows
