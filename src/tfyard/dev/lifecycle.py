"""`up` and `down`: start a cluster and wait until it is ready; end it, and make sure that nothing is left.

A kubeconfig of the user can have the context of the cluster: `up` adds it, `down` removes it; the rest stays.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
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
from tfyard.dev.folder import BoxFolder, ReportedState, UpOptions
from tfyard.dev.processes import Watched, family
from tfyard.errors import Interrupted, TfyardError, Usage
from tfyard.model.callbacks import Say
from tfyard.overview.wording import size

POLL = 0.05
STOP_TIMEOUT, KILL_TIMEOUT = 60.0, 10.0
LOG_LINES = 15
ROOM = 200_000_000
"""Bytes that a cluster needs on the disk."""
LISTS = ("clusters", "users", "contexts")
CURRENT = "current-context"
LOCK_TIMEOUT = 5.0
JSON = dict[str, Any]


class BoxFailed(TfyardError):
    """The cluster ended before it was ready."""


class KubeconfigBusy(TfyardError):
    """Another program is writing the kubeconfig, or was killed meanwhile."""


class Terminated(Interrupted):
    """SIGTERM ended the command."""

    exit_code = 143


class TerminateSignal(KeyboardInterrupt):
    """Raised by SIGTERM, which ends `up` as Ctrl-C does."""


def up(
    folder: BoxFolder, asked: UpOptions, say: Say, mirrors: Mirrors | None = None, until: int | None = None
) -> ReportedState:
    """Start a cluster, which ends with the process `until`, and return its state when it is ready. A cluster that
    runs already stays as it is."""
    with folder.exclusively(say):
        if folder.holder() is not None:
            _refuse_changes(folder.settings(), asked)
            return _follow(folder, None, say)
        before, settings = folder.settings(), _as_before(folder.settings(), asked)
        _check_files(settings)
        _check_process(until)
        _check_room(folder)
        used = folder.state()
        settings = replace(
            settings,
            binaries=str(_binaries(_usable_settings(settings, asked), say, mirrors)),
            last_port=used.port if used else settings.last_port,
        )
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
    """End and remove a cluster; returns whether there was one."""
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


def _as_before(before: UpOptions, asked: UpOptions) -> UpOptions:
    """The settings of a cluster that was killed, except for those that are asked for now."""
    default, known = UpOptions(name=asked.name), asdict(before)
    return replace(
        asked, **{key: known[key] for key in known if getattr(asked, key) == getattr(default, key)}
    )


def _check_files(settings: UpOptions) -> None:
    """Refuse files that cannot be used, before anything starts."""
    if settings.kubeconfig:
        _check_kubeconfig(Path(settings.kubeconfig))
    if settings.operator_config:
        read_config(Path(settings.operator_config))


def _check_kubeconfig(file: Path) -> None:
    """Check that the kubeconfig can be written, before the cluster starts."""
    read_kubeconfig(file)
    try:
        with _locked_kubeconfig(file):
            pass
    except OSError as problem:
        text = f"{problem.filename}: {problem.strerror}"
        raise Usage(f"--kubeconfig {file} cannot be written: {text}; choose another file") from None


def _check_process(pid: int | None) -> None:
    with Watched([] if pid is None else [pid]) as process:
        if pid is not None and not process.descriptors:
            raise Usage(f"--until-pid {pid}: no process has this id")


def _check_room(folder: BoxFolder) -> None:
    """Check the free space: etcd ends with a stack trace if it cannot allocate its files, the first of 64 MB."""
    free = shutil.disk_usage(folder.path.parent).free
    if free < ROOM:
        where = f"{folder.path.parent}, and a cluster takes some {size(ROOM)}"
        raise TfyardError(
            f"only {size(free)} are free in {where}; free some, or set XDG_STATE_HOME to another folder"
        )


def _take_out_context(settings: UpOptions) -> None:
    if settings.kubeconfig:
        remove_context(Path(settings.kubeconfig), settings.name, settings.previous_context)


def _usable_settings(settings: UpOptions, asked: UpOptions) -> UpOptions:
    """The settings, if the binaries that the killed cluster used are still there."""
    return settings if Path(settings.binaries).is_dir() else asked


def _binaries(asked: UpOptions, say: Say, mirrors: Mirrors | None) -> Path:
    binaries = find_or_obtain(say, Path(asked.binaries).absolute() if asked.binaries else None, mirrors)
    missing = [name for name in PACKAGES if name != "kubectl" and not binaries.has(name)]
    if missing:
        raise MissingBinaries(
            f"{binaries.folder} has no {', '.join(missing)}, which a cluster needs; without --binaries and"
            " KUBEBUILDER_ASSETS, `tfyard dev up` gets all of them"
        )
    return binaries.folder


def _refuse_changes(running: UpOptions, asked: UpOptions) -> None:
    """Refuse options that differ from those of the running cluster; options that are not given are ignored."""
    default = asdict(UpOptions())
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
    """Start the process of the cluster, in a session of its own: it goes on when the terminal is closed."""
    with folder.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tfyard.dev.box", str(folder.path), *([str(until)] if until else [])],
            cwd=folder.path,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _follow(folder: BoxFolder, process: "subprocess.Popen[bytes] | None", say: Say) -> ReportedState:
    """Show what is being started, until the cluster is ready."""
    shown = ""
    while True:
        is_over = process.poll() is not None if process else folder.holder() is None
        state = folder.state()
        if state is not None and state.phase == "ready" and not is_over:
            return state
        if is_over:
            raise BoxFailed(_why(folder, folder.state()))
        if state is not None and state.message != shown and state.phase != "failed":
            shown = state.message
            say(f"    {shown}")
        time.sleep(POLL)


def _why(folder: BoxFolder, state: ReportedState | None) -> str:
    if state is not None and state.phase == "failed":
        hint = f"its logs are in {folder.logs}; `{folder.command('down')}` removes all of it"
        return f"{folder.name} did not start: {state.message} ({hint})"
    lines = folder.log.read_text(errors="replace").splitlines() if folder.log.exists() else []
    tail = "\n".join(lines[-LOG_LINES:]) or "its log is empty"
    return f"{folder.name} did not start; the end of {folder.log}:\n{tail}"


def _end(folder: BoxFolder, say: Say, keep_data: bool) -> None:
    """End all processes: by SIGTERM for an orderly end, by SIGQUIT if the data is removed, by SIGKILL if it takes
    too long."""
    pid = folder.holder()
    if pid is None:
        return
    with Watched(family(pid)) as processes, Watched([pid]) as box:
        if folder.holder() != pid:
            return
        box.signal(signal.SIGTERM if keep_data else signal.SIGQUIT)
        if box.wait(STOP_TIMEOUT):
            say(f"{folder.name} does not end within {STOP_TIMEOUT:.0f} s: killing it")
            box.signal(signal.SIGKILL)
        if processes.wait(KILL_TIMEOUT):
            processes.signal(signal.SIGKILL)
        if left := processes.wait(KILL_TIMEOUT):
            raise TfyardError(f"processes {', '.join(map(str, left))} of {folder.name} cannot be killed")


def kubectl(folder: BoxFolder) -> str:
    """Path of a kubectl for the cluster: of the same version, else on PATH."""
    if folder.holder() is None:
        raise Usage(f"{folder.name} does not run; `{folder.command('up')}` starts it")
    own = Path(folder.settings().binaries) / "kubectl"
    path = str(own) if own.exists() else shutil.which("kubectl")
    if path is None:
        raise MissingBinaries(f"there is no kubectl in {own.parent}, nor on PATH")
    return path


def with_context(config: JSON, ours: JSON) -> JSON:
    """The config with the cluster's context as the current one, as with kind and minikube; entries of the same
    name are replaced. Pure."""
    names = {entry["name"] for entry in ours["contexts"]}
    lists = {key: _others(config, key, names) + ours[key] for key in LISTS}
    return {"apiVersion": "v1", "kind": "Config", **config, **lists, CURRENT: ours[CURRENT]}


def without_context(config: JSON, name: str, previous: str = "") -> JSON:
    """The config without a context; if it is the current one, `previous` replaces it if it still exists. Pure."""
    lists = {key: _others(config, key, {name}) for key in LISTS}
    if config.get(CURRENT) != name:
        return {**config, **lists}
    is_there = previous in {entry.get("name") for entry in lists["contexts"]}
    return {**config, **lists, CURRENT: previous if is_there else ""}


def add_context(file: Path, kubeconfig: str) -> str:
    """Merge the one context of `kubeconfig` into the file; returns the file's current context before."""
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
    """Content of a kubeconfig; empty if it does not exist."""
    try:
        config = yaml.safe_load(file.read_text()) if file.exists() else None
    except (yaml.YAMLError, UnicodeDecodeError):
        config = ""
    if config is not None and not isinstance(config, dict):
        raise TfyardError(f"{file} is not a kubeconfig; choose another file with --kubeconfig")
    return config or {}


def _write_kubeconfig(file: Path, config: JSON) -> None:
    """Replace a kubeconfig at once, with the mode that it had; a link stays, and its target is replaced."""
    real = file.resolve()
    new = real.with_name(f"{real.name}.tfyard")
    mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
    new.touch(mode=0o600)
    new.write_text(yaml.safe_dump(config, sort_keys=False))
    new.chmod(mode)
    new.rename(real)


@contextmanager
def _locked_kubeconfig(file: Path) -> Iterator[None]:
    """Hold the lock file of a kubeconfig, as kubectl does, so that both do not write at the same time."""
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
