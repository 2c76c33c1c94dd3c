"""Capabilities of a user who is not root, in a user namespace of their own.

Such a user has all of them there, but loses them with exec, and the supervisor needs them to put containers into
networks. Ambient capabilities survive exec, and the user id stays what it is. (Mapped to root, which is the other
way, Jupyter would refuse to start.) Standard library only: part of it runs between fork and exec.
"""

import ctypes
import os

VERSION = 0x20080522
PR_CAP_AMBIENT, RAISE, CLEAR_ALL = 47, 2, 4
NET_BIND_SERVICE = 10

_libc = ctypes.CDLL(None, use_errno=True)


def pass_on() -> None:
    """Give the capabilities of this process to the programs that it starts."""
    header = (ctypes.c_uint32 * 2)(VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable: first the lower half of each
    _check(_libc.capget(header, sets))
    sets[2], sets[5] = sets[1], sets[4]
    _check(_libc.capset(header, sets))
    for number in _numbers(sets[1] | sets[4] << 32):
        _check(_libc.prctl(PR_CAP_AMBIENT, RAISE, number, 0, 0))


def keep_for_containers() -> None:
    """Give later programs only the right to listen on ports below 1024, as containers have it. Nothing changes for
    root, or for a user without capabilities."""
    _check(_libc.prctl(PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0))
    _libc.prctl(PR_CAP_AMBIENT, RAISE, NET_BIND_SERVICE, 0, 0)  # refused if this process does not have it


def _numbers(bits: int) -> list[int]:
    return [number for number in range(64) if bits >> number & 1]


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"capabilities: {os.strerror(number)}")
