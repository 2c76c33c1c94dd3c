"""Times of log lines, as people read them."""

from datetime import datetime
from functools import lru_cache

SECOND, MILLISECOND = 19, 23


def clock(stamp: bytes) -> str:
    """To the millisecond: `2026-11-16T04:00:00.123Z`."""
    return (stamp[:MILLISECOND] + _zone(stamp)).decode()


def relative(stamp: bytes, began: datetime) -> str:
    """Since the job began: `+00:12:31`."""
    return _relative(stamp[:SECOND] + _zone(stamp), began)


def _zone(stamp: bytes) -> bytes:
    return stamp[SECOND:].lstrip(b".0123456789")


@lru_cache(maxsize=64)
def _relative(second: bytes, began: datetime) -> str:
    passed = int((datetime.fromisoformat(second.decode()) - began).total_seconds())
    minutes, seconds = divmod(abs(passed), 60)
    return f"{'-' if passed < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
