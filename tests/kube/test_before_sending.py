"""The check whether a request may be sent is made when it is sent, however long it waited; and who waits."""

import asyncio

import pytest
from aiohttp import web

from tests.kube.answers import answering
from tfyard import kube
from tfyard.kube import Access, Client, ClusterEntry, Limits, before_sending, requests, waiting_at_most
from tfyard.model.backoff import Backoff

CREATE = requests.create("/pods", {})


class Lost(Exception):
    pass


class Permission:
    """A permission that may be lost; counts the checks."""

    def __init__(self) -> None:
        self.holds, self.asked = True, 0

    def __call__(self) -> None:
        self.asked += 1
        if not self.holds:
            raise Lost


class Server:
    """A server that notes requests; answers each with the next of `codes`, if it is not held."""

    def __init__(self, *codes: int) -> None:
        self.codes, self.arrived, self.retry_after = list(codes), 0, "0"
        self.may_answer = asyncio.Event()
        self.has_arrived = asyncio.Event()

    async def __call__(self, _: web.Request) -> web.StreamResponse:
        self.arrived += 1
        self.has_arrived.set()
        await self.may_answer.wait()
        code = self.codes.pop(0) if self.codes else 200
        headers = {"Retry-After": self.retry_after} if code == 429 else {}
        return web.json_response({}, status=code, headers=headers)


async def send(client: Client, permission: Permission) -> None:
    with before_sending(permission):
        await client.send(CREATE)


async def test_requests_that_wait_for_their_turn_are_not_sent_after_the_permission_was_lost() -> None:
    server, permission = Server(), Permission()
    async with answering(server) as cluster, Client(Access(cluster), Limits(connections=1)) as client:
        waiting = [asyncio.create_task(send(client, permission)) for _ in range(20)]
        await server.has_arrived.wait()
        permission.holds = False
        server.may_answer.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in results] == [type(None)] + [Lost] * 19
    assert server.arrived == 1


async def test_a_retry_is_not_sent_after_the_permission_was_lost() -> None:
    server, permission = Server(429), Permission()
    limits = Limits(backoff=Backoff(first=0.01, longest=1.0))
    async with answering(server) as cluster, Client(Access(cluster), limits) as client:
        sending = asyncio.create_task(send(client, permission))
        await server.has_arrived.wait()
        permission.holds = False
        server.may_answer.set()
        with pytest.raises(Lost):
            await sending
    assert (server.arrived, permission.asked) == (1, 2)


async def test_the_permission_is_asked_for_when_there_is_a_connection_and_not_before() -> None:
    permission = Permission()
    nobody = ClusterEntry(server="http://127.0.0.1:1")
    async with Client(Access(nobody), Limits(attempts=1)) as client:
        with pytest.raises(kube.Unreachable):
            await send(client, permission)
    assert permission.asked == 0


async def test_requests_outside_of_the_block_are_not_checked() -> None:
    server, permission = Server(), Permission()
    server.may_answer.set()
    async with answering(server) as cluster, Client(Access(cluster)) as client:
        await send(client, permission)
        permission.holds = False
        await client.send(CREATE)
    assert (server.arrived, permission.asked) == (2, 1)


async def test_a_server_that_asks_for_a_long_wait_is_left_to_a_caller_who_can_say_so() -> None:
    server = Server(429, 429)
    server.may_answer.set()
    async with answering(server) as cluster, Client(Access(cluster)) as client:
        with waiting_at_most(5.0):
            await client.send(CREATE)
            assert server.arrived == 3, "short waits are not the caller's"
            server.codes, server.retry_after = [429], "3600"
            with pytest.raises(kube.TooManyRequests) as caught:
                await client.send(CREATE)
    assert (server.arrived, caught.value.retry_after) == (4, 60.0)


async def test_a_refused_connection_is_reported_with_the_message_of_the_system() -> None:
    """The message is without the objects that aiohttp would print."""
    async with Client(Access(ClusterEntry("https://127.0.0.1:1")), Limits(attempts=1)) as client:
        with pytest.raises(kube.Unreachable, match=r"^https://127.0.0.1:1: Connection refused$"):
            await client.send(CREATE)
