"""Finds the binaries of the control plane on this machine.

The order is: an explicit folder, `KUBEBUILDER_ASSETS` (which envtest users already have), tfyard's own cache,
PATH. `python -m tfyard.controlplane.binaries` and `tfyard dev up` fill the cache (see obtain.py) with the
versions that `go.mod` and `go.sum` beside this file pin; nothing is ever downloaded or built during a test.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from tfyard.errors import TfyardError

HERE = Path(__file__).parent
HOW_TO_GET_THEM = (
    "run `make control-plane`, or `python -m tfyard.controlplane.binaries` outside of a checkout"
    " (downloads them, or builds them with Go, once)"
)
NEEDED = ("etcd", "kube-apiserver")


class MissingBinaries(TfyardError):
    """No control plane can be started on this machine; the message says how to get one."""


class Binaries(msgspec.Struct, frozen=True):
    """A folder that has at least etcd and kube-apiserver; envtest's folders have no controllers."""

    folder: Path

    def path(self, name: str) -> Path:
        if not self.has(name):
            raise MissingBinaries(f"{self.folder} has no {name}; {HOW_TO_GET_THEM}")
        return self.folder / name

    def has(self, *names: str) -> bool:
        return all(os.access(self.folder / name, os.X_OK) for name in names)

    @property
    def version(self) -> str:
        """Version of Kubernetes, such as `1.36.3`, as the apiserver prints it."""
        command = [str(self.path("kube-apiserver")), "--version"]
        try:
            output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        except (OSError, subprocess.SubprocessError) as problem:
            raise MissingBinaries(f"{command[0]} does not run here: {problem}") from None
        match = re.search(r"v(\d+\.\d+\.\d+)", output)
        return match[1] if match else output.strip()

    @property
    def minor(self) -> int:
        """Minor version of Kubernetes 1, such as 36."""
        return int(self.version.split(".")[1])


def pinned_version(module: str = "k8s.io/kubernetes", pins: Path = HERE) -> str:
    match = re.search(rf"{re.escape(module)} v(\S+)", (pins / "go.mod").read_text())
    assert match, f"go.mod pins {module}"
    return match[1]


def cache_folder(name: str = "control-plane", pins: Path = HERE) -> Path:
    """One folder per content of `pins`/go.sum and platform: changed pins never use old binaries."""
    key = hashlib.sha256((pins / "go.sum").read_bytes()).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tfyard" / name / f"{key}-{sys.platform}-{platform.machine()}"


def locate(folder: Path | None = None, version: str | None = None) -> Binaries:
    """The first folder that has the binaries of this version (such as `1.36`; default: the pinned one)."""
    minor = version or pinned_version().rpartition(".")[0]
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if folder:
        return _explicit(Binaries(folder), version, "")
    if assets:
        return _explicit(Binaries(Path(assets)), version, ", which KUBEBUILDER_ASSETS names,")
    for candidate in (Binaries(cache_folder()), _on_path()):
        if _is_complete(candidate) and _matches(candidate, minor):
            return candidate
    raise MissingBinaries(f"no etcd and kube-apiserver {minor} here: {HOW_TO_GET_THEM}")


def _explicit(binaries: Binaries, version: str | None, named_by: str) -> Binaries:
    """The binaries of a folder that the user named, which is never replaced by another one."""
    folder = f"{binaries.folder}{named_by}"
    if missing := [name for name in NEEDED if not binaries.has(name)]:
        raise MissingBinaries(f"{folder} has no {' and '.join(missing)} that can be executed")
    if version and not _matches(binaries, version):
        raise MissingBinaries(f"{folder} has Kubernetes {binaries.version}, {version} was asked for")
    return binaries


def _on_path() -> Binaries:
    apiserver = shutil.which("kube-apiserver")
    return Binaries(Path(apiserver).parent if apiserver else Path("/nonexistent"))


def _is_complete(binaries: Binaries) -> bool:
    return binaries.has(*NEEDED)


def _matches(binaries: Binaries, version: str) -> bool:
    return f"{binaries.version}.".startswith(f"{version}.")
