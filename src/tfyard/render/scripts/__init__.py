"""Scripts that rendered pods run around the user's program. As files, they can be linted and tested."""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@cache
def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
