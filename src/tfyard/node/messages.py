"""Messages between tfyard and its supervisor. Both are the same Python, so they are marshalled: unlike json, that
needs no import, and a supervisor must be up in milliseconds."""

import marshal
from collections.abc import Iterator

TYPE_CHECKING = False  # importing `typing` takes 9 ms
if TYPE_CHECKING:
    from typing import Any

_SIZE = 4
"""Bytes of the length that is in front of each message."""


def encode(message: "dict[str, Any]") -> bytes:
    data = marshal.dumps(message)
    return len(data).to_bytes(_SIZE, "big") + data


class MessageDecoder:
    """Turns bytes, as they arrive, into whole messages."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> "Iterator[dict[str, Any]]":
        self._buffer += data
        while len(self._buffer) >= _SIZE:
            end = _SIZE + int.from_bytes(self._buffer[:_SIZE], "big")
            if len(self._buffer) < end:
                return
            message, self._buffer = self._buffer[_SIZE:end], self._buffer[end:]
            yield marshal.loads(message)
