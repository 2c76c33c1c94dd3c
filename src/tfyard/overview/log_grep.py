"""Which lines of a log a pattern finds. A traceback is found or left out as a whole."""

import re
from collections.abc import Iterable, Sequence

BEGIN = b"Traceback (most recent call last):"
LINKS = (b"During handling of the above exception", b"The above exception was the direct cause")
LONGEST = 500
"""Lines of a traceback that are kept until its end is known."""


class Grep:
    """Of one program's log. What is returned are positions in the lines that were given, and those before them
    that had to be kept: so whoever calls keeps what belongs to the lines, such as their times."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._block: list[tuple[bytes, bytes]] = []
        self._is_over = False
        """The block has its exception; what follows belongs to it only if it links to another one."""

    def take(self, texts: Sequence[bytes], stamps: Sequence[bytes] = ()) -> list[tuple[bytes, bytes]]:
        """(text, time) of those that are found."""
        found: list[tuple[bytes, bytes]] = []
        for at, text in enumerate(texts):
            found += self._line(text, stamps[at] if stamps else b"")
        return found

    def close(self) -> list[tuple[bytes, bytes]]:
        """What is found of a traceback that had no end yet."""
        block, self._block, self._is_over = self._block, [], False
        return block if any(self._pattern.search(text) for text, _ in block) else []

    def _line(self, text: bytes, stamp: bytes) -> Iterable[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        if self._block and not self._continues(text):
            found = self.close()
        if self._block or text.lstrip().startswith(BEGIN):
            self._is_over = bool(self._block) and not self._is_inside(text)
            self._block.append((text, stamp))
        elif self._pattern.search(text):
            found.append((text, stamp))
        return found

    def _continues(self, text: bytes) -> bool:
        if len(self._block) >= LONGEST:
            return False
        return not self._is_over or not text.strip() or text.startswith(LINKS)

    def _is_inside(self, text: bytes) -> bool:
        """Frames are indented; what is not is the exception itself, or the beginning of the next traceback."""
        return not text.strip() or text[:1] in b" \t" or text.startswith((BEGIN, *LINKS))
