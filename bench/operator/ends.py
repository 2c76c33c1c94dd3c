"""How soon an operator tells that many jobs have ended, all at about the same time."""

import time

from box import Scenario, in_parallel
from msgspec import Struct
from operated import create, final, watched

from tfyard.testing import ScriptedKubelet


class Ends(Struct, frozen=True):
    ended: float
    """Seconds until all pods were seen to have ended: 32 at a time, as fast as the server takes it."""
    told: float
    """Seconds until all jobs were seen to have succeeded. Both since the first pod was told to end."""
    cpu: float
    server_cpu: float
    """The apiserver's: on a busy machine, time says more about the neighbours."""


async def ends(command: str, scenario: Scenario) -> Ends:
    """All pods run, and the operator has nothing left to say, when the first one ends."""
    async with (
        watched(command, scenario) as world,
        ScriptedKubelet(world.client, namespace=world.where) as kubelet,
    ):
        await create(scenario, world)
        await world.pods.reach(world.pods.running, scenario.total)
        await final(world.client)
        began, cpu, server_cpu = time.monotonic(), world.process.cpu(), world.server.cpu()
        await in_parallel(list(world.pods.seen), kubelet.finish)
        told = await world.jobs.reach(world.jobs.succeeded, scenario.jobs)
        ended = await world.pods.reach(world.pods.succeeded, scenario.total)
        server_cpu = world.server.cpu() - server_cpu
        return Ends(ended - began, told - began, world.process.cpu() - cpu, server_cpu)
