"""`up` and `down`: start the box and wait until it is ready; end it, and make sure that nothing is left.

A kubeconfig of the user can have the context of the box: `up` puts it there, `down` takes it out; the rest stays.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import yaml
from msgspec.structs import asdict, replace

from tfyard.controller.config import read_config
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.controlplane.binaries.build import PACKAGES
from tfyard.controlplane.binaries.download import Mirrors
from tfyard.controlplane.binaries.obtain import find_or_obtain
from tfyard.dev.folder import BoxFolder, Settings, State
from tfyard.dev.processes import Watched, family
from tfyard.errors import Interrupted, TfyardError, Usage
from tfyard.overview.wording import size

Say = Callable[[str], None]
POLL = 0.05
STOP_TIMEOUT, KILL_TIMEOUT = 60.0, 10.0
LOG_LINES = 15
ROOM = 200_000_000
"""Bytes on the disk."""
LISTS = ("clusters", "users", "contexts")
CURRENT = "current-context"
LOCK_TIMEOUT = 5.0
JSON = dict[str, Any]


class BoxFailed(TfyardError):
    """The box ended before it was ready."""


class KubeconfigBusy(TfyardError):
    """Another program is writing it, or was killed while it did."""


class Terminated(Interrupted):
    """By SIGTERM."""

    exit_code = 143


class TerminateSignal(KeyboardInterrupt):
    """SIGTERM, which ends `up` as Ctrl-C does."""


def up(
    folder: BoxFolder, asked: Settings, say: Say, mirrors: Mirrors | None = None, until: int | None = None
) -> State:
    """The state of a box that is ready; it ends with the process `until`. One that runs already stays as it is."""
    with folder.exclusively(say):
        if folder.holder() is not None:
            _refuse_changes(folder.settings(), asked)
            return _follow(folder, None, say)
        before, settings = folder.settings(), _as_before(folder.settings(), asked)
        _check_files(settings)
        _check_process(until)
        _check_room(folder)
        settings = replace(settings, binaries=str(_binaries(asked, say, mirrors)))
        if before.kubeconfig != settings.kubeconfig:
            _take_out_context(before)
        is_new = not folder.data.exists()
        folder.prepare(settings)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, _on_terminate)
        process = _start(folder, until)
        try:
            state = _follow(folder, process, say)
        except KeyboardInterrupt as interrupt:
            say(f"stopping {folder.name}")
            process.terminate()
            process.wait()
            folder.remove(keep_data=not is_new)
            problem = Terminated if isinstance(interrupt, TerminateSignal) else Interrupted
            raise problem(f"{folder.name} was stopped before it was ready") from None
        if settings.kubeconfig:
            previous = add_context(Path(settings.kubeconfig), folder.kubeconfig.read_text())
            folder.write(replace(settings, previous_context=previous or settings.previous_context))
        return state


def _on_terminate(_number: int, _frame: object) -> NoReturn:
    raise TerminateSignal


def down(folder: BoxFolder, say: Say, *, keep_data: bool) -> bool:
    """Whether there was anything to end or to remove."""
    if not folder.path.exists():
        return False
    with folder.exclusively(say):
        settings = folder.settings()
        _end(folder, say, keep_data)
        try:
            _take_out_context(settings)
        except (OSError, TfyardError) as problem:
            say(f"the context {settings.name} stays in {settings.kubeconfig}: {problem}")
        folder.remove(keep_data=keep_data)
    return True


def _as_before(before: Settings, asked: Settings) -> Settings:
    """A box that was killed goes on as it was, except for what is asked for now."""
    default, known = Settings(name=asked.name), asdict(before)
    return replace(
        asked, **{key: known[key] for key in known if getattr(asked, key) == getattr(default, key)}
    )


def _check_files(settings: Settings) -> None:
    """What cannot be used is refused before anything starts."""
    if settings.kubeconfig:
        _check_kubeconfig(Path(settings.kubeconfig))
    if settings.operator_config:
        read_config(Path(settings.operator_config))


def _check_kubeconfig(file: Path) -> None:
    """Now, and not when the cluster has started."""
    read_kubeconfig(file)
    try:
        with _locked_kubeconfig(file):
            pass
    except OSError as problem:
        said = f"{problem.filename}: {problem.strerror}"
        raise Usage(f"--kubeconfig {file} cannot be written: {said}; choose another file") from None


def _check_process(pid: int | None) -> None:
    with Watched([] if pid is None else [pid]) as found:
        if pid is not None and not found.descriptors:
            raise Usage(f"--until-pid {pid}: no process has this id")


def _check_room(folder: BoxFolder) -> None:
    """etcd ends with a stack trace if it cannot allocate its files, the first of which is 64 MB."""
    free = shutil.disk_usage(folder.path.parent).free
    if free < ROOM:
        where = f"{folder.path.parent}, and a cluster takes some {size(ROOM)}"
        raise TfyardError(
            f"only {size(free)} are free in {where}; free some, or set XDG_STATE_HOME to another folder"
        )


def _take_out_context(settings: Settings) -> None:
    if settings.kubeconfig:
        remove_context(Path(settings.kubeconfig), settings.name, settings.previous_context)


def _binaries(asked: Settings, say: Say, mirrors: Mirrors | None) -> Path:
    found = find_or_obtain(say, Path(asked.binaries).absolute() if asked.binaries else None, mirrors)
    missing = [name for name in PACKAGES if name != "kubectl" and not found.has(name)]
    if missing:
        raise MissingBinaries(
            f"{found.folder} has no {', '.join(missing)}, which a cluster needs; without --binaries and"
            " KUBEBUILDER_ASSETS, `tfyard dev up` gets all of them"
        )
    return found.folder


def _refuse_changes(running: Settings, asked: Settings) -> None:
    """What was asked for and differs; a setting that was left alone may be as it is."""
    default = asdict(Settings())
    changed = [
        key
        for key, value in asdict(asked).items()
        if value not in (default[key], getattr(running, key)) and key != "binaries"
    ]
    if changed:
        names = {"operator": "no-operator", "operator_config": "operator-config"}
        options = ", ".join(f"--{names.get(key, key)}" for key in changed)
        again = f"`tfyard dev down --keep-data --name {running.name}` first"
        raise Usage(f"{running.name} runs already, with another {options}; to change that, {again}")


def _start(folder: BoxFolder, until: int | None) -> "subprocess.Popen[bytes]":
    """In a session of its own: it goes on when the terminal is closed."""
    with folder.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tfyard.dev.box", str(folder.path), *([str(until)] if until else [])],
            cwd=folder.path,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _follow(folder: BoxFolder, process: "subprocess.Popen[bytes] | None", say: Say) -> State:
    """Say what it is doing until it is ready."""
    said = ""
    while True:
        is_over = process.poll() is not None if process else folder.holder() is None
        state = folder.state()
        if state is not None and state.phase == "ready" and not is_over:
            return state
        if is_over:
            raise BoxFailed(_why(folder, folder.state()))
        if state is not None and state.message != said and state.phase != "failed":
            said = state.message
            say(f"    {said}")
        time.sleep(POLL)


def _why(folder: BoxFolder, state: State | None) -> str:
    if state is not None and state.phase == "failed":
        what_next = f"its logs are in {folder.logs}; `tfyard dev down` removes all of it"
        return f"{folder.name} did not start: {state.message} ({what_next})"
    lines = folder.log.read_text(errors="replace").splitlines() if folder.log.exists() else []
    tail = "\n".join(lines[-LOG_LINES:]) or "its log is empty"
    return f"{folder.name} did not start; the end of {folder.log}:\n{tail}"


def _end(folder: BoxFolder, say: Say, keep_data: bool) -> None:
    """SIGTERM for an orderly end, SIGQUIT if nobody needs the data; by force if it takes too long."""
    pid = folder.holder()
    if pid is None:
        return
    with Watched(family(pid)) as everyone, Watched([pid]) as box:
        if folder.holder() != pid:
            return
        box.signal(signal.SIGTERM if keep_data else signal.SIGQUIT)
        if box.wait(STOP_TIMEOUT):
            say(f"{folder.name} does not end within {STOP_TIMEOUT:.0f} s: killing it")
            box.signal(signal.SIGKILL)
        if everyone.wait(KILL_TIMEOUT):
            everyone.signal(signal.SIGKILL)
        if left := everyone.wait(KILL_TIMEOUT):
            raise TfyardError(f"processes {', '.join(map(str, left))} of {folder.name} cannot be killed")


def kubectl(folder: BoxFolder) -> str:
    """The program that fits the box: its own, else one on PATH."""
    if folder.holder() is None:
        raise Usage(f"{folder.name} does not run; `tfyard dev up` starts it")
    own = Path(folder.settings().binaries) / "kubectl"
    found = str(own) if own.exists() else shutil.which("kubectl")
    if found is None:
        raise MissingBinaries(f"there is no kubectl in {own.parent}, nor on PATH")
    return found


def with_context(config: JSON, ours: JSON) -> JSON:
    """Pure. Entries of the same name are replaced; ours becomes the current context, as with kind and minikube."""
    names = {entry["name"] for entry in ours["contexts"]}
    lists = {key: _others(config, key, names) + ours[key] for key in LISTS}
    return {"apiVersion": "v1", "kind": "Config", **config, **lists, CURRENT: ours[CURRENT]}


def without_context(config: JSON, name: str, previous: str = "") -> JSON:
    """Pure. If it is the current one, the `previous` takes its place where it still exists."""
    lists = {key: _others(config, key, {name}) for key in LISTS}
    if config.get(CURRENT) != name:
        return {**config, **lists}
    is_there = previous in {entry.get("name") for entry in lists["contexts"]}
    return {**config, **lists, CURRENT: previous if is_there else ""}


def add_context(file: Path, kubeconfig: str) -> str:
    """Merge the one context of `kubeconfig` into the file; returns which context was its current one."""
    ours = yaml.safe_load(kubeconfig)
    with _locked_kubeconfig(file):
        config = read_kubeconfig(file)
        _write_kubeconfig(file, with_context(config, ours))
    previous = str(config.get(CURRENT) or "")
    return "" if previous == ours[CURRENT] else previous


def remove_context(file: Path, name: str, previous: str) -> None:
    if not file.exists():
        return
    with _locked_kubeconfig(file):
        config = read_kubeconfig(file)
        if name in {entry.get("name") for key in LISTS for entry in config.get(key) or ()}:
            _write_kubeconfig(file, without_context(config, name, previous))


def _others(config: JSON, key: str, names: set[str]) -> list[JSON]:
    return [entry for entry in config.get(key) or () if entry.get("name") not in names]


def read_kubeconfig(file: Path) -> JSON:
    """Empty if it does not exist."""
    try:
        config = yaml.safe_load(file.read_text()) if file.exists() else None
    except (yaml.YAMLError, UnicodeDecodeError):
        config = ""
    if config is not None and not isinstance(config, dict):
        raise TfyardError(f"{file} is not a kubeconfig; choose another file with --kubeconfig")
    return config or {}


def _write_kubeconfig(file: Path, config: JSON) -> None:
    """At once, with the rights that it had, and through a link to where it really is."""
    real = file.resolve()
    new = real.with_name(f"{real.name}.tfyard")
    mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
    new.touch(mode=0o600)
    new.write_text(yaml.safe_dump(config, sort_keys=False))
    new.chmod(mode)
    new.rename(real)


@contextmanager
def _locked_kubeconfig(file: Path) -> Iterator[None]:
    """As kubectl does it, so that we do not write at the same time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = file.with_name(f"{file.name}.lock")
    end = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > end:
                raise KubeconfigBusy(
                    f"{lock} exists: another program writes {file}; if none does, remove it"
                ) from None
            time.sleep(0.05)
    try:
        yield
    finally:
        lock.unlink()
