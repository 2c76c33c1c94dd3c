"""A real Prometheus scrapes a real operator: all panels show something, all alerts are evaluated."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.controller.cluster import install, tfjob
from tests.controller.test_process import operator, port_of
from tests.helm import CHART
from tests.install.test_alerts import ALERTS, groups
from tests.ports import reserved_port
from tests.programs import program_of
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, Script, ScriptedKubelet, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.long]

PANELS = {
    f"{panel['title']}, {target['refId']}": target["expr"]
    for panel in json.loads((CHART / "files/dashboard.json").read_text())["panels"]
    for target in panel["targets"]
}


class Prometheus:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def ask(self, path: str, **query: str) -> Any:
        async with self._session.get(f"/api/v1/{path}", params=query) as answer:
            found = await answer.json()
        assert found["status"] == "success", found
        return found["data"]

    async def shows(self, expression: str) -> None:
        assert (await self.ask("query", query=expression))["result"], f"nothing: {expression}"


@asynccontextmanager
async def prometheus(program: str, folder: Path, target: str) -> AsyncIterator[Prometheus]:
    scrape = {"job_name": "tfyard", "static_configs": [{"targets": [target]}]}
    times = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (folder / "alerts.yaml").write_text(yaml.safe_dump({"groups": groups()}))
    config = {"global": times, "scrape_configs": [scrape], "rule_files": ["alerts.yaml"]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with reserved_port() as port, (folder / "log").open("wb") as log:
        address = f"127.0.0.1:{port}"
        process = await asyncio.create_subprocess_exec(
            program, *options, f"--web.listen-address={address}", stdout=log, stderr=log
        )
        try:
            async with aiohttp.ClientSession(f"http://{address}") as session:
                yield Prometheus(session)
        finally:
            process.terminate()
            await process.wait()


async def test_the_dashboard_shows_and_the_alerts_follow_what_a_real_operator_serves(
    request: pytest.FixtureRequest, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    program, log = program_of(request.config, "prometheus"), tmp_path / "operator.log"
    async with control_plane.client() as client, ScriptedKubelet(client, Script(run_for=1), namespace):
        await install(client)
        async with operator(control_plane, namespace, log):

            async def serves() -> None:
                assert port_of(log)

            await eventually(serves, 60)
            async with prometheus(program, tmp_path, f"127.0.0.1:{port_of(log)}") as server:

                async def scraped() -> None:
                    try:
                        await server.shows('tfyard_is_leader{job="tfyard"} == 1')
                    except aiohttp.ClientError as problem:
                        raise AssertionError("Prometheus is not ready yet") from problem

                await eventually(scraped, 60)
                await client.send(requests.create(TFJOBS.path(namespace), tfjob(Worker=1)))
                for expression in PANELS.values():
                    await eventually(lambda asked=expression: server.shows(asked), 60)  # type: ignore[misc]
                (group,) = (await server.ask("rules"))["groups"]
    health = {rule["name"]: (rule["health"], rule["state"]) for rule in group["rules"]}
    assert health == dict.fromkeys(ALERTS, ("ok", "inactive"))
