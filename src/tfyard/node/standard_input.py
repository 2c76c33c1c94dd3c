"""Our standard input: a terminal, or something piped. The only task of a run reads it, else no task.

Standard library only: it is imported before everything else.
"""

import fcntl
import os
import stat
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def is_usable() -> bool:
    """Whether it is open, and not a terminal in whose background we are: a task is in another session, so the
    kernel would not keep it from reading what the user types for the shell."""
    try:
        os.fstat(0)
        return not os.isatty(0) or os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # it is closed, or not the terminal of this session
        return False


def is_typed() -> bool:
    """Whether a person types it."""
    return os.isatty(0) and is_usable()


def is_waiting() -> bool:
    """Whether something was piped in, and no task has read it."""
    try:
        kind = os.fstat(0)
        if stat.S_ISREG(kind.st_mode):
            return os.lseek(0, 0, os.SEEK_CUR) < kind.st_size
        if not (stat.S_ISFIFO(kind.st_mode) or stat.S_ISSOCK(kind.st_mode)):
            return False
        return bool(struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, b"\0" * 4))[0])
    except OSError:  # it is closed
        return False


@contextmanager
def restored() -> Iterator[None]:
    """Restore the modes of the terminal, if a task was killed while it read a password."""
    if not is_typed():
        yield
        return
    before = termios.tcgetattr(0)
    try:
        yield
    finally:
        with suppress(OSError, termios.error):  # the terminal is gone
            if is_typed() and termios.tcgetattr(0) != before:
                termios.tcsetattr(0, termios.TCSANOW, before)
