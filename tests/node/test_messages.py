"""Messages between tfyard and its supervisor."""

import pytest

from tfyard.node.messages import MessageDecoder, encode

MESSAGES = [
    {"op": "start", "argv": ["a", "\udcff"], "env": {}, "mounts": (("/a", "/b", True),)},
    {"x": "y" * 300},
]


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_messages_arrive_whole_however_their_bytes_do(size: int) -> None:
    data, decoder = b"".join(map(encode, MESSAGES)), MessageDecoder()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert [message for piece in pieces for message in decoder.feed(piece)] == MESSAGES
