"""pytest fixtures: `pytest_plugins = ["tfyard.testing.fixtures"]` in a conftest.

There is one control plane per run: an apiserver takes seconds to start, and its memory grows with each CRD. A test
gets a namespace of its own. Controllers run only during the tests that use them, because they affect other tests:
they create objects in every namespace and delete pods on unknown nodes.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.controlplane.control_plane import CONTROLLERS, ControlPlane
from tfyard.testing import builders

WHY_SKIPPED = pytest.StashKey[set[str]]()


def missing(config: pytest.Config, reason: str) -> NoReturn:
    """Skip a test for a reason; in CI it fails, because a skipped test would go unnoticed."""
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(reason, pytrace=False)
    skip(config, reason)


def skip(config: pytest.Config, reason: str) -> NoReturn:
    """Skip a test for a reason that is no fault, not even in CI; the end of the run names it."""
    config.stash.setdefault(WHY_SKIPPED, set()).add(reason)
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One visible line for each reason: an `s` in a row of dots is easily missed."""
    reasons: set[str] = terminalreporter.config.stash.setdefault(WHY_SKIPPED, set())
    for reason in sorted(reasons):
        terminalreporter.write_line(f"tests were skipped: {reason}", yellow=True)


def _new_control_plane(config: pytest.Config) -> ControlPlane:
    try:
        return ControlPlane()
    except MissingBinaries as problem:
        reason = f"no real control plane: {problem}"
    missing(config, reason)


@pytest.fixture(scope="session")
def _control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    with _new_control_plane(request.config) as plane:
        yield plane


@pytest.fixture
def control_plane(_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The run's one control plane. Components that a test stopped or paused are started again after it."""
    yield _control_plane
    _control_plane.restore()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A new namespace. It is not deleted: that needs a controller, and the cluster ends soon."""

    async def make() -> str:
        async with control_plane.client() as client:
            return await builders.create_namespace(client)

    return asyncio.run(make())


@pytest.fixture(scope="session")
def crds(_control_plane: ControlPlane) -> None:
    """The TFJob CRDs, installed in the run's control plane."""

    async def install() -> None:
        async with _control_plane.client() as client:
            await builders.install_crds(client)

    asyncio.run(install())


@pytest.fixture
def controllers(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """kube-controller-manager and kube-scheduler, for this test only."""
    if not control_plane.binaries.has(*CONTROLLERS):
        missing(request.config, f"no real control plane: {control_plane.binaries.folder} has no controllers")
    for name in CONTROLLERS:
        control_plane.start(name)
    yield control_plane
    for name in CONTROLLERS:
        control_plane.stop(name)
