"""The synchronous client: the same requests and errors, no event loop, and little to import."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from tests.kube.answers import Answer, Guard, answering, plugin
from tfyard import kube
from tfyard.kube import Access, User, requests
from tfyard.kube.kubeconfig import ClusterEntry
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane, builders

T = TypeVar("T")

VERSION = requests.get("/version")
WHO_AM_I = requests.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})


def send(access: Access, request: kube.Request = VERSION) -> Any:
    with SyncClient(access) as client:
        return client.send(request)


async def asking(answer: Answer, ask: Callable[[ClusterEntry], T]) -> T:
    """The result of `ask` in another thread, while this loop serves."""
    async with answering(answer) as cluster:
        return await asyncio.to_thread(ask, cluster)


async def test_a_rotated_token_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    token, guard = tmp_path / "token", Guard("second")
    token.write_text("first")

    def ask(cluster: ClusterEntry) -> None:
        with SyncClient(Access(cluster, User(token_file=str(token)))) as client:
            client._connect()
            token.write_text("second")
            client.send(VERSION)

    await asking(guard, ask)
    assert guard.seen == ["first", "second"]


async def test_a_plugin_is_run_once_for_many_requests(tmp_path: Path) -> None:
    guard = Guard("made")

    def ask(cluster: ClusterEntry) -> None:
        with SyncClient(Access(cluster, plugin(tmp_path, "true"))) as client:
            client.send(VERSION)
            client.send(VERSION)

    await asking(guard, ask)
    assert guard.seen == ["made", "made"]
    assert (tmp_path / "calls").read_text() == "called\n"


def test_a_plugin_that_fails_is_one_line(tmp_path: Path) -> None:
    nowhere = ClusterEntry(server="http://127.0.0.1:1")
    with pytest.raises(kube.BadKubeconfig, match="sh ended with 3"):
        send(Access(nowhere, plugin(tmp_path, "exit 3")))


async def test_a_server_may_be_below_a_path() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(request.path)

    def ask(cluster: ClusterEntry) -> Any:
        return send(Access(ClusterEntry(server=f"{cluster.server}/k8s/clusters/c-1/")))

    assert await asking(answer, ask) == "/k8s/clusters/c-1/version"


async def test_a_server_that_is_busy_is_asked_again_when_it_says_so() -> None:
    answers = [
        web.Response(status=429, headers={"Retry-After": "0"}),
        web.json_response({"gitVersion": "v1"}),
    ]

    async def answer(_: web.Request) -> web.StreamResponse:
        return answers.pop(0)

    decoded = await asking(answer, lambda cluster: send(Access(cluster)))
    assert decoded == {"gitVersion": "v1"}


async def test_a_write_that_may_have_acted_is_not_sent_again() -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request.method)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def ask(cluster: ClusterEntry) -> None:
        with SyncClient(Access(cluster)) as client:
            with pytest.raises(kube.Unreachable) as raised:
                client.send(requests.create("/things", {}))
            assert raised.value.sent

    await asking(answer, ask)
    assert seen == ["POST"]


async def test_a_compressed_answer_and_repeated_headers_arrive() -> None:
    seen: list[list[str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.getall("Impersonate-Group"))
        response = web.json_response({"words": "again " * 1000})
        response.enable_compression(web.ContentCoding.gzip)
        return response

    user = User(impersonate="ann", impersonate_groups=["a", "b"])
    decoded = await asking(answer, lambda cluster: send(Access(cluster, user)))
    assert len(decoded["words"]) == 6000
    assert seen == [["a", "b"]]


async def test_a_server_that_does_not_answer_is_given_up_in_one_line() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    def ask(cluster: ClusterEntry) -> None:
        slow = pytest.raises(kube.Unreachable, match=r"no answer within 0\.2 s")
        with SyncClient(Access(cluster), timeout=0.2) as client, slow:
            client.send(requests.create("/things", {}))

    await asking(answer, ask)


def test_a_port_without_a_listener_is_unreachable_and_nothing_was_sent() -> None:
    with pytest.raises(kube.Unreachable) as raised:
        send(Access(ClusterEntry(server="https://127.0.0.1:1")), requests.create("/things", {}))
    assert not raised.value.sent
    assert "127.0.0.1:1" in str(raised.value)


def test_it_imports_neither_asyncio_nor_aiohttp() -> None:
    heavy = {"asyncio", "aiohttp", "multidict"}
    code = f"import sys, tfyard.kube.sync; print({heavy} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.cluster
def test_an_object_lives_its_life_on_the_real_server(control_plane: ControlPlane, namespace: str) -> None:
    path = requests.CONFIG_MAPS.path(namespace, "words")
    with SyncClient(control_plane.admin) as client:
        body = builders.config_map("words", {"a": "1"})
        client.send(requests.create(requests.CONFIG_MAPS.path(namespace), body))
        assert client.send(requests.patch(path, {"data": {"b": "2"}}))["data"] == {"a": "1", "b": "2"}
        with pytest.raises(kube.AlreadyExists):
            client.send(requests.create(requests.CONFIG_MAPS.path(namespace), body))
        client.send(requests.delete(path))
        with pytest.raises(kube.NotFound):
            client.send(requests.get(path))
        assert client.send(WHO_AM_I)["status"]["userInfo"]["username"] == "tfyard-admin"


@pytest.mark.cluster
def test_the_certificate_is_checked_against_the_given_name(control_plane: ControlPlane) -> None:
    admin = control_plane.admin
    named = ClusterEntry(
        admin.cluster.server,
        certificate_authority_data=admin.cluster.certificate_authority_data,
        tls_server_name="kubernetes",
    )
    assert send(Access(named, admin.user))["major"] == "1"
    other = ClusterEntry(
        admin.cluster.server,
        certificate_authority_data=admin.cluster.certificate_authority_data,
        tls_server_name="elsewhere",
    )
    with pytest.raises(kube.Unreachable, match="elsewhere"):
        send(Access(other, admin.user), requests.create("/things", {}))
