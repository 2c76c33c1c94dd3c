"""One cluster for all tests of this room that leave it in order."""

from collections.abc import Iterator

import pytest

from tests.dev.running_box import TestBox, running

PRETENDED = ("--pretend", "nvidia.com/gpu=4")


@pytest.fixture(scope="session")
def _box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    with running(tmp_path_factory.mktemp("state"), *PRETENDED) as box:
        yield box


@pytest.fixture
def box(_box: TestBox) -> TestBox:
    """Up, whatever the tests before did: those of `test_lifecycle.py`, which come last, end it."""
    if _box.folder.holder() is None:
        _box.up(*PRETENDED)
    return _box
