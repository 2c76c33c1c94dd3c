"""What all tests share: their order, a patient Hypothesis, the control plane's fixtures, coroutines as tests."""

import asyncio
import inspect
import os
from asyncio.selector_events import BaseSelectorEventLoop
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tfyard.testing.fixtures", "tests.helm", "tests.last_release", "tests.programs"]

LONGEST_ASYNC_TEST, LONGEST_LONG_ONE = 240, 600
OPERATOR, COMMANDS, RUNS = (Path(__file__).parent / name for name in ("controller", "cli", "e2e"))
LATER = ("processes", "tensorflow", "cluster")
"""Markers in the order in which their tests run, after the pure ones: what is cheap fails first."""
GROUPS = (
    *("runs", "pure", "a shared cluster", "clusters of their own"),
    *("the operator", "the operator and faults", "programs", "commands"),
)
"""Groups of tests, each for one worker, those that take longest first: none is left over for the end."""

AROUND = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "TF_CONFIG", "CUDA_VISIBLE_DEVICES", "TFYARD_HOME", "TFYARD_KEEP_RUNS"),
    *("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
    *("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"),
)
"""What a shell, a terminal, a pod or a hook of git sets, and the programs that tests start would follow."""
for variable in AROUND:
    os.environ.pop(variable, None)
for variable in ("no_proxy", "NO_PROXY"):
    os.environ[variable] = ",".join(filter(None, (os.environ.get(variable), "127.0.0.1,localhost")))

# Hypothesis judges examples by the clock unless told not to; a busy machine is no bug. The same examples each
# time: `pytest --hypothesis-profile=search` looks for others, and not while somebody waits for CI.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("tfyard", settings.get_profile("search"), derandomize=True)
settings.load_profile("tfyard")


_accept = BaseSelectorEventLoop._accept_connection2  # type: ignore[attr-defined]


async def _accept_or_close(loop: Any, factory: Any, connection: Any, *rest: Any) -> None:
    """Python 3.11 loses a connection that comes while its server closes, and says so in whichever test runs when
    that is collected."""
    _, _, server, *_ = rest
    if server is not None and not server.sockets:
        connection.close()
    else:
        await _accept(loop, factory, connection, *rest)


BaseSelectorEventLoop._accept_connection2 = _accept_or_close  # type: ignore[attr-defined]


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "where tests/cluster runs: on clusters of `tfyard dev`, or on a real node (see tools/node)"
    parser.addoption("--on", choices=("dev", "node"), default="dev", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    if hasattr(config, "workerinput"):  # of pytest-xdist
        items.sort(key=lambda item: GROUPS.index(_group(item)))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    """Tests of a group share one control plane. Those with a cluster mostly wait: workers outnumber cores."""
    if item.get_closest_marker("cluster") is None:
        if _turn(item):
            return "runs" if item.path.is_relative_to(RUNS) else "programs"
        return "commands" if item.path.is_relative_to(COMMANDS) else "pure"
    if "_control_plane" not in getattr(item, "fixturenames", ()):
        return "clusters of their own"
    if not item.path.is_relative_to(OPERATOR):
        return "a shared cluster"
    return "the operator and faults" if item.path.name.startswith("test_faults_") else "the operator"


def _turn(item: pytest.Item) -> int:
    return max((LATER.index(mark.name) + 1 for mark in item.iter_markers() if mark.name in LATER), default=0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before its fixtures: a server that is too old for them may not even start."""
    mark = item.get_closest_marker("since")
    if mark is None:
        return
    from tfyard.controlplane.binaries import MissingBinaries, locate
    from tfyard.testing import fixtures

    with suppress(MissingBinaries):  # a fixture says what that means here
        if (binaries := locate()).minor < mark.args[0]:
            fixtures.skip(item.config, f"Kubernetes {binaries.version} has no {mark.args[1]}")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests, each in a loop of its own and never for ever: a lost event must not hang CI."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    longest = LONGEST_LONG_ONE if pyfuncitem.get_closest_marker("long") else LONGEST_ASYNC_TEST
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), longest))
    return True
