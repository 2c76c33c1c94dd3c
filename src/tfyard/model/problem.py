"""placeholder until the source branch lands"""

from msgspec import Struct


class Place(Struct, frozen=True):
    line: int
    column: int


class Problem(Struct, frozen=True):
    path: tuple[str | int, ...]
    message: str
    fix: str = ""


def format_path(path):
    return str(path)
