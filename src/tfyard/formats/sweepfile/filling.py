"""A job with the values of one trial: `{lr}` in commands, arguments and env is replaced by the value of lr.

Only `{name}` of a parameter is replaced. All other braces belong to the program: `${HOME}`, JSON, awk, f-strings.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from shlex import quote
from typing import Any

from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.formats import shell
from tfyard.model import Job, Manifest, Role, tensorflow_container
from tfyard.model.expansion import escape
from tfyard.model.names import CODE_VOLUME, PACKAGES_VOLUME
from tfyard.model.sweep import DIGITS, TrialOf, Values, value_text, variable_of

_PLACEHOLDER = re.compile(r"(?<!\$)\{(?P<name>[A-Za-z_]\w*)\}", re.ASCII)
ALMOST = re.compile(r"(?<!\$)\{(?P<name>\s*[A-Za-z_][\w-]*\s*)\}", re.ASCII)
"""What people also write, and what is not replaced: `{ lr }`, `{learning-rate}`."""
TEMPORARY = ("emptyDir", "configMap", "secret", "projected", "downwardAPI", "ephemeral")
"""Sources of volumes that every pod has for itself, or that cannot be written to."""
SHARED = (CODE_VOLUME, PACKAGES_VOLUME)
"""Volumes, and init containers of the same names, with the code of all trials."""
_IN_DOUBLE_QUOTES = re.compile(r'[\\"$`]')


def as_trial(job: Job, trial: TrialOf) -> Job:
    """The job with the values of a trial and its own folder, which all attempts at the trial share. It stays as
    long as its sweep."""
    own = with_own_folder(filled(job, trial.values), f"{trial.sweep}/{trial.number:0{DIGITS}d}")
    return replace(own, run_policy=replace(own.run_policy, ttl=None), tensorboard=None)


def filled(job: Job, values: Values) -> Job:
    """The job with the values. A parameter that the job does not name is a variable of the containers that
    train."""
    texts = {name: value_text(value) for name, value in values.items()}
    unnamed = {variable: texts[name] for name, variable in variables(job, values).items()}
    return replace(job, roles=tuple(_filled_role(role, texts, unnamed) for role in job.roles))


def variables(job: Job, parameters: Iterable[str]) -> dict[str, str]:
    """The parameters that the job does not name, with their variables."""
    named = placeholders(job)
    return {name: variable_of(name) for name in parameters if name not in named}


def placeholders(job: Job, pattern: re.Pattern[str] = _PLACEHOLDER) -> set[str]:
    """All names in braces, of parameters and of others."""
    return {
        match["name"]
        for role in job.roles
        for container in _containers(role.template)
        for text in _texts(container)
        for match in _found(text, pattern)
    }


def with_own_folder(job: Job, folder: str) -> Job:
    """The job with a folder of its own in each volume that outlives its pods. Volumes that are mounted read-only
    have the data that all trials share."""
    return replace(job, roles=tuple(_with_own_folder(role, folder) for role in job.roles))


def own_folders(job: Job) -> list[str]:
    """The paths of the volumes in which each trial has a folder of its own."""
    return sorted(
        {
            str(mount["mountPath"])
            for role in job.roles
            for container in _containers(role.template)
            for mount in container.get("volumeMounts") or ()
            if _is_own(mount, _lasting(role))
        }
    )


# --- texts of a container


def _containers(template: Manifest) -> list[Manifest]:
    spec = template.get("spec") or {}
    present = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return [each for each in present if each.get("name") not in SHARED]


def _words(container: Manifest) -> Iterator[str]:
    yield from map(str, (*(container.get("command") or ()), *(container.get("args") or ())))


def _texts(container: Manifest) -> Iterator[str]:
    yield from _words(container)
    yield from (str(variable.get("value") or "") for variable in container.get("env") or ())


def _found(text: str, pattern: re.Pattern[str] = _PLACEHOLDER) -> Iterator[re.Match[str]]:
    """The placeholders of a text. Double braces are those of templates and format strings."""
    for match in pattern.finditer(text):
        if text[match.start() - 1 : match.start()] != "{" or text[match.end() : match.end() + 1] != "}":
            yield match


def _filled_role(role: Role, texts: dict[str, str], unnamed: dict[str, str]) -> Role:
    trains = tensorflow_container(role.template)

    def fill(container: Manifest) -> Manifest:
        return _filled_container(container, texts, unnamed if container is trains else {})

    return replace(role, template=_each_container(role.template, fill)) if role.template else role


def _each_container(template: Manifest, change: Callable[[Manifest], Manifest]) -> Manifest:
    lists = {key: template["spec"].get(key) for key in ("initContainers", "containers")}
    changed = {
        key: [each if each.get("name") in SHARED else change(each) for each in containers]
        for key, containers in lists.items()
        if containers
    }
    return {**template, "spec": {**template["spec"], **changed}}


def _filled_container(container: Manifest, texts: dict[str, str], variables: dict[str, str]) -> Manifest:
    command, args = (list(map(str, container.get(key) or ())) for key in ("command", "args"))
    words = [_filled_text(word, texts) for word in (*command, *args)]
    if (script := shell.script_at([*command, *args])) is not None:
        words[script] = _filled_line([*command, *args][script], texts)
    changed: dict[str, Any] = {"command": words[: len(command)], "args": words[len(command) :]}
    env = [
        _filled_variable(each, texts) for each in container.get("env") or () if each["name"] not in variables
    ]
    env += [{"name": name, "value": escape(text)} for name, text in variables.items()]
    return {**container, **{key: part for key, part in {**changed, "env": env}.items() if part}}


def _filled_variable(variable: Manifest, texts: dict[str, str]) -> Manifest:
    value = variable.get("value")
    return {**variable, "value": _filled_text(str(value), texts)} if value else variable


def _filled_text(text: str, texts: dict[str, str]) -> str:
    return _replaced(text, texts, lambda value, _at: value)


def _filled_line(line: str, texts: dict[str, str]) -> str:
    """A shell line, in which a value stays one word, whatever is in it."""

    def written(value: str, at: int) -> str:
        mark = shell.quotation_at(line, at)
        if mark is None and not is_plain(value):
            raise Usage(
                f"{value!r} cannot be quoted in a comment, a here-document or backticks of a shell line"
            )
        return _QUOTED[mark or ""](value)

    return _replaced(line, texts, written)


def is_plain(text: str) -> bool:
    """Whether a shell takes the text as one word without quotes."""
    return quote(text) == text


def unprotected(job: Job) -> set[str]:
    """Names in braces at places of shell lines where quoting protects no text."""
    lines = (
        words[script]
        for role in job.roles
        for container in _containers(role.template)
        if (script := shell.script_at(words := list(_words(container)))) is not None
    )
    return {
        match["name"]
        for line in lines
        for match in _found(line)
        if shell.quotation_at(line, match.start()) is None
    }


_QUOTED: dict[str, Callable[[str], str]] = {
    "": quote,
    "'": lambda value: value.replace("'", "'\\''"),
    '"': lambda value: _IN_DOUBLE_QUOTES.sub(r"\\\g<0>", value),
}
"""Quotation mark that is open at a place -> how a value is written there."""


def _replaced(text: str, texts: dict[str, str], written: Callable[[str, int], str]) -> str:
    parts, end = list[str](), 0
    for match in _found(text):
        if match["name"] in texts:
            value = written(texts[match["name"]], match.start())
            parts += [text[end : match.start()], value.replace("$", "$$")]  # whatever follows the value
            end = match.end()
    return "".join((*parts, text[end:]))


# --- folders


def _with_own_folder(role: Role, folder: str) -> Role:
    lasting = _lasting(role)

    def own(container: Manifest) -> Manifest:
        mounts = container.get("volumeMounts")
        if not mounts:
            return container
        return {**container, "volumeMounts": [_own_mount(each, folder, lasting) for each in mounts]}

    return replace(role, template=_each_container(role.template, own)) if lasting else role


def _lasting(role: Role) -> set[str]:
    """Names of the volumes that outlive a pod."""
    return {
        volume["name"]
        for volume in (role.template.get("spec") or {}).get("volumes") or ()
        if volume["name"] not in SHARED and not any(key in volume for key in TEMPORARY)
    }


def _is_own(mount: Manifest, lasting: set[str]) -> bool:
    return mount["name"] in lasting and not mount.get("readOnly")


def _own_mount(mount: Manifest, folder: str, lasting: set[str]) -> Manifest:
    if not _is_own(mount, lasting):
        return mount
    if mount.get("subPathExpr"):
        return {**mount, "subPathExpr": f"{mount['subPathExpr'].rstrip('/')}/{folder}"}
    inside = str(mount.get("subPath") or "").rstrip("/")
    return {**mount, "subPath": f"{inside}/{folder}" if inside else folder}
