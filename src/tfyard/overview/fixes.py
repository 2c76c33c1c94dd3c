"""Fixes in the terms of what the user gave. Causes name words of the job file; scripts have options for some of
them, and TFJobs have fields."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

GivenAs = Literal["job-file", "script", "tfjob"]
_CLAUSE = r"job file: ((?:[^;`]|`[^`]*`)*)"
_WORD = r"`(\w+):(?: ([^`]*))?`"
_PAIR = r"([\w.]+): ([^,}]+)"
_CONTAINER, _SPEC = "of the container tensorflow", "in the `spec:` of the pod template"
_WAYS = {
    "script": "`tfyard run SCRIPT --save job.yaml` writes a job file; there: ",
    "tfjob": "`tfyard convert FILE --to jobfile` writes a job file; there: ",
}
"""The way to words that a script has no option for, or a TFJob no field."""


def _option(name: str) -> Callable[[str], str]:
    return lambda value: f"`{' '.join(filter(None, (f'--{name}', value)))}`"


def _variables(value: str) -> str:
    return "`" + " ".join(f"--env {name}={text}" for name, text in re.findall(_PAIR, value)) + "`"


_OPTIONS: Mapping[str, Callable[[str], str]] = {
    **{name: _option(name) for name in ("memory", "retries", "deadline", "restart", "ps", "image")},
    "env": _variables,
    "run": lambda value: f"`{value.removeprefix('python ')}`" if value.startswith("python -m ") else "",
    "tf1": lambda _: "`--tf1`",
}


def _entries(value: str) -> str:
    pairs = (f'{{name: {name}, value: "{text}"}}' for name, text in re.findall(_PAIR, value))
    return f"`env: [{', '.join(pairs)}]` {_CONTAINER}"


def _list(command: str) -> str:
    return f"[{', '.join(command.split())}]" if command else ""


def _field(text: str, where: str = "") -> Callable[[str], str]:
    """`{}` in the text is the value."""
    return lambda value: f"`{text.replace('{}', value).strip()}`{where and ' '}{where}"


_FIELDS: Mapping[str, Callable[[str], str]] = {
    "env": _entries,
    **{name: _field(f"resources: {{limits: {{{name}: {{}}}}}}", _CONTAINER) for name in ("cpu", "memory")},
    "image": _field("image: {}", _CONTAINER),
    "run": lambda value: f"`command: {_list(value)}`".replace(" `", "`") + f" {_CONTAINER}",
    "overlay": _field("template: {}"),
    "annotations": _field("template: {metadata: {annotations: {}}}"),
    **{name: _field(f"{name}: {{}}", _SPEC) for name in ("nodeSelector", "tolerations")},
    "pullSecret": _field("imagePullSecrets: [{name: {}}]", _SPEC),
    "stopGrace": _field("terminationGracePeriodSeconds: {}", _SPEC),
    "retries": _field("runPolicy.backoffLimit: {}"),
    "deadline": _field("runPolicy.activeDeadlineSeconds: {}"),
    "success": lambda _: "`successPolicy: AllWorkers`",
    "gang": lambda _: "`runPolicy: {schedulingPolicy: {}}`",
    "ps": lambda _: "`tfReplicaSpecs.PS:`",
    "dialect": _field('metadata: {annotations: {tfyard.dev/dialect: {}}}'),
}  # fmt: skip


def spoken(fix: str, given_as: GivenAs) -> str:
    """A fix about words of the job file, in the words of what the user gave: a script, a TFJob."""
    return fix if given_as == "job-file" else re.sub(_CLAUSE, lambda match: _clause(match[1], given_as), fix)


def _clause(clause: str, given_as: GivenAs) -> str:
    texts, words = _OPTIONS if given_as == "script" else _FIELDS, re.findall(_WORD, clause)
    translated = [texts[word](value) if word in texts else "" for word, value in words]
    if not all(translated) or not translated:
        return f"{_WAYS[given_as]}{clause}"
    each = iter(translated)
    text = re.sub(_WORD, lambda _: next(each), clause)
    return text if given_as == "script" else f"TFJob: {text}"
