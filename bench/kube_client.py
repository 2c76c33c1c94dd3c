"""Measures CPU per request of tfyard's client beside a bare aiohttp loop, and a kubelet's pods beside bare writes.

Only the ratios matter; they are printed, never asserted. Both sides of each ratio talk to the same real apiserver,
in the same process, turn by turn.
"""

import asyncio
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec

from tfyard.kube import Client, Kind, Patch, list_all, login, requests
from tfyard.kubelet import pod_status
from tfyard.testing import ControlPlane, Pod, Script, ScriptedKubelet, builders
from tfyard.testing.scripted import ScriptedPod

REQUESTS = 1000
ROUNDS = 3
PARALLEL = 32
PODS = 2000

Work = Callable[[str], Awaitable[Any]]


async def in_parallel(names: list[str], work: Work) -> None:
    """Run work in a few workers instead of one task per item, so that neither side pays for the other's queue."""
    queue = iter(names)

    async def worker() -> None:
        for name in queue:
            await work(name)

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measured(work: Awaitable[Any]) -> tuple[float, float]:
    started, used = time.monotonic(), cpu()
    await work
    return time.monotonic() - started, cpu() - used


async def bare_post(plane: ControlPlane, path: str, names: list[str]) -> None:
    tls = login.tls(plane.admin.cluster, login.keys(plane.admin, login.ExecStatus()))
    headers = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=PARALLEL, ssl=tls or True)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def post(name: str) -> None:
            body = msgspec.json.encode(builders.config_map(name))
            async with session.post(plane.server + path, data=body, headers=headers) as response:
                msgspec.json.decode(await response.read())

        await in_parallel(names, post)


async def our_post(client: Client, path: str, names: list[str]) -> None:
    async def post(name: str) -> None:
        await client.send(requests.create(path, builders.config_map(name)))

    await in_parallel(names, post)


async def compare_clients(plane: ControlPlane) -> None:
    ours, bare = [], []
    for turn in range(ROUNDS):
        async with plane.client() as client:
            path = requests.CONFIG_MAPS.path(await builders.create_namespace(client))
            bare.append(await measured(bare_post(plane, path, [f"b{n}" for n in range(REQUESTS)])))
            ours.append(await measured(our_post(client, path, [f"o{n}" for n in range(REQUESTS)])))
        print(f"  round {turn + 1}: bare {show(bare[-1])}, ours {show(ours[-1])}")
    ratio = min(used for _, used in ours) / min(used for _, used in bare)
    print(f"  CPU per POST: ours / bare = {ratio:.2f} (target: at most 1.3)")


def show(figures: tuple[float, float]) -> str:
    wall, used = figures
    return f"{used / REQUESTS * 1000:.3f} ms CPU, {REQUESTS / wall:.0f}/s"


async def create_pods(client: Client, namespace: str, prefix: str) -> None:
    path = requests.PODS.path(namespace)
    names = [f"{prefix}-{number}" for number in range(PODS)]
    await in_parallel(names, lambda name: client.send(requests.create(path, builders.pod(name))))


async def bare_writes(client: Client, namespace: str, node: str) -> None:
    """The three writes of each pod's life, and nothing else: the limit of the apiserver."""
    listing = await list_all(client, Kind(Pod), requests.PODS.path(namespace))
    pods = {pod.metadata.name: pod for pod in listing.items}

    async def live(name: str) -> None:
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        status = requests.PODS.path(namespace, name, "status")
        scripted = ScriptedPod(pods[name], Script(), "10.1.0.1")
        await client.send(requests.create(requests.PODS.path(namespace, name, "binding"), binding))
        for state in (scripted.running(is_ready=True), scripted.ended(scripted.exits(0))):
            patch = pod_status.patch(pods[name], state)
            await client.send(requests.patch(status, patch, Patch.STRATEGIC))

    await in_parallel(list(pods), live)


async def all_succeeded(client: Client, namespace: str) -> None:
    succeeded = {**requests.selecting(fields={"status.phase": "Succeeded"}), "limit": "1"}
    others = {"fieldSelector": "status.phase!=Succeeded", "limit": "1"}
    while True:
        page = await client.send(requests.get(requests.PODS.path(namespace), succeeded))
        # The server does not count objects that a selector leaves out, so look for one that has not succeeded.
        waiting = await client.send(requests.get(requests.PODS.path(namespace), others))
        if page["items"] and not waiting["items"]:
            return
        await asyncio.sleep(0.1)


async def compare_kubelet(plane: ControlPlane) -> None:
    async with plane.client() as client:
        bare, scripted = [await builders.create_namespace(client) for _ in range(2)]
        await create_pods(client, bare, "bare")
        wall, used = await measured(bare_writes(client, bare, "bare-node"))
        print(f"  bare writes: {wall:.1f} s, {used / PODS * 1000:.2f} ms CPU per pod")
        await create_pods(client, scripted, "worker")
        async with ScriptedKubelet(client, Script(run_for=0.0), scripted):
            our_wall, our_used = await measured(all_succeeded(client, scripted))
        print(f"  the kubelet: {our_wall:.1f} s, {our_used / PODS * 1000:.2f} ms CPU per pod")
        print(f"  {PODS} pods from Pending to Succeeded: kubelet / bare writes = {our_wall / wall:.2f}")


def main() -> int:
    started = time.monotonic()
    with ControlPlane() as plane:
        print(f"control plane {plane.binaries.version} ready after {time.monotonic() - started:.1f} s")
        asyncio.run(compare_clients(plane))
        asyncio.run(compare_kubelet(plane))
    return 0


if __name__ == "__main__":
    sys.exit(main())
