"""Scripts that rendered pods run around the user's program. Files, so that they can be linted and tested."""

from functools import cache
from pathlib import Path


@cache
def read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
