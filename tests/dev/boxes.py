"""Programs in a private network with a way out: see tests/node/boxes.py."""

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import AsyncExitStack
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from tests.node.boxes import ASK, SERVER, Box, become
from tfyard.controlplane.components import ON_LOOPBACK
from tfyard.dev import pod_proxy
from tfyard.dev.connections import Listener, Stream, join
from tfyard.dev.outside import Outside
from tfyard.dev.pod_proxy import PodProxy
from tfyard.dev.processes import family
from tfyard.dev.service_relay import ENDPOINT_SLICES, ServiceRelay
from tfyard.kube import Client, kubeconfig, requests
from tfyard.node.network import BoxNetwork, BridgedNetwork
from tfyard.node.processes import Processes
from tfyard.views.objects import SERVICE_NAME

FETCH = """
import sys, urllib.request
for target in sys.argv[1:]:
    print(urllib.request.urlopen(f"http://{target}/some/page?a=b").read().decode(), flush=True)
"""
TUNNEL = """
import http.client, sys
for target in sys.argv[1:]:
    through = http.client.HTTPConnection("10.244.0.1", 3128, timeout=20)
    host, _, port = target.rpartition(":")
    through.set_tunnel(host, int(port))
    try:
        through.request("GET", "/tunnel")
        print(through.getresponse().read().decode(), flush=True)
    except OSError as problem:
        print(problem, flush=True)
"""
COUNT = """
import collections, socket, sys
host, port, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
heard = collections.Counter()
for _ in range(times):
    try:
        with socket.create_connection((host, port), 10) as connection:
            heard[connection.recv(100).decode()] += 1
    except OSError as problem:
        heard[type(problem).__name__] += 1
print(dict(sorted(heard.items())), flush=True)
"""


async def way_out(box: Box, outside: Outside, words: list[str]) -> Any:
    """A server on the machine's loopback, by the proxy, and what cannot be reached."""
    server, closed = words
    box.env = pod_proxy.environment(box.network) | {"no_proxy": "", "NO_PROXY": ""}
    async with PodProxy(box.network, outside):
        client = box.pod("client")
        box.start("client", client, FETCH, server)
        box.start("client.2", client, TUNNEL, server, closed, "no-such-host.invalid:80")
        return [await box.lines("client", 1), await box.lines("client.2", 3)]


async def half_closed(box: Box, outside: Outside, words: list[str]) -> Any:
    """A large answer to a client that has closed its own side already."""
    host, _, port = words[0].partition(":")
    connection = await outside.connect(host, int(port))
    reader, writer = await asyncio.open_connection(sock=connection)
    writer.write(b"GET /large HTTP/1.0\r\n\r\n")
    writer.write_eof()
    return len(await reader.read())


async def killed(box: Box, outside: Outside, words: list[str]) -> Any:
    """Each of its two processes in turn, then both at once."""
    heard = [await try_connect(outside, words[0])]
    keeper = outside.process.pid
    for victim in ("worker", "keeper", "worker", "both"):
        both = family(keeper)
        chosen = {"worker": both[1:], "keeper": both[:1], "both": both}[victim]
        for pid in chosen:
            os.kill(pid, signal.SIGKILL)
        keeper = both[1] if victim == "keeper" else keeper
        while victim != "both" and (len(family(keeper)) < 2 or set(family(keeper)) & set(chosen)):
            await asyncio.sleep(0.02)
        heard.append(await try_connect(outside, words[0]))
    return heard


async def try_connect(outside: Outside, target: str) -> str:
    host, _, port = target.partition(":")
    try:
        (await outside.connect(host, int(port))).close()
    except OSError as problem:
        return str(problem)
    return "connected"


PROXIED = """
import socket
with socket.create_connection(("10.244.0.1", 3128), 20) as proxy:
    proxy.sendall(b"CONNECT web:80 HTTP/1.1\\r\\n\\r\\n")
    answer = b""
    while data := proxy.recv(1000):
        answer += data
print(answer.decode().splitlines()[0], "I am" in answer.decode(), flush=True)
"""


async def stay(box: Box, outside: Outside, _words: list[str]) -> None:
    (box.folder / "pid").write_text(str(outside.process.pid))
    await asyncio.sleep(600)


