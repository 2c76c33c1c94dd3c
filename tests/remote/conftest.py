"""A control plane for the tests of this folder alone: an installation changes what the whole cluster sees."""

import time
from collections.abc import Callable, Iterator

import pytest

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.kube import NotFound, Resource, requests
from tfyard.kube.sync import SyncClient
from tfyard.remote.installing import installation
from tfyard.testing import ControlPlane, fixtures


@pytest.fixture(scope="package")
def _plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    try:
        own = ControlPlane()
    except MissingBinaries as problem:
        fixtures.missing(request.config, f"no real control plane: {problem}")
    with own as plane:
        yield plane


@pytest.fixture
def plane(_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Without what other tests have installed, and without CRDs. Namespaces stay: nothing runs that would delete
    what is in them."""
    yield _plane
    with SyncClient(_plane.admin) as client:
        installation.uninstall(client, crds=True, force=True, say=lambda _text: None)
        until_removed(client)


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[SyncClient]:
    with SyncClient(plane.admin) as client:
        yield client


def until(holds: Callable[[], bool], what: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def until_removed(client: SyncClient) -> None:
    """The server looks for what is left of a definition's objects every 5 s, and begins again after a minute."""
    left: dict[str, list[str]] = {}

    def look() -> bool:
        items = client.send(requests.get(requests.CRDS.path()))["items"]
        left.clear()
        left.update({each["metadata"]["name"]: each["status"].get("conditions", []) for each in items})
        return not left

    until(look, left, 180)  # a failure shows what is left by then


def until_served(client: SyncClient, resource: Resource) -> None:
    """A definition is established a moment before its objects are served and discovered."""
    until(lambda: _is_served(client, resource), f"{resource.plural} are served")


def _is_served(client: SyncClient, resource: Resource) -> bool:
    try:
        client.send(requests.get(resource.path(), {"limit": "1"}))
        found = client.send(requests.get(f"/apis/{resource.group}/{resource.version}"))
    except NotFound:
        return False
    return resource.plural in {each["name"] for each in found["resources"]}
