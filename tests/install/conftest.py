"""A cluster without an operator, to try installations on: `helm` and `tfyard install` bring their own."""

from collections.abc import Iterator

import pytest

from tests.dev.running_box import TestBox, running
from tfyard import __version__
from tfyard.install.settings import REPOSITORY

DRIVERS = "lib/nvidia local/nvidia/bin lib/x86_64-linux-gnu/libcuda.so.1"
SHOW_DRIVERS = f"sh -c 'echo $LD_LIBRARY_PATH; cd /usr; ls -d {DRIVERS}'"
IMAGES = {f"{REPOSITORY}:{__version__}": "python -m tfyard", "wbuchwalter/sample": SHOW_DRIVERS}
"""What their entrypoints would run."""
NAMESPACES = ("tfyard", "team-a", "team-b")


@pytest.fixture(scope="package")
def empty_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    entrypoints = [f"--entrypoint={image}={command}" for image, command in IMAGES.items()]
    options = ["--no-operator", "--pretend=nvidia.com/gpu=1", *entrypoints]
    with running(tmp_path_factory.mktemp("state"), *options, name="installations") as box:
        yield box


@pytest.fixture
def box(empty_box: TestBox) -> Iterator[TestBox]:
    """With the namespaces of operator and teams, which pods enter only by PodSecurity's strictest level."""
    for name in NAMESPACES:
        empty_box.kubectl("create", "namespace", name)
        empty_box.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield empty_box
    left = ["crds", "--all"], ["clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=tfyard"]
    for what in (*left, ["namespaces", *NAMESPACES]):
        empty_box.kubectl("delete", *what, "--ignore-not-found")
