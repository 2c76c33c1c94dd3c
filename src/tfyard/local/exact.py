"""A run repeated with its recorded code: the commit in a worktree of git beside, with the recorded diff."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import NotPossible
from tfyard.job_input import git
from tfyard.job_input.bounded_process import QuestionLimits
from tfyard.job_input.git_trees import RecordedCode, checked_out
from tfyard.local import gpus, job_records, recording
from tfyard.local.machine import base_env
from tfyard.local.prepared import PreparedRun
from tfyard.model import Job, Role, tensorflow_container
from tfyard.model.origin import CodeState, Origin, Software
from tfyard.overview.parameters import decisive_container, plain_env

WORKTREES = "worktrees"
MOST_NAMED = 10
"""Packages that are named; more are counted."""


def exact(prepared: PreparedRun, run: RunDirectory) -> PreparedRun:
    """The repeated run with the recorded code, and with notes on what could not be the same."""
    origin, diff, problems = job_records.origin(run, prepared.job)
    state = origin.code
    code = prepared.job.code
    if code is not None and code.kind != "folder":
        return _fetched(prepared, state, origin)
    if not state.commit:
        why = state.problem or next(iter(problems), "it was not recorded")
        raise NotPossible(f"{run.name} cannot be repeated exactly: its code is unknown: {why}")
    at = _worktree(RecordedCode(label=run.name, state=state, diff=diff))
    notes = (
        f"the code is in {at}; `git -C {state.root} worktree remove --force {at.absolute()}` removes it",
        *(f"not the same: {text}" for text in (*problems, *_different_code(state, at))),
        *_different(prepared, origin),
    )
    moved = _moved(prepared.job, Path(state.root), at.absolute())
    return replace(prepared, job=moved, file=_at(prepared.file, Path(state.root), at.absolute()), notes=notes)


def _fetched(prepared: PreparedRun, state: CodeState, origin: Origin) -> PreparedRun:
    """Code of an address is fetched again; from git, at the recorded commit."""
    assert prepared.job.code is not None
    if prepared.job.code.kind != "git" or not state.commit:
        notes = (f"not the same: {prepared.job.code.source} is fetched again, and may have changed",)
        return replace(prepared, notes=(*notes, *_different(prepared, origin)))
    job = replace(prepared.job, code=replace(prepared.job.code, ref=state.commit))
    return replace(prepared, job=job, notes=tuple(_different(prepared, origin)))


def _worktree(code: RecordedCode) -> Path:
    """The folder of the worktree: one that an earlier repetition has left as it was recorded, or a new one."""
    mark = hashlib.sha256(code.diff.encode()).hexdigest()[:8]
    folder = run_directory.HOME / WORKTREES
    for number in range(1, 1000):
        at = folder / f"{code.state.commit[:12]}-{mark}{f'-{number}' if number > 1 else ''}"
        seal = at.with_name(f"{at.name}.seal")
        if not at.exists():
            checked_out(code, at)
            seal.write_text(_fingerprint(at))
            return at
        if seal.exists() and seal.read_text() == _fingerprint(at):
            return at
    raise NotPossible(f"{folder} has too many worktrees; `git worktree remove` removes them")


def _fingerprint(at: Path) -> str:
    """Tells whether anything was changed in a worktree since it was made."""
    state, diff = git.read(at, QuestionLimits(git.LONGEST))
    whole = "\0".join((state.commit, *state.changed, state.problem, diff))
    return hashlib.sha256(whole.encode()).hexdigest()


def _moved(job: Job, root: Path, at: Path) -> Job:
    return replace(job, roles=tuple(_role(role, root, at) for role in job.roles))


def _role(role: Role, root: Path, at: Path) -> Role:
    """The role with the worktree in place of the tree: in its working directory, and where its command names a
    file that the worktree has."""
    container, spec = tensorflow_container(role.template), role.template.get("spec") or {}
    if not container:
        return role
    changed, folder = {**container}, Path(container.get("workingDir") or "").absolute()
    for word in ("command", "args"):
        if container.get(word):
            changed[word] = [_word(str(each), folder, root, at) for each in container[word]]
    if container.get("workingDir"):
        changed["workingDir"] = str(_at(Path(container["workingDir"]), root, at))
    containers = [changed if each is container else each for each in spec.get("containers") or ()]
    return replace(role, template={**role.template, "spec": {**spec, "containers": containers}})


def _word(word: str, folder: Path, root: Path, at: Path) -> str:
    """The word, unless it names a file of the tree by a path that the worktree does not change."""
    if os.sep not in word or not (Path(word).is_absolute() or not folder.is_relative_to(root)):
        return word
    moved = _at(folder / word, root, at)
    return str(moved) if moved.is_relative_to(at) and moved.exists() else word


def _at(path: Path, root: Path, at: Path) -> Path:
    """The path in the worktree; the same one, if it is not in the tree, or below tfyard's own folder."""
    own = run_directory.HOME.resolve()
    resolved = path.resolve()
    if not resolved.is_relative_to(root) or resolved.is_relative_to(own):
        return path
    return at / resolved.relative_to(root)


# --- what could not be the same


def _different_code(state: CodeState, at: Path) -> Iterator[str]:
    if state.problem:
        yield state.problem
    yield from state.missing
    if (at / ".gitmodules").exists():
        yield f"submodules are not in it; `git -C {at} submodule update --init` gets them"
    yield "files that git ignores are not in it"


def _different(prepared: PreparedRun, origin: Origin) -> Iterator[str]:
    env = base_env(prepared.python, Path.cwd()) | plain_env(decisive_container(prepared.job))
    limits = QuestionLimits(recording.LONGEST)
    now = recording.software(prepared.python.path, env | prepared.settings.variables, Path.cwd(), limits)
    for text in _packages(origin.software or Software(problem="they were not recorded"), now):
        yield f"not the same: {text}"
    before, here = origin.machine, recording.this_machine()
    if before and before.name != here.name:
        yield f"not the same: the machine was {before.name}, and is {here.name}"
    if before and len(before.gpus) != len(gpus.visible()):
        yield f"not the same: there were {len(before.gpus)} GPUs, and are {len(here.gpus)}"


def _packages(before: Software, now: Software) -> Iterator[str]:
    if before.problem or now.problem:
        yield f"packages are unknown: {before.problem or now.problem}"
        return
    if before.python != now.python:
        yield f"Python was {before.python}, and is {now.python}"
    names = sorted(before.packages.keys() | now.packages.keys())
    pairs = [
        (name, before.packages.get(name, "missing"), now.packages.get(name, "missing")) for name in names
    ]
    changed = [f"{name} was {old}, and is {new}" for name, old, new in pairs if old != new]
    yield from changed[:MOST_NAMED]
    if len(changed) > MOST_NAMED:
        yield f"{len(changed) - MOST_NAMED} more packages"
