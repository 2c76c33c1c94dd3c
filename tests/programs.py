"""Programs of others, for tests: where one is missing, its tests say how to get it."""

import subprocess
from collections.abc import Callable

import pytest

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.testing import fixtures
from tools import programs

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def calling(request: pytest.FixtureRequest) -> Call:
    """`calling("promtool", "check", "rules", …, input=…)` runs it; the caller looks at how it ended."""

    def call(program: str, *args: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [program_of(request.config, program), *args]
        return subprocess.run(command, input=input, capture_output=True, text=True, check=False)

    return call


def program_of(config: pytest.Config, name: str) -> str:
    try:
        return programs.locate(name)
    except MissingBinaries as problem:
        fixtures.missing(config, str(problem))
