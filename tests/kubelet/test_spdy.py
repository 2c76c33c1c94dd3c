"""Frames as kubectl writes them; that kubectl understands ours is shown by the tests of the server."""

import zlib

import pytest

from tfyard.kubelet.spdy import DICTIONARY, BadFrame, Data, Encoder, FrameDecoder, Ping, Reset, SynStream

HEADERS = {"streamtype": "data", "port": "6006", "requestid": "0"}


def syn_stream(deflate: "zlib._Compress", stream: int, headers: dict[str, str]) -> bytes:
    texts = [text for pair in headers.items() for text in pair]
    block = len(headers).to_bytes(4) + b"".join(len(text).to_bytes(4) + text.encode() for text in texts)
    packed = deflate.compress(block) + deflate.flush(zlib.Z_SYNC_FLUSH)
    body = stream.to_bytes(4) + bytes(6) + packed
    return b"\x80\x03\x00\x01\x00" + len(body).to_bytes(3) + body


def test_the_dictionary_is_the_one_of_the_protocol() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


def test_frames_come_whole_however_the_bytes_arrive() -> None:
    deflate = zlib.compressobj(zdict=DICTIONARY)
    encoder = Encoder()
    sent = (
        syn_stream(deflate, 1, HEADERS)
        + b"\x80\x03\x00\x04\x00\x00\x00\x04\x00\x00\x00\x00"  # SETTINGS
        + encoder.data(1, b"hello")
        + syn_stream(deflate, 3, {**HEADERS, "requestid": "1"})
        + encoder.data(1, b"", is_last=True)
        + b"\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x03\x00\x00\x00\x05"  # RST_STREAM
        + encoder.ping(7)
    )
    expected = [
        SynStream(1, HEADERS),
        Data(1, b"hello", False),
        SynStream(3, {**HEADERS, "requestid": "1"}),
        Data(1, b"", True),
        Reset(3),
        Ping(7),
    ]
    for size in (1, 5, len(sent)):
        decoder = FrameDecoder()
        parts = [sent[at : at + size] for at in range(0, len(sent), size)]
        assert [frame for part in parts for frame in decoder.feed(part)] == expected


@pytest.mark.parametrize(
    "sent",
    [
        b"\x80\x02\x00\x01\x00\x00\x00\x00",  # version 2
        b"\x80\x03\x00\x01\x00\xff\xff\xff",  # 16 MiB of headers
        b"\x80\x03\x00\x01\x00\x00\x00\x0c" + bytes(10) + b"no",  # not zlib
    ],
)
def test_anything_else_is_refused(sent: bytes) -> None:
    with pytest.raises(BadFrame):
        list(FrameDecoder().feed(sent))


def test_headers_that_inflate_without_end_are_refused() -> None:
    bomb = syn_stream(zlib.compressobj(zdict=DICTIONARY), 1, {"port": "6" * 1_000_000})
    with pytest.raises(BadFrame, match="more than 65536 bytes"):
        list(FrameDecoder().feed(bomb))
