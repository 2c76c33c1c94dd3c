"""Renderings that are reviewed as files: a change in them is a change for every user."""

import pytest

from .calling import GOLDEN
from .golden import cases


@pytest.mark.parametrize("name", cases())
def test_the_seeds_own_examples_render_byte_for_byte_as_recorded(name: str) -> None:
    assert cases()[name]() == (GOLDEN / name).read_text()


def test_no_recorded_rendering_is_forgotten() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(cases())
