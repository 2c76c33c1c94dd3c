"""A cluster with a real kubelet and containerd: see tools/node."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.clusters import GPUS, Cluster, until
from tests.cluster.images import BARE, PROGRAMS
from tests.dockerfile import build, settings
from tfyard import __version__
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.install.settings import REPOSITORY
from tfyard.model import Manifest
from tfyard.testing import fixtures
from tools.node import NAME, guests, images, obstacles
from tools.node.images import Images
from tools.node.node import Node

OPERATOR = f"{REPOSITORY}:{__version__}"
WARM = ("run", "warm", "--image=any:1", "--restart=Never", "--command", "--", "python", "-c", "")


class NodeRegistry:
    def __init__(self, images: Images) -> None:
        self._images = images

    def refuse(self, image: str, status: int) -> None:
        self._images.name(image, status)


class RealNode(Cluster):
    name = NAME
    has_metrics = False

    def __init__(self, state: Path) -> None:
        self.node = Node(state)
        self.registry = NodeRegistry(self.node.images)
        self._add_images(state / "image")

    @property
    def kubeconfig(self) -> Path:
        return self.node.kubeconfig

    @property
    def claims(self) -> Path:
        return self.node.state / "claims"

    @property
    def pid(self) -> int:
        return int((self.node.state / "pid").read_text())

    def start(self) -> None:
        self.node.start(until=os.getpid())
        capacity = [
            {"op": "add", "path": f"/status/capacity/{name.replace('/', '~1')}", "value": "4"}
            for name in GPUS
        ]
        self.kubectl("patch", "node", NAME, "--subresource=status", "--type=json", "-p", json.dumps(capacity))

    def warm(self) -> None:
        """The first pod of an image unpacks it, which takes longer than tests wait."""
        self.kubectl(*WARM)
        until(lambda: self.get("pod", "warm")["status"]["phase"] == "Succeeded", 300)
        self.kubectl("delete", "pod", "warm")

    def reboot(self) -> None:
        self.node.cut_power()
        self.start()

    def share(self, server: str, path: str) -> Path:
        """There is no NFS server: a folder of the node stands for it."""
        folder = self.node.state / "shares" / f"{server}{path}".replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def shared(self, manifests: str) -> str:
        documents = [each for each in yaml.safe_load_all(manifests) if each]
        return yaml.safe_dump_all(self._without_nfs(each) for each in documents)

    def guest(self, name: str) -> list[Manifest]:
        found = guests.manifests(name)
        guests.add_images(name, self.node.images, self.node.state / "image")
        return found

    def _without_nfs(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._without_nfs(each) for each in value]
        if not isinstance(value, dict):
            return value
        inner = {key: self._without_nfs(each) for key, each in value.items() if key != "nfs"}
        if nfs := value.get("nfs"):
            inner["hostPath"] = {"path": str(self.share(nfs["server"], nfs["path"]))}
        return inner

    def _add_images(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "operator/opt").mkdir(parents=True)
        build(folder / "built")
        shutil.move(folder / "built/opt", folder / "operator/opt/tfyard")
        own = self.node.images
        own.name(BARE, images.base("python"))
        own.name(OPERATOR, images.base("python").on_top(own.layer(folder / "operator"), **settings()))
        for name, program in PROGRAMS.items():
            root = folder / program.stem
            root.mkdir(exist_ok=True)
            shutil.copy(program, root)
            entrypoint = ["python", f"/{program.name}"]
            own.name(name, images.base("tensorflow").on_top(own.layer(root), Entrypoint=entrypoint))


@contextmanager
def running(config: pytest.Config, state: Path) -> Iterator[RealNode]:
    """Gone afterwards, whatever the test did to it."""
    if problems := obstacles():
        fixtures.missing(config, f"no real node: {'; '.join(problems)}")
    try:
        cluster = RealNode(state)
    except MissingBinaries as problem:
        fixtures.missing(config, f"no real node: {problem}")
    try:
        cluster.start()
        cluster.warm()
        yield cluster
    finally:
        cluster.node.purge()
