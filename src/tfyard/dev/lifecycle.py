"""`up` and `down`: start the box and wait until it is ready; end it, and make sure that nothing is left."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import asdict, replace

from tfyard.controller.config import read_config
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.controlplane.binaries.build import PACKAGES
from tfyard.controlplane.binaries.download import Mirrors
from tfyard.controlplane.binaries.obtain import find_or_obtain
from tfyard.dev import contexts
from tfyard.dev.folder import BoxFolder, Settings, State
from tfyard.dev.processes import Watched, family
from tfyard.errors import TfyardError, Usage

Say = Callable[[str], None]
POLL = 0.05
STOP_TIMEOUT, KILL_TIMEOUT = 60.0, 10.0
LOG_LINES = 15


class BoxFailed(TfyardError):
    """The box ended before it was ready."""


class Interrupted(TfyardError):
    """By Ctrl-C."""

    exit_code = 130


def up(folder: BoxFolder, asked: Settings, say: Say, mirrors: Mirrors | None = None) -> State:
    """The state of a box that is ready. One that runs already is left as it is."""
    with folder.exclusively(say):
        if folder.holder() is not None:
            _refuse_changes(folder.settings(), asked)
            return _follow(folder, None, say)
        before, settings = folder.settings(), _as_before(folder.settings(), asked)
        _check_files(settings)
        settings = replace(settings, binaries=str(_binaries(asked, say, mirrors)))
        if before.kubeconfig != settings.kubeconfig:
            _take_out_context(before)
        is_new = not folder.data.exists()
        folder.prepare(settings)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        process = _start(folder)
        try:
            state = _follow(folder, process, say)
        except KeyboardInterrupt:
            say(f"stopping {folder.name}")
            process.terminate()
            process.wait()
            folder.remove(keep_data=not is_new)
            raise Interrupted(f"{folder.name} was stopped before it was ready") from None
        if settings.kubeconfig:
            previous = contexts.add(Path(settings.kubeconfig), folder.kubeconfig.read_text())
            folder.write(replace(settings, previous_context=previous or settings.previous_context))
        return state


def down(folder: BoxFolder, say: Say, *, keep_data: bool) -> bool:
    """Whether there was anything to end or to remove."""
    if not folder.path.exists():
        return False
    with folder.exclusively(say):
        settings = folder.settings()
        _end(folder, say, keep_data)
        _take_out_context(settings)
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
        contexts.read(Path(settings.kubeconfig))
    if settings.operator_config:
        read_config(Path(settings.operator_config))


def _take_out_context(settings: Settings) -> None:
    if settings.kubeconfig:
        contexts.remove(Path(settings.kubeconfig), settings.name, settings.previous_context)


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


def _start(folder: BoxFolder) -> "subprocess.Popen[bytes]":
    """In a session of its own: it goes on when the terminal is closed."""
    with folder.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tfyard.dev.box", str(folder.path)],
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
        if state is not None and state.message != said:
            said = state.message
            say(f"    {said}")
        time.sleep(POLL)


def _why(folder: BoxFolder, state: State | None) -> str:
    if state is not None and state.phase == "failed":
        return f"{folder.name} did not start: {state.message} (its logs are in {folder.logs})"
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
