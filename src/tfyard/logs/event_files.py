"""TensorFlow's event files (summaries), decoded without TensorFlow: only scalars, which are metrics.

An event file is a sequence of records: length (8 bytes), checksum (4), a protocol buffer `Event`, checksum (4).
The numbers of fields below are those of TensorFlow's event.proto, summary.proto and tensor.proto.
"""

import re
import struct
from collections.abc import Iterator

from msgspec import Struct

from tfyard.logs.metric_text import is_metric
from tfyard.logs.readings import Reading

LARGEST = 64 << 20
"""Bytes of a record; a longer one means that the file is damaged."""
_EPOCH = "epoch_"
"""Prefix of the tags by which Keras counts epochs, from 0, instead of steps."""
_EVALUATION = re.compile(r"(?i)val|eval|test")
_WIDTHS = {1: 8, 5: 4}
"""Wire type -> bytes of a value of fixed size."""
Field = tuple[int, int | bytes]


class Scalar(Struct, frozen=True):
    """A value of a metric."""

    at: float
    """The time of the event, in seconds since 1970."""
    step: int
    tag: str
    value: float


class EventFileDecoder:
    """Decodes an event file that grows."""

    def __init__(self) -> None:
        self._rest = b""
        self.is_damaged = False

    def decode(self, data: bytes) -> list[Scalar]:
        """The scalars of all events that are complete by now."""
        self._rest += data
        scalars, start = list[Scalar](), 0
        while not self.is_damaged and len(self._rest) - start >= 12:
            (length,) = struct.unpack_from("<Q", self._rest, start)
            self.is_damaged = length > LARGEST
            end = start + 12 + length + 4
            if self.is_damaged or end > len(self._rest):
                break
            scalars += _scalars(self._rest[start + 12 : end - 4])
            start = end
        self._rest = b"" if self.is_damaged else self._rest[start:]
        return scalars


def reading(scalar: Scalar, folder: str) -> Reading | None:
    """The metric of a scalar, named as Keras prints it; `folder`: name of the folder of its file. None: it is no
    metric, but a learning rate or the like."""
    tag = scalar.tag.lower()
    name = tag.removeprefix(_EPOCH)
    if not is_metric(name):
        return None
    if _EVALUATION.match(folder) and not _EVALUATION.match(name):
        name = f"val_{name}"
    if tag.startswith(_EPOCH):
        return Reading(values={name: scalar.value}, epoch=scalar.step + 1)
    return Reading(values={name: scalar.value}, step=scalar.step)


def _scalars(event: bytes) -> Iterator[Scalar]:
    try:
        fields = dict(_fields(event))
        (at,) = struct.unpack("<d", _bytes(fields.get(1)))
        for number, value in _fields(_bytes(fields.get(5))):
            if number == 1 and (scalar := _scalar(_bytes(value))):
                yield Scalar(at, _int(fields.get(2)), *scalar)
    except (struct.error, LookupError, ValueError):
        return  # an event of another version; the next one begins after its length


def _scalar(summary: bytes) -> tuple[str, float] | None:
    """Tag and value: `simple_value` of TensorFlow 1, a tensor without dimensions of TensorFlow 2."""
    fields = dict(_fields(summary))
    tag = _bytes(fields.get(1)).decode(errors="replace")
    if 2 in fields:
        return tag, struct.unpack("<f", _bytes(fields[2]))[0]
    value = _tensor(dict(_fields(_bytes(fields.get(8)))))
    return None if value is None else (tag, value)


def _tensor(fields: dict[int, int | bytes]) -> float | None:
    form = {1: "<f", 2: "<d"}.get(_int(fields.get(1)))
    content = _bytes(fields.get(4)) or _bytes(fields.get(5)) or _bytes(fields.get(6))
    if form is None or _bytes(fields.get(2)) or len(content) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, content)[0])


def _fields(message: bytes) -> Iterator[Field]:
    """Number and value of each field: numbers as they are, everything else as bytes."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield key >> 3, value
            continue
        size, position = _varint(message, position) if kind == 2 else (_WIDTHS[kind], position)
        if position + size > len(message):
            raise ValueError("the message is cut off")
        yield key >> 3, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def _int(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0
