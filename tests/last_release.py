"""The last release, with its own interpreter, for tests of upgrades."""

from typing import Any

import pytest

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.testing import fixtures
from tools import last_release as tool


@pytest.fixture(scope="session")
def last_release(request: pytest.FixtureRequest) -> str:
    """Its interpreter: `PYTHON -m tfyard`."""
    try:
        return str(tool.locate())
    except tool.NoHistory as problem:
        fixtures.skip(request.config, str(problem))
    except MissingBinaries as problem:
        fixtures.missing(request.config, str(problem))


def known_to(other: Any, one: Any) -> Any:
    """What `one` says, without the fields that `other` does not have."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: known_to(other[key], value) for key, value in one.items() if key in other}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [known_to(*pair) for pair in zip(other, one, strict=True)]
    return one
