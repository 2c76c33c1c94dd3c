"""A watch that stays correct through restarts, compaction, silence and half-dead connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from tests.kube.answers import answering
from tfyard import kube
from tfyard.kube import Access, Changed, Client, Kind, KubeError, Removed, Snapshot, WatchOptions, requests
from tfyard.kube.kinds import Bookmark
from tfyard.model.backoff import Backoff
from tfyard.testing import ControlPlane, Relay, builders, eventually

pytestmark = pytest.mark.cluster


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str


class Named(msgspec.Struct, frozen=True):
    metadata: Meta


KIND = Kind(Named)
HASTY = WatchOptions(backoff=Backoff(first=0.05, longest=0.5, jitter=0.5))
ROOT_CA = "kube-root-ca.crt"


class Follower:
    """The objects that a controller would know, and the number of snapshots from the watch."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.snapshots = 0
        self.interruptions: list[KubeError | None] = []

    async def follow(self, client: Client, path: str, options: WatchOptions, labels: dict[str, str]) -> None:
        noting = msgspec.structs.replace(options, on_interrupt=self.interruptions.append)
        async for change in kube.watch(client, KIND, path, requests.selecting(labels), noting):
            if isinstance(change, Snapshot):
                self.names, self.snapshots = {item.metadata.name for item in change.items}, self.snapshots + 1
            elif isinstance(change, Changed):
                self.names.add(change.object.metadata.name)
            elif isinstance(change, Removed):
                self.names.discard(change.object.metadata.name)

    async def until(self, *names: str) -> None:
        async def look() -> None:
            assert self.names - {ROOT_CA} == set(names)

        await eventually(look, timeout=60)

    async def until_listed(self) -> None:
        async def look() -> None:
            assert self.snapshots

        await eventually(look)

    async def until_interrupted(self, times: int = 1) -> None:
        async def look() -> None:
            assert len(self.interruptions) >= times

        await eventually(look, timeout=60)


@asynccontextmanager
async def following(
    client: Client, namespace: str, options: WatchOptions = HASTY, labels: dict[str, str] | None = None
) -> AsyncIterator[Follower]:
    follower = Follower()
    path = requests.CONFIG_MAPS.path(namespace)
    task = asyncio.create_task(follower.follow(client, path, options, labels or {}))
    try:
        await follower.until_listed()
        if not labels:
            await see_a_change(client, namespace, follower)
        yield follower
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def see_a_change(client: Client, namespace: str, follower: Follower) -> None:
    """Waits for a first event: faults must hit the stream, not the list before it."""
    await create(client, namespace, "probe")
    await follower.until("probe")
    await delete(client, namespace, "probe")
    await follower.until()


async def create(client: Client, namespace: str, name: str) -> None:
    await client.send(requests.create(requests.CONFIG_MAPS.path(namespace), builders.config_map(name)))


async def delete(client: Client, namespace: str, name: str) -> None:
    await client.send(requests.delete(requests.CONFIG_MAPS.path(namespace, name)))


@asynccontextmanager
async def relayed(plane: ControlPlane) -> AsyncIterator[tuple[Relay, Client]]:
    async with Relay(plane.server) as relay:
        cluster = msgspec.structs.replace(plane.admin.cluster, server=relay.url)
        async with plane.client(msgspec.structs.replace(plane.admin, cluster=cluster)) as client:
            yield relay, client


