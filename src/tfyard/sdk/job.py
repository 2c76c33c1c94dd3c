"""`tfyard.Job`: a job file with changes, a Python script, or words; a job is checked when it is created."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.formats.metadata import DNS_LABEL, RULE, as_name
from tfyard.job_input import files, options, script
from tfyard.job_input.load import from_documents
from tfyard.job_input.options import JobOptions
from tfyard.model import ROLES, Manifest, Role, tensorflow_container
from tfyard.model import Job as LoadedJob
from tfyard.model.expansion import escape
from tfyard.model.names import DEFAULT_IMAGE
from tfyard.sdk.words import OF_FILES, Words

_NOTHING = "a Job needs a file, a script, a module or the word run, as in Job('train.py', worker=2)"


class Source(Struct, frozen=True):
    """The job as options of a command."""

    options: JobOptions
    text: str = ""
    """The job file, if it was made from words. Its paths are relative to the working directory."""
    script: str = ""
    """The script or module that the job was made from, if any."""
    files: dict[str, str] = {}
    """Name -> text of programs that a run on this machine keeps: see `RunOptions.sources`."""


class Job:
    """A training job: a file with changes, a script, or words. Nothing runs yet.

        Job("job.yaml", worker=4, env={"LR": "0.01"})     # a job file or a TFJob, with changes
        Job("train.py", worker=2, gpu=1)                  # a script of this folder
        Job(run="python train.py", worker=2, memory="4Gi")

    A mistake is an `Invalid` with every problem, or a `Usage`, as in the terminal. `str(job)` is its job file.
    """

    def __init__(self, target: str | os.PathLike[str] | None = None, /, **words: Unpack[Words]) -> None:
        self._target, self._words = "" if target is None else os.fspath(target), words
        source = _source(self._target, dict(words))
        self._loaded = _load(source)
        self.source = source if source.text else _anywhere(source)

    @property
    def name(self) -> str:
        return self._loaded.name

    @property
    def tasks(self) -> list[str]:
        """worker-0, worker-1, …"""
        return [task.name for task in self._loaded.tasks()]

    def yaml(self) -> str:
        """The job as a job file."""
        return self.source.text or formats.dump(self._loaded, "jobfile").text()

    def __str__(self) -> str:
        return self.yaml()

    def __repr__(self) -> str:
        parts = [repr(self._target)] if self._target else []
        return f"Job({', '.join([*parts, *(f'{word}={value!r}' for word, value in self._words.items())])})"


def _source(target: str, words: Manifest) -> Source:
    is_program = target.endswith(".py") or "module" in words
    if is_program and "run" in words:
        raise Usage("run: give either a script or module, or the word run")
    if target and "module" in words:
        raise Usage(f"module: give either {target} or a module")
    if is_program:
        return _of_program(target, words)
    if target:
        return _of_file(target, words)
    if "run" not in words:
        raise Usage(_NOTHING)
    return Source(JobOptions(target="-"), _yaml(_of_words(words)))


def _anywhere(source: Source) -> Source:
    """Make the path absolute: a notebook may change its working directory before the job runs."""
    path = os.path.abspath(source.options.target)  # noqa: PTH100 - links are not resolved
    return replace(source, options=replace(source.options, target=path))


def _of_file(target: str, words: Manifest) -> Source:
    others = [word for word in words if word not in OF_FILES]
    if target == "-":
        raise Usage("-: a Job is not read from standard input; give its file, or its words")
    if others:
        raise Usage(f"{others[0]}: {target} says this itself; change it there, or give a Job without a file")
    check_name(words.get("name"))
    return Source(
        JobOptions(
            target=target,
            sets=sets({role: words[role] for role in map(str.lower, ROLES) if role in words}),
            env=tuple(f"{name}={scalar(value)}" for name, value in words.get("env", {}).items()),
            name=words.get("name"),
            args=tuple(map(str, words.get("args", ()))),
            tf1=words.get("tf1", False),
        )
    )


def _of_program(target: str, words: Manifest) -> Source:
    """The job of a script or module; this folder is its code. A script of another folder runs only on this
    machine, where it has this folder as its working directory, as with `python`."""
    args, module = tuple(map(str, words.pop("args", ()))), words.pop("module", None)
    program = JobOptions(target=target, module=module, args=args)
    is_portable = "code" in words or not script.is_outside(program)
    file_words = script.portable_words(program, Path.cwd()) if is_portable else script.words(program)
    if _has_role(words):
        del file_words["worker"]
    return Source(JobOptions(target="-"), _yaml({**file_words, **words}), target or str(module))


def _of_words(words: Manifest) -> Manifest:
    """Add required words. This folder becomes the code of the job if the command names one of its files."""
    if "args" in words:
        raise Usage("args: they are for a script or module; they belong to the word run")
    command = _command(words["run"])
    scripts = [word for word in command if word.endswith(".py")]
    head = {"name": as_name(Path(scripts[0]).stem if scripts else "", "training"), "image": DEFAULT_IMAGE}
    needs_folder = any(Path(word).is_file() and not Path(word).is_absolute() for word in command)
    if needs_folder and "workdir" not in words:
        head["code"] = "."
    return {**head, **words, **({} if _has_role(words) else {"worker": 1})}


def _command(run: object) -> list[str]:
    """The words of a command, to look for files among them."""
    if not isinstance(run, str):
        return list(map(str, run)) if isinstance(run, Sequence) else []
    try:
        return shlex.split(run)
    except ValueError:  # an unclosed quote, which the shell will report
        return run.split()


def _has_role(words: Manifest) -> bool:
    return any(name.lower() in words for name in ROLES)


def sets(counts: Mapping[str, object]) -> tuple[str, ...]:
    """Numbers of tasks as options; a wrong one is reported as a program writes it."""
    texts = tuple(f"{role}={count}" for role, count in counts.items())
    for text in texts:
        options.replicas(text, "")
    return texts


def check_name(name: str | None) -> None:
    if name is not None and not DNS_LABEL.fullmatch(name):
        raise Usage(f"name={name!r}: {RULE}")


def scalar(value: object) -> str:
    """The value as it is written in a job file."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _yaml(words: Manifest) -> str:
    return formats.to_yaml(_plain(words))


def _plain(value: Any) -> Any:
    """Convert mappings and sequences of any type to those of YAML."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(part) for part in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


# --- checking


def _load(source: Source) -> LoadedJob:
    """Load the job with its changes. Problems of a run or a cluster are found later, before anything starts."""
    changes = source.options
    options.check(changes)
    if source.text:
        return _load_words(source.text)
    documents = files.read_documents(changes.target)
    job = options.adjusted(from_documents(documents, changes.target, uses_images=False).job, changes)
    return replace(job, roles=tuple(_with_env(role, changes.variables) for role in job.roles))


def _load_words(text: str) -> LoadedJob:
    """Load a job from words. Problems have no line numbers: the text is generated, and users do not see it."""
    try:
        return from_documents(files.parse(text.encode(), "Job"), "-", uses_images=False).job
    except Invalid as error:
        raise Invalid([replace(problem, position=None) for problem in error.problems]) from None


def _with_env(role: Role, variables: dict[str, str]) -> Role:
    if not variables:
        return role
    container, spec = tensorflow_container(role.template), role.template["spec"]
    kept = [variable for variable in container.get("env") or () if variable.get("name") not in variables]
    added = [{"name": name, "value": escape(value)} for name, value in variables.items()]
    changed = {**container, "env": [*kept, *added]}
    containers = [changed if other is container else other for other in spec["containers"]]
    return replace(role, template={**role.template, "spec": {**spec, "containers": containers}})
