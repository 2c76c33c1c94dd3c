"""The server's time, by the Date of its answers: this machine's clock may be wrong."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

SECOND = timedelta(seconds=1)
"""Dates are in whole seconds, rounded down."""


class ServerClock:
    """This machine's clock, corrected no further than the answers prove: one that was long on its way, or was read
    late, proves little."""

    def __init__(self) -> None:
        self._correction = timedelta(0)
        self._last = ""

    def now(self) -> datetime:
        return datetime.now(UTC) + self._correction

    def read(self, date: str, sent: datetime, received: datetime) -> None:
        """`date` is the header of an answer; `sent` and `received` are by this machine's clock."""
        if date == self._last:
            return
        self._last = date
        try:
            answered = parsedate_to_datetime(date).astimezone(UTC)
        except ValueError:
            return  # by whatever stands between us and the server
        least, most = answered - received, answered + SECOND - sent
        self._correction = min(max(self._correction, least), most)
