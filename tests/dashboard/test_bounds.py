"""What a page for many people may cost: requests by identity and not by tab, and people who come and go."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from tests.dashboard.counting import Counting, counting
from tests.dashboard.many import PODS, READ, account, add_job, add_namespace
from tfyard.dashboard import app
from tfyard.dashboard.board import WATCH
from tfyard.dashboard.people import OfferedJobs, People, SessionLimits
from tfyard.dashboard.security import LOOPBACK, PageSettings
from tfyard.dashboard.signing_in import SigningIn
from tfyard.dashboard.viewer import MOST_REQUESTS, Busy
from tfyard.kube import requests
from tfyard.kube.sync_lists import ONE_WATCH
from tfyard.testing import ControlPlane, eventually

pytestmark = [
    pytest.mark.cluster,
    # Keys of requests that are no words came with aiohttp 3.14; the page runs with 3.12, too.
    pytest.mark.filterwarnings("ignore::aiohttp.web_exceptions.NotAppKeyWarning"),
]
TABS = 100
SHORTEST = 0.8
"""Part of ONE_WATCH that the shortest watch lasts."""


@asynccontextmanager
async def page(people: People) -> AsyncIterator[str]:
    settings = PageSettings(hosts=frozenset(LOOPBACK))
    runner = web.AppRunner(app.make(SigningIn(people), settings), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def opened(tabs: AsyncExitStack, session: aiohttp.ClientSession, url: str) -> None:
    """A tab whose stream has told the first time."""
    stream = await tabs.enter_async_context(session.get(f"{url}live"))
    assert stream.status == 200
    assert (await stream.content.readline()).startswith(b"data: ")


async def test_a_hundred_tabs_of_one_identity_ask_the_server_no_more_than_one(
    control_plane: ControlPlane, crds: None
) -> None:
    team = await asyncio.to_thread(add_namespace, control_plane)
    await asyncio.to_thread(add_job, control_plane, team, "train")
    token = await asyncio.to_thread(account, control_plane, team, "anna", [READ, PODS])
    async with counting(control_plane) as counter, AsyncExitStack() as tabs:
        began = time.monotonic()
        people = People(OfferedJobs(cluster=counter.cluster), SessionLimits())
        url = await tabs.enter_async_context(page(people))
        connector = aiohttp.TCPConnector(limit=0)
        headers = {"Authorization": f"Bearer {token}"}
        session = await tabs.enter_async_context(aiohttp.ClientSession(connector=connector, headers=headers))
        await asyncio.gather(*(opened(tabs, session, url) for _ in range(TABS)))
        await eventually(lambda: has_watched(counter))
        assert counter.asked["POST selfsubjectreviews"] == 1
        assert counter.asked["GET tfjobs"] <= 4, (
            "whether they are served, and the list, for each of two groups"
        )
        assert counter.asked["WATCH tfjobs"] <= watches_since(began)
        assert counter.total() < TABS
        assert len(people) == 1


def watches_since(began: float) -> int:
    """One after the other, for one identity; on a busy machine, there may be time for several."""
    return 1 + int((time.monotonic() - began) / (SHORTEST * ONE_WATCH))


async def has_watched(counter: Counting) -> None:
    assert counter.asked["WATCH tfjobs"]


async def test_tabs_of_one_person_are_bounded_and_others_still_get_in(
    control_plane: ControlPlane, namespace: str
) -> None:
    tokens = [await asyncio.to_thread(account, control_plane, namespace, name) for name in ("many", "one")]
    async with AsyncExitStack() as tabs:
        url = await tabs.enter_async_context(
            page(People(OfferedJobs(cluster=control_plane.admin.cluster), SessionLimits()))
        )
        greedy, other = [
            await tabs.enter_async_context(
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0), headers={"Authorization": f"Bearer {token}"}
                )
            )
            for token in tokens
        ]
        await asyncio.gather(*(opened(tabs, greedy, url) for _ in range(MOST_REQUESTS)))
        async with greedy.get(url) as refused:
            assert (refused.status, "close some of them" in await refused.text()) == (503, True)
        async with other.get(url) as answer:
            assert answer.status == 200


async def test_people_are_bounded_in_number_and_whoever_looks_is_not_put_out(
    control_plane: ControlPlane, namespace: str
) -> None:
    tokens = [await asyncio.to_thread(account, control_plane, namespace, name) for name in ("a", "b", "c")]
    people = People(OfferedJobs(cluster=control_plane.admin.cluster), SessionLimits(people=2))
    try:
        first, second = [await people.of_token(token) for token in tokens[:2]]
        assert first
        assert second
        cookies = [people.new_cookie(each) for each in (first, second)]
        viewer = await second.viewer(())
        with viewer.asked():
            assert await people.of_token(tokens[2])
            assert people.of_cookie(cookies[0]) is None, "who looks least has made room"
            assert people.of_cookie(cookies[1]) is second
            third = await people.of_token(tokens[2])
            assert third
            with (
                (await third.viewer(())).asked(),
                pytest.raises(Busy, match="2 people look at this page now"),
            ):
                await people.of_token(tokens[0])
        assert len(people) == 2
    finally:
        await people.close()
    assert len(people) == 0
    assert viewer.board.is_closed


async def test_signing_out_ends_the_watch_with_its_token_before_the_server_would_end_it(
    control_plane: ControlPlane, crds: None, namespace: str
) -> None:
    token = await asyncio.to_thread(account, control_plane, namespace, "goes", [READ])
    async with counting(control_plane) as counter:
        began = time.monotonic()
        people = People(OfferedJobs(cluster=counter.cluster), SessionLimits())
        try:
            person = await people.of_token(token)
            assert person
            cookie = people.new_cookie(person)
            await person.viewer(())
            await eventually(lambda: has_watched(counter))
            assert watches()
            await people.sign_out(cookie)

            async def none() -> None:
                assert watches() == []

            await eventually(none, ONE_WATCH / 2)
            assert counter.asked["WATCH tfjobs"] <= watches_since(began)
        finally:
            await people.close()


def watches() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith(WATCH)]


async def test_sessions_end_when_nobody_looks_and_when_the_token_is_refused(
    control_plane: ControlPlane, namespace: str
) -> None:
    tokens = [
        await asyncio.to_thread(account, control_plane, namespace, name) for name in ("idle", "revoked")
    ]
    people = People(
        OfferedJobs(cluster=control_plane.admin.cluster), SessionLimits(idle=2.0, check=0.2, sweep=0.1)
    )
    try:
        idle, revoked = [await people.of_token(token) for token in tokens]
        assert idle
        assert revoked
        cookies = [people.new_cookie(each) for each in (idle, revoked)]
        viewer = await revoked.viewer(())
        with viewer.asked():  # an open page: it is not idle

            async def only_one() -> None:
                assert len(people) == 1

            await eventually(only_one)
            assert people.of_cookie(cookies[0]) is None
            assert people.of_cookie(cookies[1]) is revoked
            async with control_plane.client() as client:
                await client.send(requests.delete(requests.SERVICE_ACCOUNTS.path(namespace, "revoked")))

            async def nobody() -> None:
                assert len(people) == 0

            await eventually(nobody)
        assert people.of_cookie(cookies[1]) is None

        async def closed() -> None:
            assert viewer.board.is_closed, "its streams end, and what was read is gone"

        await eventually(closed)
        assert await people.of_token(tokens[1]) is None
    finally:
        await people.close()
