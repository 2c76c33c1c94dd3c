"""What `tfyard why` answers, asked as the command asks: of a real API server."""

import asyncio
from datetime import UTC, datetime, timedelta

from tfyard.kube import Access, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.overview.why import Answer, explain
from tfyard.remote.reading import evidence
from tfyard.testing import eventually


def ask(access: Access, namespace: str, name: str, later: timedelta = timedelta()) -> Answer:
    """`later`: as if so much time had passed."""
    with SyncClient(access) as client:
        manifest = client.send(requests.get(TFJOBS.path(namespace, name)))
        return explain(evidence.gather(client, manifest), datetime.now(UTC) + later)


async def told(
    access: Access, namespace: str, name: str, kind: str, later: timedelta = timedelta()
) -> Answer:
    """Once the first cause is of this kind."""

    async def look() -> Answer:
        found = await asyncio.to_thread(ask, access, namespace, name, later)
        assert [cause.kind for cause in found.causes][:1] == [kind], (name, found)
        return found

    return await eventually(look, 60)
