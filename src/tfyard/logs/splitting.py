"""Splits a log from the network into lines, in bounded memory, whatever a program writes."""

from tfyard.logs.lines import Lines, LogEvent, Remark, Start
from tfyard.logs.position import LogPosition, is_stamped
from tfyard.logs.terminal_text import LONGEST_LINE


class Splitter:
    def __init__(self) -> None:
        self._unfinished = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that the chunk completes."""
        *whole, unfinished = (self._unfinished + chunk).split(b"\n")
        self._unfinished = unfinished[:LONGEST_LINE]
        return whole

    def close(self) -> list[bytes]:
        """The last line, if it has no line break."""
        last, self._unfinished = self._unfinished, b""
        return [last] if last else []


def new_lines(start: Start, position: LogPosition, lines: list[bytes]) -> list[LogEvent]:
    """The lines that were not seen before. Raises `Gone` if lines that were seen are not there any more."""
    stamped = [line for line in lines if is_stamped(line)]
    events: list[LogEvent] = []
    if len(stamped) < len(lines):
        odd = (line.decode("utf-8", "replace") for line in lines if line and not is_stamped(line))
        events += [Remark(kind="kubelet", text=text, start=start) for text in odd]
    if new := position.take(stamped):
        parts = [line.partition(b" ") for line in new]
        events.append(Lines(start, [part[2] for part in parts], [part[0] for part in parts]))
    return events
