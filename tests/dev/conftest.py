"""One cluster for all tests of this folder that leave it in order."""

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
    """A running cluster; it is started again if a test ended it, as those of `test_lifecycle.py` do."""
    if _box.folder.holder() is None:
        _box.up(*PRETENDED)
    return _box
