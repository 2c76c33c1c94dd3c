"""A control plane for the tests of this folder alone: an installation changes what the whole cluster sees."""

from collections.abc import Iterator

import pytest

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane, fixtures


@pytest.fixture(scope="package")
def plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    try:
        own = ControlPlane()
    except MissingBinaries as problem:
        fixtures.missing(request.config, f"no real control plane: {problem}")
    with own as plane:
        yield plane


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[SyncClient]:
    with SyncClient(plane.admin) as client:
        yield client
