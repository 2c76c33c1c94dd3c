"""Who we are, while that changes under us: renewals, refusals, and plugins that are slow or fail."""

import itertools
from pathlib import Path

import pytest
from aiohttp import web

from tests.kube.answers import Guard, answering, unauthorized
from tfyard import kube
from tfyard.kube import Access, Client, Limits, User, requests

VERSION = requests.get("/version")
ONCE = Limits(attempts=1)
"""What a leader allows itself."""


async def test_a_renewal_is_no_attempt(tmp_path: Path) -> None:
    token, guard = tmp_path / "token", Guard("first", "second")
    token.write_text("first")
    async with (
        answering(guard) as cluster,
        Client(Access(cluster, User(token_file=str(token))), ONCE) as client,
    ):
        await client.send(VERSION)
        token.write_text("second")
        guard.welcome = {"second"}
        await client.send(VERSION)
    assert guard.seen == ["first", "first", "second"]


async def test_who_is_refused_with_new_credentials_as_well_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("worthless")
    guard = Guard()
    async with (
        answering(guard) as cluster,
        Client(Access(cluster, User(token_file=f"{tmp_path}/token")), ONCE) as client,
    ):
        with pytest.raises(kube.Unauthorized):
            await client.send(VERSION)
    assert len(guard.seen) == 2


async def test_a_refusal_after_another_trouble_is_renewed_for_too(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("good")
    codes = itertools.chain([503, 401], itertools.repeat(200))

    async def moody(_: web.Request) -> web.StreamResponse:
        code = next(codes)
        return unauthorized() if code == 401 else web.json_response({}, status=code)

    async with (
        answering(moody) as cluster,
        Client(Access(cluster, User(token_file=f"{tmp_path}/token")), Limits(first_pause=0.01)) as client,
    ):
        assert await client.send(VERSION) == {}