async def test_a_watch_reports_present_changed_and_removed_objects(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client, following(client, namespace) as follower:
        await create(client, namespace, "a")
        await create(client, namespace, "b")
        await follower.until("a", "b")
        await delete(client, namespace, "a")
        await follower.until("b")
    assert follower.snapshots == 1
    assert follower.interruptions == []


async def test_it_survives_a_killed_and_restarted_apiserver(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client, following(client, namespace) as follower:
        await create(client, namespace, "before")
        await follower.until("before")
        control_plane.apiserver.kill()
        await asyncio.to_thread(control_plane.start, "kube-apiserver")
        await create(client, namespace, "after")
        await follower.until("before", "after")
    assert isinstance(follower.interruptions[0], kube.Unreachable)


async def test_history_that_was_compacted_away_means_a_new_snapshot(
    control_plane: ControlPlane, namespace: str
) -> None:
    options = msgspec.structs.replace(HASTY, idle_timeout=1.0)
    async with (
        control_plane.client() as admin,
        relayed(control_plane) as (relay, client),
        following(client, namespace, options) as follower,
    ):
        await create(admin, namespace, "early")
        await follower.until("early")
        relay.freeze()
        await create(admin, namespace, "missed")
        await delete(admin, namespace, "early")
        control_plane.compact()
        # The apiserver's watch cache still has the history; a restart makes it forget as well.
        control_plane.apiserver.kill()
        await asyncio.to_thread(control_plane.start, "kube-apiserver")
        relay.thaw()
        await follower.until("missed")
        await create(admin, namespace, "late")
        await follower.until("missed", "late")
    assert follower.snapshots == 2
    assert [type(problem) for problem in follower.interruptions].count(kube.Expired) == 1


async def test_bookmarks_carry_the_version_from_which_to_resume(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Periodic bookmarks come once a minute, or not; the one that ends a streamed list comes at once."""
    streamed = {"watch": "1", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    query = {**streamed, "allowWatchBookmarks": "true", **requests.selecting({"never": "matches"})}
    collection = requests.CONFIG_MAPS.path(namespace)
    async with control_plane.client() as client:
        await create(client, namespace, "noise")
        noise = await client.send(requests.get(f"{collection}/noise"), KIND.one)
        async with client.stream(requests.get(collection, query), idle=30) as chunks:
            event = KIND.event.decode(await anext(kube.watch_lines(chunks)))
    assert isinstance(event, Bookmark)
    assert int(event.object.metadata.resource_version) >= int(noise.metadata.resource_version)


async def test_idle_time_outs_of_either_side_lose_nothing(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        for options in (
            msgspec.structs.replace(HASTY, idle_timeout=0.5),
            msgspec.structs.replace(HASTY, request_timeout=1.0),
        ):
            async with following(client, namespace, options) as follower:
                await follower.until_interrupted()
                await create(client, namespace, "a")
                await follower.until("a")
                await delete(client, namespace, "a")
                await follower.until()
            assert follower.snapshots == 1


async def test_a_stopped_server_is_noticed_and_met_again(control_plane: ControlPlane, namespace: str) -> None:
    """After SIGSTOP the kernel keeps acknowledging, so neither keep-alives nor the socket report an error."""
    options = msgspec.structs.replace(HASTY, idle_timeout=1.0)
    async with control_plane.client() as client, following(client, namespace, options) as follower:
        control_plane.apiserver.pause()
        await follower.until_interrupted()
        control_plane.apiserver.resume()
        await create(client, namespace, "after")
        await follower.until("after")
    assert follower.snapshots == 1


@pytest.mark.parametrize("spoil", [Relay.half_close, Relay.cut, Relay.freeze], ids=lambda verb: verb.__name__)
async def test_half_closed_cut_and_half_open_connections_lose_nothing(
    control_plane: ControlPlane, namespace: str, spoil: object
) -> None:
    options = msgspec.structs.replace(HASTY, idle_timeout=1.0)
    async with (
        control_plane.client() as admin,
        relayed(control_plane) as (relay, client),
        following(client, namespace, options) as follower,
    ):
        assert callable(spoil)
        spoil(relay)
        await create(admin, namespace, "missed")
        await follower.until_interrupted()
        relay.thaw()
        await follower.until("missed")
    assert follower.snapshots == 1


async def test_an_absent_server_is_asked_ever_more_seldom(
    control_plane: ControlPlane, namespace: str
) -> None:
    options = WatchOptions(backoff=Backoff(first=0.2, longest=30, jitter=0.5))
    async with control_plane.client() as client, following(client, namespace, options) as follower:
        control_plane.apiserver.kill()
        await asyncio.sleep(3)
        asked = len(follower.interruptions)
        await asyncio.to_thread(control_plane.start, "kube-apiserver")
        await create(client, namespace, "after")
        await follower.until("after")
    assert 1 <= asked <= 6


async def test_a_watch_that_may_not_be_is_refused_at_once(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client(control_plane.access("nobody")) as client:
        with pytest.raises(kube.Forbidden):
            await Follower().follow(client, requests.CONFIG_MAPS.path(namespace), HASTY, {})


async def test_lines_are_whole_whatever_the_chunks() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b'{"a"', b":1}\n{", b'"b":2}\n\n{"c":3}\n{"half', b"of"):
            yield chunk

    assert [line async for line in kube.watch_lines(chunks())] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


async def test_a_list_whose_moment_is_compacted_away_begins_again_with_pages() -> None:
    """Without pages, one answer had all objects: as much as all tenants together want to write."""
    limits: list[str | None] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        limits.append(request.query.get("limit"))
        if "continue" in request.query and len(limits) == 2:
            return web.json_response({"code": 410, "reason": "Expired"}, status=410)
        meta = {"resourceVersion": "1", "continue": "" if len(limits) == 4 else "next"}
        return web.json_response({"metadata": meta, "items": []})

    async with answering(answer) as cluster, Client(Access(cluster)) as client:
        listing = await kube.list_all(client, KIND, requests.PODS.path("lab"))
    assert listing.resource_version == "1"
    assert len(limits) == 4
    assert None not in limits
