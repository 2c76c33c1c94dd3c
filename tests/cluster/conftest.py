"""`pytest tests/cluster` uses clusters of `tfyard dev`; with `--on node`, real nodes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster import real_node
from tests.cluster.clusters import GPUS, Cluster, Registry
from tests.cluster.images import PROGRAMS
from tests.cluster.jobs import Jobs
from tests.dev import running_box

Start = AbstractContextManager[Cluster]


def on_dev(state: Path, *options: str, name: str = "tfyard-dev") -> Start:
    pretended = [f"--pretend={gpu}=4" for gpu in GPUS]
    entrypoints = [
        f"--entrypoint={image.removesuffix(':latest')}=python {program}"
        for image, program in PROGRAMS.items()
    ]
    return running_box.running(state, *pretended, *entrypoints, *options, name=name)


@pytest.fixture(scope="session")
def _cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = tmp_path_factory.mktemp("state")
    if request.config.getoption("on") == "dev":
        with on_dev(state) as cluster:
            yield cluster
        return
    with real_node.running(request.config, state) as cluster:
        done = cluster.tfyard("install", "--read-logs")
        assert done.code == 0, done.err
        yield cluster


@pytest.fixture
def cluster(_cluster: Cluster) -> Cluster:
    """With an operator."""
    return _cluster


@pytest.fixture(scope="session")
def registry(_cluster: Cluster) -> Registry:
    if _cluster.registry is None:
        pytest.skip("no images are pulled here")
    return _cluster.registry


@pytest.fixture
def jobs(cluster: Cluster, tmp_path: Path) -> Iterator[Jobs]:
    with Jobs.own(cluster, tmp_path) as jobs:
        yield jobs


@pytest.fixture(scope="session")
def empty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Without an operator."""
    state = tmp_path_factory.mktemp("empty")
    if request.config.getoption("on") == "dev":
        with on_dev(state, "--no-operator", name="empty") as cluster:
            yield cluster
        return
    with real_node.running(request.config, state) as cluster:
        yield cluster