async def services(box: Box, outside: Outside, words: list[str]) -> Any:
    """A ClusterIP with two pods, one of which stops being ready, and a headless Service."""
    async with AsyncExitStack() as parts:
        client, namespace = await connect(parts, outside, words[0]), words[1]
        await parts.enter_async_context(ServiceRelay(client, box.network.hosts))
        one, two, asking = (box.pod(name, namespace) for name in ("one", "two", "client"))
        for name, pod in (("one", one), ("two", two)):
            box.start(name, pod, SERVER, f"I am {name}")
            await box.lines(name, 1)
        address = await create(client, namespace, "web", {"ports": [{"port": 80, "targetPort": 2222}]})
        await create(client, namespace, "ring", {"clusterIP": "None"})
        await set_slice(client, namespace, "web", {"one": one.address, "two": two.address})
        await set_slice(client, namespace, "ring", {"one": one.address, "two": two.address})
        box.start("client", asking, ASK, "two.ring")
        heard = await box.lines("client", 1)
        await until_heard(address, {"I am one", "I am two"})
        heard += await count(box, asking, address, "client.both")
        heard += await count(box, asking, "web", "client.named")
        await parts.enter_async_context(PodProxy(box.network, outside))
        box.start("client.proxied", asking, PROXIED)  # a short name, by the namespace of the pod that asks
        heard += await box.lines("client.proxied", 1)
        await set_slice(client, namespace, "web", {"one": one.address}, {"two": two.address})
        await until_heard(address, {"I am one"})
        heard += await count(box, asking, address, "client.one")
        await set_slice(client, namespace, "web", {}, {"one": one.address})
        await until_heard(address, {"ConnectionRefusedError"})
        return heard + await count(box, asking, address, "client.none")


async def many_names(box: Box, outside: Outside, words: list[str]) -> Any:
    """How often each of three hosts files is written while 100 endpoints come, and in how many seconds."""
    async with AsyncExitStack() as parts:
        client, namespace = await connect(parts, outside, words[0]), words[1]
        await parts.enter_async_context(ServiceRelay(client, box.network.hosts))
        for number in range(3):
            box.pod(f"pod-{number}", namespace)
        await create(client, namespace, "ring", {"clusterIP": "None"})
        before, began = box.network.hosts.writes, time.monotonic()
        hosts = {f"worker-{number}": f"10.244.1.{number}" for number in range(100)}
        slices = [set_slice(client, namespace, "ring", {name: hosts[name]}, slice=name) for name in hosts]
        await asyncio.gather(*slices)
        file = box.folder / "pod-0-etc" / "hosts"
        while file.read_text().count(f".ring.{namespace}.svc.cluster.local") < len(hosts):
            await asyncio.sleep(0.02)
        return (box.network.hosts.writes - before) // 3, time.monotonic() - began


async def connect(parts: AsyncExitStack, outside: Outside, path: str) -> Client:
    """A client of an apiserver on the machine's loopback, which has the same address in the private network."""
    access = kubeconfig.load({}, path)
    host, _, port = access.cluster.server.removeprefix("https://").partition(":")

    async def accept(stream: Stream) -> None:
        await join(stream, await asyncio.open_connection(sock=await outside.connect(host, int(port))))

    listener = Listener(accept)
    await listener.start(host, int(port))
    parts.push_async_callback(listener.close)
    return await parts.enter_async_context(Client(access))


async def create(client: Client, namespace: str, name: str, spec: dict[str, Any]) -> str:
    """Its cluster address."""
    service = {"metadata": {"name": name}, "spec": spec}
    made = await client.send(requests.create(requests.SERVICES.path(namespace), service))
    return str(made["spec"]["clusterIP"])


async def set_slice(
    client: Client,
    namespace: str,
    service: str,
    ready: dict[str, str],
    not_ready: dict[str, str] | None = None,
    slice: str = "",
) -> None:
    """As the endpoint controller would: hostname -> address."""
    endpoints = [
        {"addresses": [address], "hostname": host, "conditions": {"ready": host in ready}}
        for host, address in (ready | (not_ready or {})).items()
    ]
    body = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": slice or service, "labels": {SERVICE_NAME: service}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "", "port": 2222}],
    }
    await client.send(requests.apply(ENDPOINT_SLICES.path(namespace, slice or service), body))


async def until_heard(address: str, expected: set[str]) -> None:
    """Wait until ten connections from inside the private network get these answers."""
    while {await hear(address) for _ in range(10)} != expected:
        await asyncio.sleep(0.02)


async def hear(address: str) -> str:
    try:
        reader, writer = await asyncio.open_connection(address, 80)
        text = await reader.read()
    except OSError as problem:  # also of a listener that is closed while we wait for its turn
        return type(problem).__name__
    writer.close()
    return text.decode()


async def count(box: Box, pod: BridgedNetwork, host: str, id: str) -> list[str]:
    box.start(id, pod, COUNT, host, "80", "4")
    return await box.lines(id, 1)


PROGRAMS = {each.__name__: each for each in (way_out, half_closed, killed, stay, services, many_names)}


async def _in_box(name: str, folder: Path, network: BoxNetwork, outside: Outside, words: list[str]) -> Any:
    async with outside, Processes(folder / "supervisor.log", lambda *_: None) as processes:
        return await PROGRAMS[name](Box(folder, network, processes), outside, words)


def main(name: str, folder: str, user: str, *words: str) -> None:
    if int(user) != os.getuid():
        become(int(user))
    outside = Outside()
    network = BoxNetwork.enter(IPv4Network(ON_LOOPBACK.services))
    print(json.dumps(asyncio.run(_in_box(name, Path(folder), network, outside, list(words)))))
    outside.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
