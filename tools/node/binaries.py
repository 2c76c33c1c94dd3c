"""The binaries of a node, built from their Go modules, once, into the cache.

kubelet and kube-proxy are pinned by the go.mod of the control plane, the others by the go.mod in this folder."""

import shutil
import tempfile
from pathlib import Path

from tfyard.controlplane.binaries import HERE as KUBERNETES
from tfyard.controlplane.binaries import MissingBinaries, cache_folder, pinned_version
from tfyard.controlplane.binaries.build import build_flags, find_go, go_build
from tfyard.model.callbacks import Say
from tools.node import HERE

OF_KUBERNETES = {name: f"k8s.io/kubernetes/cmd/{name}" for name in ("kubelet", "kube-proxy")}
CONTAINERD, CNI = "github.com/containerd/containerd/v2/cmd", "github.com/containernetworking/plugins/plugins"
OTHERS = {
    "containerd": f"{CONTAINERD}/containerd",
    "containerd-shim-runc-v2": f"{CONTAINERD}/containerd-shim-runc-v2",
    "ctr": f"{CONTAINERD}/ctr",
    "cni/bridge": f"{CNI}/main/bridge",
    "cni/loopback": f"{CNI}/main/loopback",
    "cni/host-local": f"{CNI}/ipam/host-local",
    "cni/portmap": f"{CNI}/meta/portmap",
    "coredns": "./coredns",
    "pause": "./pause",
}
FLAGS = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags=no_btrfs,no_devmapper,no_zfs,no_aufs"]


def folders() -> tuple[Path, Path]:
    """The folder of Kubernetes' binaries, and that of the others."""
    return cache_folder("kubelet", KUBERNETES), cache_folder("node", HERE)


def path(name: str) -> Path:
    kubernetes, others = folders()
    program = (kubernetes if name in OF_KUBERNETES else others) / name
    if not program.exists():
        raise MissingBinaries(f"no {name} here: run `make node` (needs Go and its modules, 10 minutes, once)")
    return program


def check() -> None:
    """MissingBinaries unless all are there."""
    for name in (*OF_KUBERNETES, *OTHERS):
        path(name)


def build(say: Say) -> None:
    """Whatever is missing. A binary gets its final name when it is complete."""
    kubernetes, others = folders()
    with tempfile.TemporaryDirectory() as copied:
        flags = [*build_flags(pinned_version()), *_more_sums(Path(copied))]
        _build(kubernetes, KUBERNETES, OF_KUBERNETES, flags, say)
    _build(others, HERE, OTHERS, FLAGS, say)


def _more_sums(folder: Path) -> list[str]:
    """Flags by which Go uses a copy of the control plane's pins. A kubelet imports modules that the control plane
    does not; Go adds their sums to the copy."""
    for name in ("go.mod", "go.sum"):
        shutil.copy(KUBERNETES / name, folder)
    return ["-mod=mod", f"-modfile={folder / 'go.mod'}"]


def _build(folder: Path, module: Path, packages: dict[str, str], flags: list[str], say: Say) -> None:
    for name, package in packages.items():
        target = folder / name
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.partial")
        say(f"==> {name} from its Go module, once")
        go_build(find_go(), module, [*flags, "-o", str(partial), package], lambda text: say(f"    {text}"))
        shutil.move(partial, target)
