"""Credentials that change while a client runs: renewals, refusals, and plugins that are slow or fail."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from tests.kube.answers import Guard, answering, plugin, unauthorized
from tfyard import kube
from tfyard.controlplane.certificates import CertificateAuthority
from tfyard.kube import Access, Client, ClusterEntry, Limits, User, credentials, requests
from tfyard.kube.credentials import Credentials
from tfyard.model.backoff import Backoff
from tfyard.testing import eventually

VERSION = requests.get("/version")
ONCE = Limits(attempts=1)
QUICK = Limits(backoff=Backoff(first=0.01, longest=10.0))
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


async def test_a_request_that_is_refused_with_new_credentials_too_fails(tmp_path: Path) -> None:
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
        Client(Access(cluster, User(token_file=f"{tmp_path}/token")), QUICK) as client,
    ):
        assert await client.send(VERSION) == {}


async def test_a_caller_that_gives_up_does_not_end_the_renewal(tmp_path: Path) -> None:
    guard = Guard("made")
    user = plugin(tmp_path, "sleep 0.6")
    async with answering(guard) as cluster, Client(Access(cluster, user), ONCE) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.send(VERSION), 0.2)
        await client.send(VERSION)
    assert (tmp_path / "calls").read_text() == "called\n"


async def test_a_plugin_does_not_outlive_its_client(tmp_path: Path) -> None:
    user = plugin(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")

    async def started() -> int:
        assert (tmp_path / "pid").exists()
        pid = (tmp_path / "pid").read_text()
        assert pid
        return int(pid)

    async with answering(Guard()) as cluster, Client(Access(cluster, user)) as client:
        sending = asyncio.create_task(client.send(VERSION))
        number = await eventually(started)
        sending.cancel()

    async def gone() -> None:
        assert not Path(f"/proc/{number}").exists()

    await eventually(gone)


@pytest.fixture
def ageing(monkeypatch: pytest.MonkeyPatch) -> str:
    """Expiry of credentials that are due for renewal, and that outlast a slow test."""
    monkeypatch.setattr(credentials, "EXEC_LEEWAY", 3600.0)
    return (datetime.now(UTC) + timedelta(minutes=30)).isoformat()


async def test_ageing_credentials_are_used_while_new_ones_are_made(tmp_path: Path, ageing: str) -> None:
    user = plugin(tmp_path, "[ $(wc -l < $CALLS) = 1 ] || sleep 600", expirationTimestamp=ageing)
    async with answering(Guard("made")) as cluster, Client(Access(cluster, user), ONCE) as client:
        for _ in range(3):
            await asyncio.wait_for(client.send(VERSION), 60)


async def test_a_failed_renewal_leaves_valid_credentials_in_use(tmp_path: Path, ageing: str) -> None:
    user = plugin(tmp_path, "[ $(wc -l < $CALLS) = 1 ] || exit 1", expirationTimestamp=ageing)
    async with answering(Guard("made")) as cluster, Client(Access(cluster, user), ONCE) as client:

        async def tried_again_and_again() -> None:
            await client.send(VERSION)
            assert len((tmp_path / "calls").read_text().splitlines()) > 2

        await eventually(tried_again_and_again)


class Files:
    """A token and a CA as a kubelet projects them, which the next renewal reads."""

    def __init__(self, folder: Path) -> None:
        self.token, self.ca = folder / "token", folder / "ca.crt"
        self.token.write_text("ours")
        cluster = ClusterEntry(server="https://example", certificate_authority=str(self.ca))
        self._credentials = Credentials(Access(cluster, User(token_file=str(self.token))))

    async def login(self) -> kube.credentials.Login:
        current = await self._credentials.current()
        self._credentials.doubt(current)
        return current


async def test_a_replaced_cluster_ca_is_trusted_and_the_same_one_costs_no_connection(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.ca.write_bytes(CertificateAuthority().pem)
    first, second = await files.login(), await files.login()
    files.ca.write_bytes(CertificateAuthority().pem)
    third = await files.login()
    assert first.tls is second.tls
    assert third.tls is not first.tls


async def test_a_ca_that_cannot_be_used_is_told_and_the_next_one_is_used(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.ca.write_text("half of a certif")
    with pytest.raises(kube.BadKubeconfig, match="cannot be used"):
        await files.login()
    files.ca.write_bytes(CertificateAuthority().pem)
    assert (await files.login()).tls
