"""Measures how soon an operator reports the end of many jobs that end at about the same time."""

import time

from msgspec import Struct
from operated import create, final, watched
from scenarios import Scenario, in_parallel

from tfyard.testing import ScriptedKubelet


class Ends(Struct, frozen=True):
    ended: float
    """Seconds from the end of the first pod until all pods were seen to have ended, 32 at a time."""
    reported: float
    """Seconds from the end of the first pod until all jobs were seen to have succeeded."""
    cpu: float
    server_cpu: float
    """CPU of the apiserver: on a busy machine, it says more than time."""


async def ends(command: str, scenario: Scenario) -> Ends:
    """End all pods, once all run and the operator has nothing left to write."""
    async with (
        watched(command, scenario) as world,
        ScriptedKubelet(world.client, namespace=world.where) as kubelet,
    ):
        await create(scenario, world)
        await world.pods.reach(world.pods.running, scenario.total, "pods run")
        await final(world.client)
        started, cpu, server_cpu = time.monotonic(), world.process.cpu(), world.server.cpu()
        await in_parallel(list(world.pods.seen), kubelet.finish)
        reported = await world.jobs.reach(world.jobs.succeeded, scenario.jobs, "jobs have succeeded")
        ended = await world.pods.reach(world.pods.succeeded, scenario.total, "pods have succeeded")
        server_cpu = world.server.cpu() - server_cpu
        return Ends(ended - started, reported - started, world.process.cpu() - cpu, server_cpu)
