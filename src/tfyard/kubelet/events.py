"""Events for `kubectl describe`: best effort, in order, and repetitions counted in one object."""

import asyncio
import contextlib
import itertools
import time
from datetime import UTC, datetime
from typing import Any, Self

from tfyard.kube import Client, KubeError, requests
from tfyard.kube.times import timestamp
from tfyard.model import Manifest


class Events:
    """Events by `tell`, which are written in the background, as in `async with Events(client, source)`."""

    def __init__(self, client: Client, source: dict[str, str]) -> None:
        self._client, self._source = client, source
        self._queue: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
        self._known: dict[tuple[Any, ...], tuple[str, int]] = {}
        self._numbers = itertools.count(time.time_ns())

    async def __aenter__(self) -> Self:
        self._writing = asyncio.create_task(self._write_all())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writing.cancel()
        await asyncio.gather(self._writing, return_exceptions=True)

    def tell(
        self, about: Manifest, reason: str, message: str, container: str = "", *, warning: bool = False
    ) -> None:
        """Queue an event about a pod, or about an object that names another kind."""
        field = {"fieldPath": f"spec.containers{{{container}}}"} if container else {}
        names = {key: about["metadata"][key] for key in ("name", "namespace", "uid")}
        involved = {"apiVersion": "v1", "kind": about.get("kind", "Pod"), **names, **field}
        now = timestamp(datetime.now(UTC))  # the time of the event, which may be written later
        self._queue.put_nowait((now, involved, "Warning" if warning else "Normal", reason, message))

    def forget(self, uid: str) -> None:
        for key in [key for key in self._known if key[0] == uid]:
            del self._known[key]

    async def _write_all(self) -> None:
        while True:
            event = await self._queue.get()
            # An event is for people: if it cannot be written, the work goes on.
            with contextlib.suppress(KubeError):
                await self._write(*event)

    async def _write(self, now: str, involved: Manifest, kind: str, reason: str, message: str) -> None:
        key = (involved["uid"], involved.get("fieldPath", ""), reason, message)
        namespace = involved["namespace"]
        name, count = self._known.get(key, ("", 0))
        if name:
            patch = {"count": count + 1, "lastTimestamp": now}
            await self._client.send(requests.patch(requests.EVENTS.path(namespace, name), patch))
        else:
            name = f"{involved['name']}.{next(self._numbers):x}"
            fields = {"type": kind, "reason": reason, "message": message, "source": self._source, "count": 1}
            times = {"firstTimestamp": now, "lastTimestamp": now}
            event = {"metadata": {"name": name}, "involvedObject": involved, **fields, **times}
            await self._client.send(requests.create(requests.EVENTS.path(namespace), event))
        self._known[key] = (name, count + 1)
