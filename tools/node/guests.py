"""Programs of others that tests install in a cluster: Kubeflow's training-operator, Kueue and Volcano.

Each is built from the Go module of its release, in the module's own folder, because its own go.mod and go.sum say
what belongs to it. The manifests by which it is installed come with the module. Both are kept in the cache."""

import copy
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from tfyard.controlplane.binaries import MissingBinaries, cache_folder, locate
from tfyard.controlplane.binaries.build import find_go, go_build
from tfyard.model import Manifest
from tfyard.model.callbacks import Say
from tools.node.images import Image, Images

FLAGS = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-mod=readonly"]
ENTRYPOINT = "/manager"
USER = "65532:65532"
MANIFESTS = "manifests.yaml"
"""Written last: with it, a guest is complete."""


class Guest(Struct, frozen=True):
    module: str
    version: str
    sum: str
    """Checksum of the module, as Go computes it."""
    programs: dict[str, str]
    """The image in its manifests, without registry and tag -> the package of the program in it."""
    manifests: str
    """Kustomization or file, in the module."""

    @property
    def folder(self) -> Path:
        name = f"{self.module.rpartition('/')[2]}-{self.version}"
        return cache_folder("node").parent.with_name("node-guests") / name

    def program(self, image: str) -> Path:
        return self.folder / image.rpartition("/")[2]


GUESTS = {
    "training-operator": Guest(
        module="github.com/kubeflow/training-operator",
        version="v1.9.4",
        sum="h1:MjYXzeaHGBmF47BlhCo6+Mb7ypHrVfO6vsys1ZHF56A=",
        programs={"kubeflow/training-v1/training-operator": "./cmd/training-operator.v1"},
        manifests="manifests/overlays/standalone",
    ),
    "kueue": Guest(
        module="sigs.k8s.io/kueue",
        version="v0.15.0",
        sum="h1:9Khzc2ne6/eWuZx5o+R4KlVBzh3kZkTIMzpPC2e8Spg=",
        programs={"k8s-staging-images/kueue/kueue": "./cmd/kueue"},
        manifests="config/default",
    ),
    "volcano": Guest(
        module="volcano.sh/volcano",
        version="v1.10.0",
        sum="h1:+GzQinGgeV0j58WpWpxByOXgF+YfUPW55zghM8GqjF0=",
        programs={
            "volcanosh/vc-scheduler": "./cmd/scheduler",
            "volcanosh/vc-controller-manager": "./cmd/controller-manager",
        },
        manifests="installer/volcano-development.yaml",
    ),
}


def manifests(name: str) -> list[Manifest]:
    """What the guest's own documentation tells people to apply. No folder of the machine is mounted."""
    try:
        text = (GUESTS[name].folder / MANIFESTS).read_text()
    except FileNotFoundError:
        raise MissingBinaries(f"no {name} here: run `make node` (needs Go, 10 minutes, once)") from None
    found = [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
    for each in found:
        for volume in _pod(each).get("volumes") or []:
            if volume.pop("hostPath", None):
                volume["emptyDir"] = {}
    return found


def _pod(manifest: Manifest) -> Manifest:
    """The spec of a Deployment's pods; empty for other objects."""
    found: Manifest = manifest["spec"]["template"]["spec"] if manifest["kind"] == "Deployment" else {}
    return found


def add_images(name: str, images: Images, folder: Path) -> None:
    """Makes an image of each program of a guest, under the name that its manifests have for it."""
    for image in GUESTS[name].programs:
        program = GUESTS[name].program(image)
        root = folder / program.name
        root.mkdir(parents=True, exist_ok=True)
        shutil.copy2(program, root / ENTRYPOINT[1:])
        made = Image().on_top(images.layer(root), Entrypoint=[ENTRYPOINT], User=USER)
        images.name(f"{image}:*", made)


def as_processes(name: str, manifest: Manifest) -> Manifest:
    """The manifest for nodes that run programs without their images."""
    made = copy.deepcopy(manifest)
    for container in _pod(made).get("containers") or []:
        for image in GUESTS[name].programs:
            if f"/{image}:" in container["image"]:
                container["command"] = [str(GUESTS[name].program(image))]
                container.setdefault("securityContext", {}).setdefault(
                    "runAsUser", int(USER.partition(":")[0])
                )
    return made


# --- how they get into the cache


def build(say: Say) -> None:
    """Whatever is missing."""
    for name, guest in GUESTS.items():
        if not (guest.folder / MANIFESTS).exists():
            say(f"==> {name} {guest.version} from its Go module, once")
            module = _download(guest)
            guest.folder.mkdir(parents=True, exist_ok=True)
            for image, package in guest.programs.items():
                target = ["-o", str(guest.program(image)), package]
                go_build(find_go(), module, [*FLAGS, *target], lambda text: say(f"    {text}"))
            (guest.folder / MANIFESTS).write_text(_rendered(module / guest.manifests))


def _download(guest: Guest) -> Path:
    """The folder of the module in Go's own cache. A module that was changed after its release is refused."""
    asked = f"{guest.module}@{guest.version}"
    with tempfile.TemporaryDirectory() as outside:  # of any module
        command = [find_go(), "mod", "download", "-json", asked]
        done = subprocess.run(command, capture_output=True, text=True, cwd=outside)
    found = msgspec.json.decode(done.stdout or b"{}")
    if found.get("Sum") != guest.sum:
        raise MissingBinaries(f"{asked}: {found.get('Error') or done.stderr or found.get('Sum')}")
    return Path(found["Dir"])


def _rendered(path: Path) -> str:
    if path.is_file():
        return path.read_text()
    command = [str(locate().path("kubectl")), "kustomize", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise MissingBinaries(f"{path} cannot be rendered:\n{done.stderr}")
    return done.stdout
