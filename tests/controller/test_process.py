"""The operator as a process: its start, its HTTP pages, and its orderly end."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.controller.cluster import install, tfjob
from tests.controller.prometheus import parse
from tests.controller.test_leader_election import hold_absurdly
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, Script, ScriptedKubelet, eventually

pytestmark = pytest.mark.cluster


@asynccontextmanager
async def operator(
    plane: ControlPlane, namespace: str, log: Path, *options: str, program: tuple[str, ...] = ("-m", "tfyard")
) -> AsyncIterator[asyncio.subprocess.Process]:
    kubeconfig = plane.write_kubeconfig(plane.access(), f"operator-{namespace}")
    command = [*program, "operator", "--kubeconfig", str(kubeconfig), "--namespaces", namespace]
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, *options, "--bind", "127.0.0.1:0", stderr=stderr
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def lines(log: Path) -> list[dict[str, Any]]:
    """Those that are whole: the last one may be being written."""
    return [json.loads(line) for line in log.read_text().rpartition("\n")[0].splitlines()]


def port_of(log: Path) -> int:
    told = [line["message"] for line in lines(log) if line["message"].startswith("serving /metrics")]
    assert told, "not there yet"
    return int(told[0].rpartition(" ")[2])


async def test_it_leads_answers_works_and_hands_its_lease_back(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with control_plane.client() as client, ScriptedKubelet(client, Script(run_for=0.2), namespace):
        await install(client)
        async with operator(control_plane, namespace, log) as process:
            await client.send(requests.create(TFJOBS.path(namespace), tfjob(Worker=1)))

            async def succeeded() -> None:
                found = await client.send(requests.get(TFJOBS.path(namespace, "train")))
                assert (found.get("status") or {}).get("phase") == "Succeeded"

            await eventually(succeeded, 60)
            labels = f'{{framework="tensorflow",job_namespace="{namespace}"}}'

            async def told() -> None:
                async with aiohttp.ClientSession(f"http://127.0.0.1:{port_of(log)}") as session:
                    assert (await session.get("/readyz")).status == 200
                    metrics = await (await session.get("/metrics")).text()
                assert f"training_operator_jobs_successful_total{labels} 1" in metrics

            await eventually(told)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 60) == 0
        lease = await client.send(requests.get(requests.LEASES.path(namespace, "tfyard-operator")))
        assert lease["spec"].get("holderIdentity", "") == ""


SOON_ALARMED = """
from tfyard.__main__ import main
from tfyard.controller import leader_election, process

leader_election.NO_LEADER = process.NO_LEADER = 1.0
main()
"""


async def test_it_is_not_ready_and_its_metric_grows_while_a_dead_holder_keeps_the_lease(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    await hold_absurdly(control_plane, namespace)
    async with control_plane.client() as client:
        await install(client)
    async with operator(control_plane, namespace, log, program=("-c", SOON_ALARMED)):

        async def told() -> None:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port_of(log)}") as session:
                ready = await session.get("/readyz")
                assert (ready.status, (await ready.text())[:14]) == (503, "no leader for ")
                samples = parse(await (await session.get("/metrics")).text())
            (seconds,) = samples["tfyard_seconds_without_leader"].samples.values()
            assert float(seconds) > 1.0
            assert any(line["message"].startswith("no leader for") for line in lines(log))

        await eventually(told)


MANY = 150


async def test_what_it_has_to_say_is_said_before_it_ends(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Statuses are written many at a time and events few: when the last status is there, events wait."""
    resting = {"suspend": True}
    async with control_plane.client() as client:
        await install(client)
        made = [tfjob(f"job-{number}", resting, Worker=1) for number in range(MANY)]
        await asyncio.gather(*(client.send(requests.create(TFJOBS.path(namespace), each)) for each in made))
        async with operator(control_plane, namespace, tmp_path / "log") as process:

            async def all_rest() -> None:
                found = await client.send(requests.get(TFJOBS.path(namespace)))
                assert {item["status"]["phase"] for item in found["items"]} == {"Suspended"}

            await eventually(all_rest, 60)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 60) == 0
        events = await client.send(requests.get(f"/api/v1/namespaces/{namespace}/events"))
        told = [event for event in events["items"] if event["reason"] == "TFJobSuspended"]
        assert len(told) == MANY
        lease = await client.send(requests.get(requests.LEASES.path(namespace, "tfyard-operator")))
        assert lease["spec"].get("holderIdentity", "") == ""
