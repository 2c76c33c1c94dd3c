"""`tfyard top` and `metrics`: of a real run, and of a job whose server is a script, because logs and the metrics
API need a kubelet."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import tfyard
from tests.cli.test_get import running, tfjob
from tfyard.kube import Access, ClusterEntry, kubeconfig
from tfyard.model.names import JOB_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.testing import eventually

AT = "2024-11-16T03:00:00Z"
LOG = "".join(f"2024-11-16T03:00:0{i}.000000000Z Step: {i * 10}, loss: {1 / (i + 1)}\n" for i in range(5))
ROOT = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"


def pod(index: int) -> dict[str, Any]:
    labels = {JOB_NAME: "first", REPLICA_TYPE: "worker", REPLICA_INDEX: str(index)}
    program = {"name": "tensorflow", "state": {"running": {"startedAt": AT}}}
    meta: dict[str, Any] = {"name": f"first-worker-{index}", "creationTimestamp": AT, "labels": labels}
    meta["ownerReferences"] = [{"kind": "TFJob", "name": "first", "uid": "u"}]
    return {"metadata": meta, "status": {"phase": "Running", "containerStatuses": [program]}}


@contextmanager
def scripted(answers: dict[str, Any], folder: Path) -> Iterator[str]:
    """A kubeconfig of a server that gives these answers by path, and 404 to all else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            body = found.encode() if isinstance(found, str) else json.dumps(found or {"code": 404}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        path = folder / "config"
        path.write_text(
            kubeconfig.dump(Access(ClusterEntry(server=f"http://127.0.0.1:{server.server_port}")))
        )
        try:
            yield str(path)
        finally:
            server.shutdown()
            thread.join()


def test_tasks_of_a_cluster_are_shown_from_its_metrics_api_and_their_logs(tmp_path: Path) -> None:
    job = tfjob("first")
    meta = {**job["metadata"], "namespace": "default", "creationTimestamp": AT, "uid": "u"}
    job = {**job, "metadata": meta, "status": running()}
    used = {
        "metadata": {"name": "first-worker-0"},
        "containers": [{"usage": {"cpu": "500m", "memory": "1M"}}],
    }
    pods = "/api/v1/namespaces/default/pods"
    answers = {
        f"{ROOT}/first": job,
        ROOT: {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJobList",
            "metadata": {"resourceVersion": "1"},
            "items": [job],
        },
        pods: {"metadata": {}, "items": [pod(0), pod(1)]},
        "/api/v1/namespaces/default/configmaps": {"metadata": {}, "items": []},  # no sweeps
        f"{pods}/first-worker-0/log": LOG,
    }
    with scripted(answers, tmp_path) as config:
        done = tfyard("top", "first", "--kubeconfig", config, cwd=tmp_path)
        assert [line.split() for line in done.out.splitlines()[1:]] == [
            ["worker-0", "Running", "40", "10", "0.2"],
            ["worker-1", "Running"],
        ]
        assert done.err == (
            "tfyard: CPU and memory are not known: the cluster has no metrics API (metrics-server)\n"
        )
        answers["/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"] = {"items": [used]}
        all_of_them = tfyard("top", "--kubeconfig", config, cwd=tmp_path)
        assert (all_of_them.err, all_of_them.code) == ("", 0)
        assert all_of_them.out.splitlines()[1].split()[:5] == ["first/worker-0", "Running", "0.50", "1", "MB"]
        found = json.loads(tfyard("top", "first", "-o", "json", "--kubeconfig", config, cwd=tmp_path).out)
        assert (found[0]["cpu"], found[0]["memory"], found[0]["metrics"]) == (0.5, 1_000_000, {"loss": 0.2})
        assert found[1] == {"task": "worker-1", "state": "Running"}
        rows = json.loads(tfyard("metrics", "first", "-o", "json", "--kubeconfig", config, cwd=tmp_path).out)
        assert [row["step"] for row in rows] == [0, 10, 20, 30, 40]


@pytest.mark.processes
async def test_tasks_of_a_run_are_shown_while_it_runs_and_afterwards(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import time, pathlib\n"
        "for i in range(5): print(f'Step: {i}, loss: {1 / (i + 1)}', flush=True)\n"
        "while not pathlib.Path('stop').exists(): sum(range(100_000))\n"
    )
    command = [sys.executable, "-m", "tfyard", "run", "train.py", "-q"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        try:

            async def shown() -> list[str]:
                lines = tfyard("top", "--local", cwd=tmp_path).out.splitlines()
                assert len(lines) == 2
                cells = lines[1].split()
                assert cells[1] == "Running"
                assert float(cells[2]) > 0
                assert cells[5] == "4"
                return cells

            cells = await eventually(shown)
            assert cells[0].endswith("/worker-0")
        finally:
            (tmp_path / "stop").touch()
            process.wait()
    assert tfyard("top", "--local", cwd=tmp_path).code == 2
    assert tfyard("top", "train", "--local", "-w", cwd=tmp_path).out.splitlines()[1].split()[1] == "Succeeded"
    assert "loss worker-0, steps 0 to 4" in tfyard("metrics", "train", "--local", cwd=tmp_path).out
    none = tfyard("metrics", "train", "ps-0", "--local", cwd=tmp_path)
    assert (none.code, none.err.startswith("tfyard: the job has no task or role 'ps-0'; ")) == (2, True)
