"""Credentials that are refused or missing for a moment delay the operator, and do not end it."""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web
from msgspec.structs import replace

from tests.controller.standing import Standing, candidate
from tests.kube.answers import answering, plugin, unauthorized
from tfyard import kube
from tfyard.controller import crds
from tfyard.controller.health import PermissionCheck
from tfyard.controller.lease import LeaseTiming
from tfyard.install import permissions
from tfyard.kube import Access, Client, Unauthorized, User
from tfyard.kube.requests import TFJOBS
from tfyard.testing import eventually

KINDS = "x-kubernetes-group-version-kind"
QUICK = LeaseTiming(2.4, 1.2, 0.1)


class Leases:
    """A server of one lease, which knows nobody while it is `closed`."""

    def __init__(self, *, closed: bool = False) -> None:
        self.closed, self.lease, self.asked = closed, b"", 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.closed:
            return unauthorized()
        if request.method != "GET":
            self.lease = await request.read()
        elif not self.lease:
            return web.json_response({"reason": "NotFound"}, status=404)
        return web.Response(body=self.lease)


@asynccontextmanager
async def standing(server: Leases, user: User) -> AsyncIterator[Standing]:
    async with (
        answering(server) as cluster,
        candidate(Access(cluster, user), "here", "ada", QUICK) as ada,
    ):
        yield ada


def by_file(folder: Path) -> User:
    (folder / "token").write_text("ours")
    return User(token_file=f"{folder}/token")


async def test_a_candidate_that_is_not_authenticated_leads_as_soon_as_it_is(tmp_path: Path) -> None:
    server = Leases(closed=True)
    async with standing(server, by_file(tmp_path)) as ada:
        closed_until = time.monotonic() + 2 * QUICK.renew_deadline

        async def long_refused() -> None:
            assert server.asked > 2
            assert time.monotonic() > closed_until

        await eventually(long_refused)
        assert not ada.running.done()
        server.closed = False
        await ada.leads()


async def test_a_leader_that_is_not_authenticated_for_a_moment_stays_the_leader(tmp_path: Path) -> None:
    server = Leases()
    async with standing(server, by_file(tmp_path)) as ada:
        await ada.leads()
        server.closed = True

        async def lost() -> None:
            assert ada.lost

        await eventually(lost)
        server.closed = False
        await ada.leads()
    assert "401" in ada.lost[0]


async def test_a_start_waits_until_the_server_accepts_the_credentials(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crds, "RETRY", 0.01)
    refusals = itertools.chain([True, True], itertools.repeat(False))

    async def hesitant(_: web.Request) -> web.StreamResponse:
        return unauthorized() if next(refusals) else web.json_response({}, status=404)

    async with answering(hesitant) as cluster, Client(Access(cluster)) as client:
        with pytest.raises(crds.CrdNotUsable), caplog.at_level(logging.WARNING):
            await crds.ready(client, install=False)
    assert [record.message[:16] for record in caplog.records] == ["not authenticate"] * 2


async def test_a_start_without_valid_credentials_ends_with_the_servers_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crds, "LOGIN_TIMEOUT", 0.0)
    async with answering(Leases(closed=True)) as cluster, Client(Access(cluster)) as client:
        with pytest.raises(Unauthorized):
            await crds.ready(client, install=False)


async def test_a_plugin_that_fails_once_costs_a_moment(tmp_path: Path) -> None:
    user = plugin(tmp_path, "[ $(wc -l < $CALLS) -gt 1 ] || exit 1")
    async with standing(Leases(), user) as ada:
        await ada.leads()


async def test_a_plugin_that_is_slower_than_an_attempt_is_waited_for_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with standing(Leases(), plugin(tmp_path, "sleep 1")) as ada:
        await ada.leads()
    assert (tmp_path / "calls").read_text() == "called\n"
    assert "cannot reach the lease: no answer within 0.6 s" in caplog.text


async def test_a_failure_that_persists_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = Leases(closed=True)
    async with standing(server, by_file(tmp_path)):

        async def often_refused() -> None:
            assert server.asked > 6

        await eventually(often_refused)
    assert caplog.text.count("cannot reach the lease") == 1


async def test_permissions_are_checked_again_after_a_refusal_or_an_odd_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A restarting server rejects all credentials: one 401 ended the check for ever."""
    monkeypatch.setattr("tfyard.controller.health.CHECK_AGAIN", 0.05)
    caplog.set_level(logging.INFO)
    odd: list[object] = [None, [], {}, {"status": None}, {"status": []}]
    answers = [*(unauthorized() for _ in range(3)), *map(web.json_response, odd)]
    counts: list[int] = []

    async def answer(_: web.Request) -> web.StreamResponse:
        return answers.pop(0) if answers else web.json_response({"status": {"allowed": True}})

    async with answering(answer) as cluster, Client(Access(cluster)) as client:
        permission = replace(permissions.NODES, verbs=("get",))
        async with ending(asyncio.create_task(PermissionCheck(client, [permission], counts.append).run())):
            while not counts:
                await asyncio.sleep(0.01)
    assert counts == [0]
    said = [each for each in caplog.messages if each.startswith("cannot check permissions: ")]
    assert len(said) == 2, "each reason once"


@asynccontextmanager
async def ending(task: "asyncio.Task[None]") -> AsyncIterator[None]:
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


ODD_ANSWERS: list[object] = [None, 5, "x", [], {}, {"paths": []}, {"paths": {"apis/a": None}}]
ODD_ANSWERS += [{"resources": None}, {"resources": [None]}, {"components": None, "paths": {}}]
ODD_ANSWERS += [{"components": {"schemas": {"a": {KINDS: [{}]}}}}, {"components": {"schemas": {"a": None}}}]


@pytest.mark.parametrize("odd", ODD_ANSWERS, ids=str)
async def test_an_answer_about_the_apis_of_another_form_is_an_error_that_may_pass(odd: object) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(odd)

    async with answering(answer) as cluster, Client(Access(cluster)) as client:
        for question in (
            crds.published_apis(client),
            crds.unserved(client, [TFJOBS]),
            crds.refuse_forgetful(client, [TFJOBS]),
            crds.ready(client, install=False),
        ):
            with suppress(kube.Undecodable, crds.CrdNotUsable):
                await question
