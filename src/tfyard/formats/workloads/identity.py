"""Finds which task a workload is: by the flags and the TF_CONFIG of its program, by labels, or by names."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from tfyard.formats.tfjob.fields import canonical
from tfyard.model import Manifest
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.names import REPLICA_INDEX, REPLICA_TYPE

_ROLE_LABELS = (
    *("role", "job", "job_type", "tf-replica-type", REPLICA_TYPE),
    *("component", "app.kubernetes.io/component"),
)
_INDEX_LABELS = ("task", "task_index", "tf-replica-index", REPLICA_INDEX)
IDENTITY_LABELS = frozenset((*_ROLE_LABELS, *_INDEX_LABELS))
_JOB_NAME = re.compile(r"--job[-_]name[= ][\"']?(\w+)")
_TASK_INDEX = re.compile(r"--task[-_](?:index|id)[= ][\"']?(\d{1,9})\b")
_IN_NAME = re.compile(r"(?:^|-)(?P<role>chief|master|worker|ps|evaluator)s?-?(?P<index>\d{0,9})(?=-|$)")


class Named(Struct, frozen=True):
    """The parts of a workload's name: `boc-worker-1` is worker 1 of boc."""

    stem: str
    role: str
    index: int | None
    span: tuple[int, int]
    """Position of the index in the name."""


class Identity(Struct, frozen=True):
    role: str | None
    index: int
    reason: str = ""
    """How the role was guessed; empty if it is explicit."""


def of_name(name: str) -> Named | None:
    matches = [*_IN_NAME.finditer(name)]
    if not matches:
        return None
    last = matches[-1]
    role = canonical(last["role"]) or ""
    return Named(
        name[: last.start()], role, int(last["index"]) if last["index"] else None, last.span("index")
    )


def identify(name: str, template: Manifest, container: Manifest, words: list[str]) -> Identity:
    labels = (template.get("metadata") or {}).get("labels") or {}
    task, named, text = tf_config(container).get("task"), of_name(name), " ".join(words)
    task = task if isinstance(task, dict) else {}
    role, reason = _role(_JOB_NAME.search(text), task.get("type"), labels, container), ""
    if role is None and named is not None:
        role, reason = named.role, "by its name"
    index = _TASK_INDEX.search(text)
    indexes = [index[1] if index else None, task.get("index"), *(labels.get(key) for key in _INDEX_LABELS)]
    numbers = [int(number) for number in map(str, indexes) if number.isdecimal() and len(number) < 10]
    return Identity(role, numbers[0] if numbers else (named.index if named else None) or 0, reason)


def _role(flag: re.Match[str] | None, task: object, labels: Manifest, container: Manifest) -> str | None:
    words = [flag[1] if flag else "", task, *(labels.get(key) for key in _ROLE_LABELS), container.get("name")]
    return next(filter(None, map(role_of, words)), None)


def role_of(word: object) -> str | None:
    """The role for a word such as `worker` or `workers`."""
    text = word if isinstance(word, str) else ""
    return canonical(text) or canonical(text.removesuffix("s"))


def tf_config(container: Manifest) -> dict[str, Any]:
    """The container's own TF_CONFIG; empty if it has none or an invalid one."""
    for entry in container.get("env") or []:
        if entry.get("name") == "TF_CONFIG" and isinstance(entry.get("value"), str):
            try:
                config = msgspec.json.decode(entry["value"])
            except CORRUPT_JSON:
                return {}
            return config if isinstance(config, dict) else {}
    return {}
