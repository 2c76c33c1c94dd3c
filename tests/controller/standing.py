"""Candidates for tests: short lease times, and several candidates that end with their test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tfyard.controller.leader_election import Leadership
from tfyard.controller.lease import Candidate, LeaseTiming
from tfyard.kube import Access, requests
from tfyard.testing import ControlPlane

TERMS = LeaseTiming(3, 2, 0.5)


class Standing:
    """One candidate at work."""

    def __init__(self, access: Access, candidate: Candidate, terms: LeaseTiming) -> None:
        self.lost: list[str] = []
        self.leadership = Leadership(access, candidate, terms, self.lost.append)
        self.running = asyncio.create_task(self.leadership.run())

    async def leads(self, within: float = 60.0) -> None:
        """A short lease may be lost before we look, where the machine is slow."""
        async with asyncio.timeout(within):
            while not self.leadership.is_current():
                await asyncio.sleep(0.01)

    async def die(self) -> None:
        """As a killed process: no farewell."""
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)


@asynccontextmanager
async def candidate(
    access: Access, namespace: str, identity: str, terms: LeaseTiming = TERMS
) -> AsyncIterator[Standing]:
    standing = Standing(access, Candidate(identity, namespace), terms)
    try:
        yield standing
    finally:
        await standing.die()


async def stored(plane: ControlPlane, namespace: str) -> Any:
    """The spec of the lease, as the server has it."""
    async with plane.client() as client:
        return (await client.send(requests.get(requests.LEASES.path(namespace, "tfyard-operator"))))["spec"]
