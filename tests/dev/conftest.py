"""One cluster for all tests of this room that leave it in order."""

from collections.abc import Iterator

import pytest

from tests.dev.running_box import TestBox, running


@pytest.fixture(scope="session")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    """`test_lifecycle.py`, which comes last of those that use it, ends it."""
    with running(tmp_path_factory.mktemp("state"), "--pretend", "nvidia.com/gpu=4") as box:
        yield box
