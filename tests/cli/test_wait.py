"""`tfyard wait`: for jobs on the real apiserver, and for runs on this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tests.cli.test_get import SLOW, running, set_status, tfjob
from tests.cli.test_main import imported
from tfyard.kube import Access, ClusterEntry, kubeconfig, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane


@contextmanager
def waiting(plane: ControlPlane, namespace: str, *args: str) -> Iterator["subprocess.Popen[str]"]:
    """A wait that has said what it sees."""
    command = [sys.executable, "-m", "tfyard", "wait", "-n", namespace, *args]
    env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == "first: Pending\n"
            yield process
        finally:
            process.kill()


@pytest.mark.cluster
def test_a_wait_ends_as_the_job_does(control_plane: ControlPlane, crds: None, namespace: str) -> None:
    at = {"lastUpdateTime": "2024-11-16T03:00:00Z", "lastTransitionTime": "2024-11-16T03:00:00Z"}
    failed = {
        **running(),
        "phase": "Failed",
        "conditions": [
            {"type": "Failed", "status": "True", "reason": "TFJobFailed", "message": "boom", **at}
        ],
        "failure": {"cause": "TaskFailed", "task": "worker-0", "exitCode": 7, "message": "worker-0 failed"},
    }
    with SyncClient(control_plane.admin) as client:
        client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))
        with waiting(control_plane, namespace, "first") as process:
            set_status(client, namespace, "first", running())
            set_status(client, namespace, "first", failed)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (1, ""), "not taken for the program's own code, which is 7"
        assert err.endswith("first: Failed: worker-0 failed\n")
        words = ("wait", "-n", namespace, "first", "--timeout", "0")
        at_once = tfyard(*words, KUBECONFIG=str(control_plane.kubeconfig))
        assert (at_once.code, at_once.err) == (1, "first: Failed: worker-0 failed\n")
        found = json.loads(tfyard(*words, "-o", "json", KUBECONFIG=str(control_plane.kubeconfig)).out)
        assert (found["job"], found["code"], found["exitCode"]) == ("tfjob.kubeflow.org/first", 1, 7)
        client.send(requests.create(TFJOBS.path(namespace), tfjob("second", team="vision")))
        both = tfyard(*words, "second", "first", KUBECONFIG=str(control_plane.kubeconfig))
        assert (both.code, both.err.count("first: Failed"), both.err.count("timed out")) == (124, 1, 1)
        labels = ("wait", "-n", namespace, "-l", "team=vision", "--timeout", "0")
        assert tfyard(*labels, KUBECONFIG=str(control_plane.kubeconfig)).code == 124
        absent = tfyard(*words, "absent", KUBECONFIG=str(control_plane.kubeconfig))
        assert (absent.code, absent.err.count("\n")) == (2, 1)
        client.send(requests.delete(TFJOBS.path(namespace, "first")))
        client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))
        with waiting(control_plane, namespace, "first", "--for", "finished") as process:
            client.send(requests.delete(TFJOBS.path(namespace, "first")))
            client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))
            _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (3, "first was deleted\n")
    late = tfyard(
        "wait", "first", "-n", namespace, "--timeout", "1s", KUBECONFIG=str(control_plane.kubeconfig)
    )
    assert late.code == 124
    assert late.err.endswith("first is Pending, not succeeded: timed out\n")


@pytest.mark.processes
def test_a_wait_for_a_run_that_failed_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(5)")
    assert tfyard("run", "train.py", "-q", cwd=tmp_path).code == 5
    done = tfyard("wait", "train", "--local", cwd=tmp_path)
    assert (done.code, "Failed" in done.err) == (1, True)
    found = json.loads(tfyard("wait", "train", "--local", "-o", "json", cwd=tmp_path).out)
    assert (found["code"], found["exitCode"]) == (1, 5)
    assert tfyard("wait", "train", "--local", "--for", "finished", cwd=tmp_path).code == 0


def test_a_timeout_that_is_no_duration_is_refused(tmp_path: Path) -> None:
    done = tfyard("wait", "x", "--local", "--timeout", "soon", cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_nothing_slow_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(kubeconfig.dump(Access(ClusterEntry(server="http://127.0.0.1:1"))))
    monkeypatch.chdir(tmp_path)
    assert not SLOW & imported("wait", "x", "--kubeconfig", "config")
