"""Logs of a job, followed through the real API server: over broken connections and restarts of everything."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cli.test_describe import allow
from tests.kubelet.plain_containers import node
from tests.remote.log_job import COUNT, LogJob, ended, failed, running
from tfyard.errors import TfyardError
from tfyard.kube import Access, Forbidden, requests
from tfyard.kube.sync import SyncClient
from tfyard.logs.lines import Lines, LogEvent, LogSelection
from tfyard.model.backoff import Backoff
from tfyard.overview.waiting import WaitResult
from tfyard.remote.logs import follow, stored_logs
from tfyard.remote.logs.tail import TailPace
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.testing import ControlPlane, Relay, eventually

pytestmark = pytest.mark.cluster

PACE = TailPace(idle=2.0, settle=0.5, grace=0.5, patience=0.5, backoff=Backoff(first=0.1, longest=0.5))


class Seen:
    """What was shown, by start."""

    def __init__(self) -> None:
        self.lines: dict[str, list[bytes]] = {}
        self.said: list[tuple[str, str, str]] = []
        self.verdict: WaitResult | None = None

    def show(self, event: LogEvent) -> None:
        if isinstance(event, Lines):
            self.lines.setdefault(event.start.name, []).extend(event.texts)
        else:
            self.said.append((event.kind, event.start.name if event.start else "", event.text))

    def of(self, *kinds: str) -> list[tuple[str, str, str]]:
        return [said for said in self.said if said[0] in kinds]

    async def has(self, start: str, count: int) -> None:
        async def look() -> None:
            assert len(self.lines.get(start, [])) >= count, (start, self.said)

        await eventually(look, 60)


@asynccontextmanager
async def following(
    access: Access, found: StoredTFJob, wanted: LogSelection, pace: TailPace = PACE
) -> AsyncIterator[Seen]:
    seen = Seen()

    async def run() -> None:
        async for event in follow.follow(access, found, wanted, pace):
            if isinstance(event, WaitResult):
                seen.verdict = event
            elif event is not None:
                seen.show(event)

    task = asyncio.create_task(run())
    try:
        yield seen
        await asyncio.wait_for(task, 60)
    finally:
        task.cancel()


def behind(relay: Relay, plane: ControlPlane) -> Access:
    name = plane.admin.cluster.tls_server_name or "127.0.0.1"
    cluster = replace(plane.admin.cluster, server=relay.url, tls_server_name=name)
    return replace(plane.admin, cluster=cluster)


@pytest.mark.parametrize("restarts_server", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_no_line_is_lost_or_doubled_over_broken_connections_and_restarts(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path, restarts_server: bool
) -> None:
    async def break_server() -> None:
        relay.freeze()
        await asyncio.sleep(PACE.idle + 0.5)
        relay.thaw()
        await seen.has("worker-0", len(seen.lines["worker-0"]) + 20)
        control_plane.restart("kube-apiserver")
        await seen.has("worker-0", len(seen.lines["worker-0"]) + 20)

    wanted = LogSelection(tasks=("worker-0", "worker-1"))
    async with node(control_plane, namespace, tmp_path) as box, Relay(control_plane.server) as relay:
        job = LogJob(box)
        found = await job.create()
        async with following(behind(relay, control_plane), found, wanted) as seen:
            await job.create_pod(0)
            await job.start(0, COUNT)
            await job.set_pod(0, running())
            await seen.has("worker-0", 20)
            for break_it in (relay.cut, relay.half_close):
                break_it()
                await seen.has("worker-0", len(seen.lines["worker-0"]) + 20)
            await box.restart_server(after=0.5)
            await seen.has("worker-0", len(seen.lines["worker-0"]) + 20)
            if restarts_server:
                await break_server()
            (tmp_path / "go").touch()
            await box.containers.runs["first-worker-0"][0].wait()
            await job.set_pod(0, ended(7))
            await job.set_status(**failed("worker-0", 7))
        lines = seen.lines["worker-0"]
        assert lines == [*(b"line %d" % n for n in range(len(lines) - 1)), b"last"]
        assert seen.verdict is not None
        assert seen.verdict.code == 7
        assert not seen.of("restarted")
        assert ("gap", "worker-1") in {(kind, name) for kind, name, _ in seen.said}
        assert ("gap", "worker-0") not in {(kind, name) for kind, name, _ in seen.said}


async def test_restarts_in_place_and_new_pods_are_followed_and_told(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        job = LogJob(box)
        found, slow = (
            await job.create(1),
            replace(PACE, settle=30.0),
        )  # statuses follow when a machine has time
        async with following(control_plane.admin, found, LogSelection(tasks=("worker-0",)), slow) as seen:
            await job.create_pod(0)
            await (await job.start(0, "print('one')\nprint('two', end='')")).wait()
            await job.set_pod(0, running())
            await seen.has("worker-0", 1)
            await (await job.start(0, "print('three')")).wait()
            await job.set_pod(0, running(), 1, lastState=ended(137, "OOMKilled"))
            await seen.has("worker-0#1.1", 1)
            await job.set_pod(0, ended(1), 1)
            await seen.has("worker-0#1.1", 1)
            await job.delete_pod(0)
            await job.create_pod(0, attempt=1)
            await (await job.start(0, "print('four')")).wait()
            await job.set_pod(0, ended(0, "Completed"))
            await seen.has("worker-0#2", 1)
            await job.delete_pod(0)  # so soon that the operator only sees that there is none
            await job.create_pod(0, attempt=1)
            await (await job.start(0, "print('five')")).wait()
            await job.set_pod(0, ended(1))
            await seen.has("worker-0#3", 1)
            await job.set_status(**failed("worker-0", 1))
        assert seen.lines == {
            "worker-0": [b"one", b"two"],
            "worker-0#1.1": [b"three"],
            "worker-0#2": [b"four"],
            "worker-0#3": [b"five"],
        }
        assert seen.of("restarted", "gap") == [
            ("restarted", "worker-0#1.1", "restarted: OOMKilled, exit code 137"),
            ("restarted", "worker-0#2", "restarted: exit code 1"),
            ("restarted", "worker-0#3", "restarted: exit code 0"),
        ]


async def test_a_pending_job_is_waited_for_and_a_deleted_one_is_told(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        job = LogJob(box)
        found = await job.create(1)
        async with following(control_plane.admin, found, LogSelection(tasks=("worker-0",))) as seen:

            async def told(text: str) -> None:
                async def look() -> None:
                    assert seen.of("waiting")[-1:] == [("waiting", "", f"waiting: {text}")]

                await eventually(look)

            await told("no pods yet")
            await job.create_pod(0)
            await job.set_pod(0, {"waiting": {"reason": "ErrImagePull", "message": "no such image"}})
            await told("worker-0: ErrImagePull: no such image")
            await box.client.send(requests.delete(found.path))
        texts = [text for _, _, text in seen.of("waiting")]
        assert texts[0] == "waiting: no pods yet"
        assert len({*texts}) == len(texts), "each reason is told once"
        assert seen.verdict is not None
        assert seen.verdict.code == 3


async def test_a_server_that_has_moved_ends_the_command_with_a_sentence(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async def lists_pods(seen: Seen) -> None:
        assert seen.of("waiting")

    async def lose_server(found: StoredTFJob) -> None:
        wanted, pace = LogSelection(tasks=("worker-0",)), replace(PACE, outage=2.0)
        async with (
            Relay(control_plane.server) as relay,
            following(behind(relay, control_plane), found, wanted, pace) as seen,
        ):
            await eventually(lambda: lists_pods(seen))
            await relay.__aexit__()

    async with node(control_plane, namespace, tmp_path) as box:
        found = await LogJob(box).create()
        with pytest.raises(
            TfyardError, match=r"no answer for 2s; the job may run on: `tfyard logs -f first`"
        ):
            await lose_server(found)


LACKS = {"list pods": (), "watch pods": ("list",), "get pods/log": ("list", "watch")}
"""What a user lacks -> what that user may do with pods."""


async def test_a_missing_permission_is_reported_and_is_no_log_that_is_gone(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    users = {right: control_plane.access(f"user-{number}") for number, right in enumerate(LACKS)}
    for number, verbs in enumerate(LACKS.values()):
        jobs = {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get", "list", "watch"]}
        pods = {"apiGroups": [""], "resources": ["pods"], "verbs": [*verbs]}
        allow(control_plane, namespace, f"user-{number}", [jobs, *([pods] if verbs else [])])

    async def told(find: Callable[[Access], Awaitable[None]], *rights: str) -> None:
        for right in rights:
            with pytest.raises(Forbidden, match=rf"^user-\d may not {right} in the namespace {namespace}; "):
                await asyncio.wait_for(find(users[right]), 20)

    async def followed(access: Access) -> None:
        async for _ in follow.follow(access, found, wanted, PACE):
            pass

    async def read(access: Access) -> None:
        with SyncClient(access) as client:
            await asyncio.to_thread(lambda: [*stored_logs.read(client, found, wanted)])

    async with node(control_plane, namespace, tmp_path) as box:
        job, wanted = LogJob(box), LogSelection(tasks=("worker-0",))
        found = await job.create(1)
        await job.create_pod(0)
        await told(followed, "watch pods")
        await job.set_pod(0, running())
        await told(followed, "list pods", "get pods/log")
        await told(read, "list pods", "get pods/log")
        await job.set_status(**failed("worker-0", 7))
        found = StoredTFJob(found.resource, await box.client.send(requests.get(found.path)))
        await told(followed, "list pods", "get pods/log")
