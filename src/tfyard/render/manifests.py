"""One object with the reason why it is there, and the text of many."""

from collections.abc import Sequence

from msgspec import Struct

from tfyard import formats
from tfyard.model import Manifest

from . import comments


class Piece(Struct, frozen=True):
    manifest: Manifest
    why: str = ""
    """Where it came from, in one or two sentences."""
    notes: dict[comments.Path, str] = {}
    """The same for single fields."""


def text(pieces: Sequence[Piece], *, explain: bool = False) -> str:
    if not explain:
        return formats.to_yaml(*(piece.manifest for piece in pieces))
    parts = [comments.head(p.why) + comments.insert(formats.to_yaml(p.manifest), p.notes) for p in pieces]
    return "".join(f"---\n{part}" for part in parts)
