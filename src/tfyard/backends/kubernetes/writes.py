"""The one way by which the operator writes: every request asks first whether this operator is still the leader."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Raw
from msgspec.json import Decoder

from tfyard.kube import Client, Request

T = TypeVar("T")

UNREAD = Decoder(Raw)
"""For answers that nobody reads."""


class NotLeading(Exception):
    """Another operator is the leader now, and writes instead of this one."""


class Writer:
    def __init__(
        self, client: Client, may_write: Callable[[], bool], on_write: Callable[[str, str], None]
    ) -> None:
        self.client, self._may_write, self._on_write = client, may_write, on_write

    async def send(self, verb: str, resource: str, request: Request, into: Decoder[T]) -> T:
        """`verb` and `resource` are RBAC's, for the metrics."""
        if not self._may_write():
            raise NotLeading("not the leader")
        self._on_write(verb, resource)
        return await self.client.send(request, into)
