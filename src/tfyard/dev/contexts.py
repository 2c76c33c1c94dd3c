"""A context of ours in a kubeconfig of the user: `up` puts it there, `down` takes it out; the rest stays."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tfyard.errors import TfyardError

LISTS = ("clusters", "users", "contexts")
CURRENT = "current-context"
LOCK_TIMEOUT = 5.0
JSON = dict[str, Any]


class KubeconfigBusy(TfyardError):
    """Another program is writing it, or was killed while it did."""


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


def add(file: Path, kubeconfig: str) -> str:
    """Merge the one context of `kubeconfig` into the file; returns which context was its current one."""
    ours = yaml.safe_load(kubeconfig)
    with _locked(file):
        config = read(file)
        _write(file, with_context(config, ours))
    previous = str(config.get(CURRENT) or "")
    return "" if previous == ours[CURRENT] else previous


def remove(file: Path, name: str, previous: str) -> None:
    if not file.exists():
        return
    with _locked(file):
        config = read(file)
        if name in {entry.get("name") for key in LISTS for entry in config.get(key) or ()}:
            _write(file, without_context(config, name, previous))


def _others(config: JSON, key: str, names: set[str]) -> list[JSON]:
    return [entry for entry in config.get(key) or () if entry.get("name") not in names]


def read(file: Path) -> JSON:
    """Empty if it does not exist."""
    try:
        config = yaml.safe_load(file.read_text()) if file.exists() else None
    except (yaml.YAMLError, UnicodeDecodeError):
        config = ""
    if config is not None and not isinstance(config, dict):
        raise TfyardError(f"{file} is not a kubeconfig; choose another file with --kubeconfig")
    return config or {}


def _write(file: Path, config: JSON) -> None:
    """At once, with the rights that it had, and through a link to where it really is."""
    real = file.resolve()
    new = real.with_name(f"{real.name}.tfyard")
    mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
    new.touch(mode=0o600)
    new.write_text(yaml.safe_dump(config, sort_keys=False))
    new.chmod(mode)
    new.rename(real)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
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
