"""What rendered pods run beside the user's program. Files, so that they can be read, linted and tried."""

from functools import cache
from pathlib import Path


@cache
def read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
