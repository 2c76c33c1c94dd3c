"""MLflow for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.tracking.server import SmallMLflow, serving


@pytest.fixture
def mlflow() -> Iterator[SmallMLflow]:
    with serving() as small:
        yield small


@pytest.fixture
def other() -> Iterator[SmallMLflow]:
    with serving() as small:
        yield small
