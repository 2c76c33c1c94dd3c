"""Output of a process, line by line in its log.

Both streams of a process go into one log. If it wrote there by itself, a line of one stream could be cut by the
other: Python's `print` writes a line in several pieces. So each stream is a pipe that the supervisor empties, and
only whole lines reach the log, in the order of their ends. The beginning of a line is kept until its end is there;
what is left at the end of the process is written then.

Standard library only, and little of it: the supervisor imports it and must start quickly.
"""

import fcntl
import os

TYPE_CHECKING = False  # importing `typing` takes 9 ms
if TYPE_CHECKING:
    from typing import Any

CHUNK, PIPE = 1 << 15, 1 << 18
"""Bytes that are read at once, and that a pipe should hold."""
LONGEST = 1 << 20
"""Bytes of a line without an end that are kept in memory."""
SHOWN = 1 << 14
"""Bytes of a line without an end that are shown."""


class LineBuffer:
    """One stream, whose data is passed on in whole lines."""

    def __init__(self) -> None:
        self.rest = bytearray()
        """The beginning of a line whose end is not there yet."""

    def feed(self, data: bytes) -> bytes:
        """The lines that are whole now. A line that is too long to be kept is passed on, too: earlier states of a
        progress bar as lines, any other line in parts."""
        end = data.rfind(b"\n") + 1
        lines = (self.take() + data[:end] if self.rest else data[:end]) if end else b""
        self.rest += data[end:]
        if len(self.rest) <= LONGEST:
            return lines
        last = self.rest.rfind(b"\r")
        if last <= 0:
            return lines + self.take()
        lines += bytes(self.rest[:last]) + b"\n"
        del self.rest[: last + 1]
        return lines

    def take(self) -> bytes:
        """Take the beginning of the line out."""
        taken = bytes(self.rest)
        self.rest.clear()
        return taken


class ProcessOutput:
    """The two streams of one process, and its log. `theirs`: the ends that the process writes to."""

    def __init__(self, log: str) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        pipes = os.pipe(), os.pipe()
        self.theirs = [write for _, write in pipes]
        self._buffers = {read: LineBuffer() for read, _ in pipes}
        self._latest = next(iter(self._buffers))
        """Stream of the last output."""
        self.is_shown, self._shown = True, b""
        """Whether nothing has changed since the last call of `unfinished`, and what that returned."""
        for read in self._buffers:
            os.set_blocking(read, False)
            _enlarge(read)

    @property
    def streams(self) -> list[int]:
        """Streams that are open."""
        return list(self._buffers)

    def read(self, stream: int) -> bool:
        """Read some output. False: all writers have closed the stream. BlockingIOError: there is none now."""
        data = os.read(stream, CHUNK)
        buffer = self._buffers[stream]
        self._latest = stream if data else self._latest
        self._write(buffer.feed(data))
        self.is_shown = self.is_shown and not buffer.rest and not self._shown
        return bool(data)

    def unfinished(self) -> bytes:
        """The line that has no end yet, as far as a screen would show it: the last state of a progress bar, or a
        question. If both streams have one, it is the later."""
        latest = self._buffers[self._latest]
        begun = next((each.rest for each in (latest, *self._buffers.values()) if each.rest), b"")
        start = begun.rstrip(b"\r").rfind(b"\r")
        self.is_shown, self._shown = True, bytes(begun[max(start, 0) :][:SHOWN])
        return self._shown

    def close(self) -> None:
        """Write remaining output, unfinished lines included, after the end of the process. Its children may hold
        the pipes open for ever, so an end of the pipes is not waited for."""
        for stream in self._buffers:
            try:
                while self.read(stream):
                    continue
            except BlockingIOError:
                pass
            os.close(stream)
        self._write(b"\n".join(each.take() for each in self._buffers.values() if each.rest))
        self._buffers.clear()
        os.close(self._log)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._log, view) :]
        except OSError:
            return  # a full disk must not end the process


def open_stdio(message: "dict[str, Any]") -> tuple[list[int] | OSError, ProcessOutput | None]:
    """Open stdin, stdout and stderr; the latter two go to the log unless the message says otherwise."""
    try:
        if not message["stdio"]:
            output = ProcessOutput(message["log"])
            stdin = os.dup(0) if message["stdin"] else os.open(os.devnull, os.O_RDONLY)
            return [stdin, *output.theirs], output
        modes = [os.O_RDWR] * 3 if message["tty"] else [os.O_RDONLY, os.O_WRONLY, os.O_WRONLY]
        pairs = zip(message["stdio"], modes, strict=True)
        return [os.open(path, mode | os.O_NOCTTY) for path, mode in pairs], None
    except OSError as error:
        return error, None


def _enlarge(pipe: int) -> None:
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)
    except PermissionError:
        return  # this user has too many pipes for larger ones
