"""Measures `tfyard logs -f` of 64 replicas that write 1,000 lines a second each, against a server that only sends.

The server is a process of its own that writes on time, unless the reader does not keep up: then sending takes
longer than planned. The output is how long it took, the reader's CPU seconds per second and peak memory, how far
behind it was at the end, and whether each replica's lines were complete and in order.

python bench/logs.py [REPLICAS [LINES_PER_SECOND [SECONDS]]]
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from tfyard.kube import Access, ClusterEntry, kubeconfig
from tfyard.model.names import JOB_NAME, REPLICA_INDEX, REPLICA_TYPE

WRITES_PER_SECOND = 20
AT = "2026-11-16T03:00:00Z"
TEXT = "Epoch 3/10 step {n} loss: 0.4312 accuracy: 0.9123 some more words to make it a usual line"


class Sender:
    def __init__(self, replicas: int, rate: int, seconds: int) -> None:
        self._replicas, self._rate, self._seconds = replicas, rate, seconds
        self._open, self._is_over = 0, asyncio.Event()
        self._all_open = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/apis/kubeflow.org/v1/namespaces/default/tfjobs/{name}", self.job)
        app.router.add_get("/apis/kubeflow.org/v1/namespaces/default/tfjobs", self.jobs)
        app.router.add_get("/api/v1/namespaces/default/pods", self.pods)
        app.router.add_get("/api/v1/namespaces/default/pods/{pod}/log", self.log)
        return app

    def _job(self) -> dict[str, Any]:
        template = {"spec": {"containers": [{"name": "tensorflow", "image": "example/mnist:1"}]}}
        roles = {"Worker": {"replicas": self._replicas, "template": template}}
        times = {"lastUpdateTime": AT, "lastTransitionTime": AT}
        done = {"type": "Succeeded", "status": "True", "reason": "TFJobSucceeded", "message": "", **times}
        over = self._is_over.is_set()
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": _meta("bench", "job"),
            "spec": {"tfReplicaSpecs": roles},
            "status": {"phase": "Succeeded", "conditions": [done]} if over else {},
        }

    def _pod(self, index: int) -> dict[str, Any]:
        labels = {JOB_NAME: "bench", REPLICA_TYPE: "worker", REPLICA_INDEX: str(index)}
        ended = {"terminated": {"exitCode": 0, "startedAt": AT, "finishedAt": AT}}
        state = ended if self._is_over.is_set() else {"running": {"startedAt": AT}}
        program = {"name": "tensorflow", "restartCount": 0, "state": state}
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "bench", "uid": "job"}
        meta = {
            **_meta(f"bench-worker-{index}", f"pod-{index}"),
            "labels": labels,
            "ownerReferences": [owner],
        }
        return {"metadata": meta, "status": {"phase": "Running", "containerStatuses": [program]}}

    async def job(self, _: web.Request) -> web.Response:
        return web.json_response(self._job())

    async def jobs(self, request: web.Request) -> web.StreamResponse:
        return await self._list_or_watch(request, lambda: [self._job()])

    async def pods(self, request: web.Request) -> web.StreamResponse:
        return await self._list_or_watch(request, lambda: [self._pod(n) for n in range(self._replicas)])

    async def _list_or_watch(self, request: web.Request, make: Any) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": make()})
        response = web.StreamResponse()
        await response.prepare(request)
        await self._is_over.wait()
        if "tfjobs" in request.path:
            await asyncio.sleep(0.2)  # a job ends after its pods
        for each in make():
            await response.write(json.dumps({"type": "MODIFIED", "object": each}).encode() + b"\n")
        await asyncio.sleep(60)
        return response

    async def log(self, request: web.Request) -> web.StreamResponse:
        if "sinceTime" in request.query:  # the last look at a program that is over
            return web.Response(body=b"")
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        self._open += 1
        if self._open == self._replicas:
            print(time.time(), flush=True)
            self._all_open.set()
        await self._all_open.wait()
        await self._send(response)
        self._open -= 1
        if not self._open:
            print(time.time(), flush=True)
            self._is_over.set()
        return response

    async def _send(self, response: web.StreamResponse) -> None:
        """Send all lines on time; `drain` waits only if the reader does not read."""
        started, size = time.monotonic(), self._rate // WRITES_PER_SECOND
        for write in range(self._seconds * WRITES_PER_SECOND):
            stamp = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z "
            lines = (stamp + TEXT.format(n=write * size + n) for n in range(size))
            await response.write(("\n".join(lines) + "\n").encode())
            await asyncio.sleep(max(0.0, started + (write + 1) / WRITES_PER_SECOND - time.monotonic()))


def _meta(name: str, uid: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "default",
        "uid": uid,
        "creationTimestamp": AT,
        "resourceVersion": "1",
    }


async def serve(replicas: int, rate: int, seconds: int) -> None:
    runner = web.AppRunner(Sender(replicas, rate, seconds).app())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.sleep(3600)


def complete(output: Path, replicas: int, count: int) -> bool:
    """Whether each replica's lines are all there, in order."""
    seen: dict[bytes, int] = {}
    for line in output.read_bytes().splitlines():
        task, _, text = line.partition(b" ")
        number = int(text.partition(b"step ")[2].partition(b" ")[0])
        if number != seen.get(task, 0):
            return False
        seen[task] = number + 1
    return len(seen) == replicas and set(seen.values()) == {count}


def main(replicas: int = 64, rate: int = 1000, seconds: int = 10) -> None:
    command = [sys.executable, __file__, "serve", str(replicas), str(rate), str(seconds)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            config, output = Path(folder, "config"), Path(folder, "out")
            address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
            config.write_text(kubeconfig.dump(Access(ClusterEntry(server=address))))
            follow = [sys.executable, "-m", "tfyard", "logs", "-f", "bench", "-n", "default"]
            with output.open("wb") as out:
                env = {**os.environ, "KUBECONFIG": str(config)}
                done = subprocess.run(follow, stdout=out, stderr=subprocess.PIPE, env=env, check=False)
                ended = time.time()
            began, sent = (float(server.stdout.readline()) for _ in range(2))
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            lines = output.read_bytes().count(b"\n")
            is_complete = complete(output, replicas, rate * seconds)
        finally:
            server.kill()
    took = sent - began
    print(f"{lines:,} lines, sent in {took:.1f} s of {seconds} planned; complete and in order: {is_complete}")
    print(
        f"reader: {(used.ru_utime + used.ru_stime) / seconds:.2f} CPU s per s, {used.ru_maxrss / 1024:.0f} MiB"
    )
    print(f"ended {ended - sent:.1f} s after the last line was sent; exit code {done.returncode}")
    if not is_complete or done.returncode:
        sys.exit(f"wrong: {done.stderr.decode()[-500:]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(*map(int, sys.argv[2:])))
    else:
        main(*map(int, sys.argv[1:]))
