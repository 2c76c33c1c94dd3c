"""Runs that are reported to the real MLflow server, and programs that go on in them by its real client."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from tests.cli.running import tfyard
from tests.e2e.conftest import wait_until
from tests.ports import reserved_port
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.testing import fixtures
from tools import mlflow as tool

pytestmark = [pytest.mark.processes, pytest.mark.long]
PATIENCE = 180.0
TRAINS = """
import pathlib, sys, time
import mlflow
attempt = 2 if pathlib.Path("again").exists() else 1
pathlib.Path("again").touch()
for step in (1, 2, 3):
    loss, accuracy = 1 / step if step != 2 else "nan", step if step != 3 else "inf"
    print(f"step {step} loss {loss} accuracy {accuracy}", flush=True)
with mlflow.start_run() as run:
    mlflow.log_metric(f"own_{attempt}", attempt)
    print("in", run.info.run_id, flush=True)
sys.exit(2 - attempt)
"""
JOB = """
name: own
image: none
code: .
run: python train.py --lr 0.1
worker: {count: 1, restart: on-failure}
"""
WAITS = """
import time
print("step 1 loss 0.5", flush=True)
time.sleep(600)
"""


class RealMLflow:
    def __init__(self, uri: str) -> None:
        self.uri = uri

    def ask(self, path: str, body: Any = None, **query: str) -> Any:
        url = f"{self.uri}/api/2.0/mlflow/{path}?{urlencode(query)}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data, {"Content-Type": "application/json"})
        with build_opener(ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)

    def runs(self, experiment: str) -> list[Any]:
        found = self.ask("experiments/get-by-name", experiment_name=experiment)["experiment"]
        asked = {"experiment_ids": [found["experiment_id"]]}
        return list(self.ask("runs/search", asked)["runs"])

    def history(self, run: str, metric: str) -> list[tuple[int, Any]]:
        found = self.ask("metrics/get-history", run_id=run, metric_key=metric)["metrics"]
        return [(each["step"], each["value"]) for each in found]

    def is_up(self) -> bool:
        try:
            with build_opener(ProxyHandler({})).open(f"{self.uri}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealMLflow]:
    try:
        python = tool.locate()
    except MissingBinaries as problem:
        fixtures.missing(request.config, str(problem))
    folder = tmp_path_factory.mktemp("mlflow")
    with reserved_port() as port, (folder / "log").open("wb") as log:
        words = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
        words += [
            "--backend-store-uri",
            f"sqlite:///{folder}/runs.db",
            "--artifacts-destination",
            str(folder),
        ]
        server = subprocess.Popen(
            [str(python), "-m", "mlflow", "server", *words],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
            start_new_session=True,
        )
        try:
            mlflow, end = RealMLflow(f"http://127.0.0.1:{port}"), time.monotonic() + PATIENCE
            while not mlflow.is_up():
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.2)
            yield mlflow
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def test_the_run_has_all_of_it_and_the_program_goes_on_in_it_by_mlflows_own_client(
    real: RealMLflow, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    (tmp_path / "job.yaml").write_text(JOB)
    no_proxy = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    words = ("--mlflow", real.uri, "--python", tool.locate())
    done = tfyard("run", "job.yaml", *words, cwd=tmp_path, **no_proxy)
    assert done.code == 0, done.out + done.err
    (run,) = real.runs("own")
    id, data = run["info"]["run_id"], run["data"]
    assert done.out.count(f"in {id}") == 2
    assert run["info"]["status"] == "FINISHED"
    assert data["params"] == [{"key": "lr", "value": "0.1"}]
    tags = {each["key"]: each["value"] for each in data["tags"]}
    assert (tags["tfyard.phase"], tags["mlflow.source.name"]) == ("Succeeded", "job.yaml")
    once = [(1, 1.0), (2, "NaN"), (3, 1 / 3)]
    assert sorted(real.history(id, "loss"), key=lambda each: each[0]) == [each for each in once for _ in "12"]
    assert max(value for _, value in real.history(id, "accuracy")) > 1e308, "what MLflow has in place of inf"
    assert {each["key"] for each in data["metrics"]} == {"loss", "accuracy", "own_1", "own_2"}


def test_a_run_that_is_killed_is_killed_there_and_a_failed_one_failed(
    real: RealMLflow, tmp_path: Path
) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    command = [sys.executable, "-m", "tfyard", "run", "waits.py", "--mlflow", real.uri, "-q"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: (tmp_path / ".tfyard").exists() and _is_sent(tmp_path), "it is reported")
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: real.runs("waits")[0]["info"]["status"] == "KILLED", "it is killed there")
    (tmp_path / "fails.py").write_text("import sys; sys.exit(7)")
    assert tfyard("run", "fails.py", "--mlflow", real.uri, cwd=tmp_path).code == 7
    assert [run["info"]["status"] for run in real.runs("fails")] == ["FAILED"]


def _is_sent(folder: Path) -> bool:
    return any(json.loads(path.read_bytes())["sent"] for path in folder.glob(".tfyard/runs/*/mlflow.json"))
