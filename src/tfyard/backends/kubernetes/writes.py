"""All writes of the operator: each checks that it is still the leader at the moment when the request is sent."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Raw
from msgspec.json import Decoder

from tfyard.kube import Client, Request, before_sending

T = TypeVar("T")

LONGEST_SILENT_WAIT = 5.0
"""Seconds of a Retry-After up to which a request is repeated without a word."""
UNREAD = Decoder(Raw)
"""Decoder of answers that are not used."""


class NotLeading(Exception):
    """Another operator is the leader now, and writes instead of this one."""


class Writer:
    def __init__(
        self, client: Client, may_write: Callable[[], bool], on_write: Callable[[str, str], None]
    ) -> None:
        self.client, self._may_write, self._on_write = client, may_write, on_write

    async def send(self, verb: str, resource: str, request: Request, into: Decoder[T]) -> T:
        """Sends a write; `verb` and `resource` are RBAC's, for the metrics. Another operator may become the leader
        while the request waits for its slot or for its next attempt."""

        def check() -> None:
            if not self._may_write():
                raise NotLeading("not the leader")
            self._on_write(verb, resource)

        with before_sending(check):
            return await self.client.send(request, into)
