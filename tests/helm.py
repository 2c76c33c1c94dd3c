"""The real helm, with a home of its own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.testing import fixtures
from tools import helm as tool

CHART = ROOT / "charts" / "tfyard"
Helm = Callable[..., str]


class HelmFailed(Exception):
    """What helm printed as its error."""


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """`helm("install", …)` returns what it prints; `kubeconfig` says where."""
    try:
        program = tool.locate()
    except MissingBinaries as problem:
        fixtures.missing(request.config, str(problem))
    return _calling(program, tmp_path_factory.mktemp("helm"))


def _calling(program: Path, home: Path) -> Helm:
    places = {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}

    def call(*args: str, kubeconfig: Path | None = None) -> str:
        environment = {
            **os.environ,
            **places,
            "KUBECONFIG": str(kubeconfig or home / "none"),
            "HOME": str(home),
        }
        done = subprocess.run(
            [str(program), *args], capture_output=True, text=True, check=False, env=environment
        )
        if done.returncode:
            raise HelmFailed(done.stderr)
        return done.stdout

    return call
