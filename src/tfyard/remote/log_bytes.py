"""A log as it comes over the network, as lines: in bounded memory, whatever a program writes."""

from tfyard.overview.log_lines import Lines, LogEvent, Said, Start
from tfyard.overview.log_position import Position, is_stamped

LONGEST_LINE = 1 << 20
"""Bytes of a line that are kept."""


class Splitter:
    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are whole now."""
        *whole, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest if len(rest) < LONGEST_LINE else rest[:LONGEST_LINE]
        return whole

    def close(self) -> list[bytes]:
        """A last line without a line break."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


def new_lines(start: Start, position: Position, lines: list[bytes]) -> list[LogEvent]:
    """Those that were not seen before. Raises `Gone` if what was seen is not there any more."""
    stamped = [line for line in lines if is_stamped(line)]
    events: list[LogEvent] = []
    if len(stamped) < len(lines):
        odd = (line.decode("utf-8", "replace") for line in lines if line and not is_stamped(line))
        events += [Said(kind="kubelet", text=text, start=start) for text in odd]
    if new := position.take(stamped):
        parts = [line.partition(b" ") for line in new]
        events.append(Lines(start, [part[2] for part in parts], [part[0] for part in parts]))
    return events
