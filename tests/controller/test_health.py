"""The three pages of an operator, asked over a real connection."""

import asyncio

import aiohttp
import pytest

from tests.controller.prometheus import parse
from tfyard.controller.health import Bind, HealthServer, Questions
from tfyard.controller.metrics import Metrics
from tfyard.errors import Usage

HERE = Bind("127.0.0.1", 0)


async def ask(server: HealthServer, path: str) -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.port}{path}") as answer,
    ):
        return answer.status, await answer.text(), answer.headers["Content-Type"]


async def test_metrics_are_served_as_prometheus_wants_them() -> None:
    metrics = Metrics()
    metrics.is_leader.set(1)
    async with HealthServer(HERE, Questions(metrics=metrics.render)) as server:
        status, text, kind = await ask(server, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert parse(text)["tfyard_is_leader"].samples == {("tfyard_is_leader", ()): 1}


async def test_ready_is_asked_anew_each_time_and_says_all_reasons() -> None:
    reasons = ["pods are not listed yet", "the CRD is missing"]
    async with HealthServer(HERE, Questions(metrics=str, why_not_ready=lambda: reasons)) as server:
        before = await ask(server, "/readyz")
        healthy = await ask(server, "/healthz")
        reasons.clear()
        after = await ask(server, "/readyz")
    assert before[:2] == (503, "pods are not listed yet\nthe CRD is missing\n")
    assert healthy[:2] == after[:2] == (200, "ok\n")


async def test_an_operator_can_say_that_it_is_not_healthy() -> None:
    async with HealthServer(HERE, Questions(metrics=str, why_not_healthy=lambda: ["stuck"])) as server:
        assert (await ask(server, "/healthz"))[:2] == (503, "stuck\n")


async def test_an_unknown_page_is_not_found() -> None:
    async with HealthServer(HERE, Questions(metrics=str)) as server:
        assert (await ask(server, "/secrets"))[0] == 404


async def test_the_server_ends_although_a_client_keeps_a_connection_open() -> None:
    async with HealthServer(HERE, Questions(metrics=str)) as server:
        port = server.port
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: here\r\n")  # and never the end of it
        await writer.drain()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    writer.transport.abort()


async def test_a_port_in_use_is_reported_in_one_line() -> None:
    async with HealthServer(HERE, Questions(metrics=str)) as first:
        taken = Bind("127.0.0.1", first.port)
        with pytest.raises(Usage, match=f"cannot listen on 127.0.0.1:{first.port}: "):
            await HealthServer(taken, Questions(metrics=str)).__aenter__()


ADDRESSES = {
    ":8080": Bind("", 8080),
    "127.0.0.1:0": Bind("127.0.0.1", 0),
    "[::1]:8081": Bind("::1", 8081),
    "localhost:80": Bind("localhost", 80),
}


@pytest.mark.parametrize(("text", "bind"), ADDRESSES.items())
def test_addresses_are_written_as_for_go_programs(text: str, bind: Bind) -> None:
    assert Bind.parse(text) == bind


@pytest.mark.parametrize("text", ["", "8080", "host", "host:", ":http", ":70000", ":²"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Usage, match="not an address to listen on"):
        Bind.parse(text)


def test_by_default_only_this_machine_can_connect() -> None:
    assert Bind().host == "127.0.0.1"
