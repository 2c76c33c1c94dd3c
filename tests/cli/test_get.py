"""`tfyard get`, `-w`, and its formats: beside the real kubectl, and for runs on this machine."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Result, tfyard
from tests.cli.test_main import imported
from tfyard.kube import Access, ClusterEntry, kubeconfig, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane, eventually

SLOW = {"asyncio", "aiohttp", "rich", "jinja2", "logging"}
OF_JOBS = {"tfyard.planner", "tfyard.formats"}
"""Rooms that a list does not need."""
TEMPLATE = {"spec": {"containers": [{"name": "tensorflow", "image": "example/mnist:1"}]}}
TEMPLATES = (
    "{.items[*].metadata.name}",
    '{range .items[*]}{.metadata.name}{"\\t"}{.status.phase}{"\\n"}{end}',
    '{.items[?(@.metadata.name=="first")].status.replicaStatuses.Worker}',
    "{.items[0].spec.tfReplicaSpecs['Worker'].replicas}",
    "{.items[-1:].metadata.name}",
    '{.items[*].status.conditions[?(@.type=="Running")].message}',
    "{.kind} {..image}",
)


def tfjob(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "labels": labels},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": TEMPLATE}}},
    }


def running(message: str = "TFJob is running.") -> dict[str, Any]:
    at = "2024-11-16T03:00:00Z"
    condition = {"type": "Running", "status": "True", "reason": "TFJobRunning", "message": message}
    return {
        "phase": "Running",
        "restarts": 1,
        "startTime": at,
        "conditions": [{**condition, "lastUpdateTime": at, "lastTransitionTime": at}],
        "replicaStatuses": {"Worker": {"active": 2, "ready": "2/2"}},
    }


def set_status(client: SyncClient, namespace: str, name: str, status: dict[str, Any]) -> None:
    path = TFJOBS.path(namespace, name)
    client.send(requests.replace(f"{path}/status", {**client.send(requests.get(path)), "status": status}))


def without_age(text: str) -> list[list[str]]:
    """The cells of each row; ages, which change each second, are all the same."""
    cells = [re.split(r" {2,}", line.rstrip()) for line in text.splitlines()]
    return [[re.sub(r"^(\d+[smhdy])+$", "AGE", cell) for cell in row] for row in cells]


@pytest.fixture
def jobs(control_plane: ControlPlane, crds: None, namespace: str) -> str:
    with SyncClient(control_plane.admin) as client:
        for name in ("first", "second"):
            client.send(requests.create(TFJOBS.path(namespace), tfjob(name, team=name)))
            set_status(client, namespace, name, running())
        old = {
            "apiVersion": "tensorflow.org/v1alpha1",
            "kind": "TfJob",
            "metadata": {"name": "third"},
            "spec": {"replicaSpecs": [{"tfReplicaType": "MASTER", "template": TEMPLATE}]},
        }
        client.send(requests.create(OLD_TFJOBS.path(namespace), old))
    return namespace


@pytest.mark.cluster
def test_jobs_are_listed_as_kubectl_lists_them(
    control_plane: ControlPlane, jobs: str, tmp_path: Path
) -> None:
    def get(*args: str) -> Result:
        return tfyard("get", "-n", jobs, *args, cwd=tmp_path, KUBECONFIG=str(control_plane.kubeconfig))

    def kubectl(*args: str) -> str:
        return control_plane.kubectl("get", "tfjobs.kubeflow.org", "-n", jobs, *args)

    everything = get("-o", "wide").out
    assert "third" in everything
    assert without_age(everything)[:3] == without_age(kubectl("-o", "wide"))
    assert get("-l", "team=first", "--no-headers").out.split()[:4] == ["first", "Running", "2/2", "1"]
    names = get("-o", "name", "-l", "team").out
    assert names == kubectl("-o", "name")
    assert get("-o", "name", *names.split(), "tfjob/third").out == f"{names}tfjob.tensorflow.org/third\n"
    assert json.loads(get("-l", "team", "-o", "json").out) == json.loads(kubectl("-o", "json"))
    assert json.loads(get("first", "-o", "json").out) == json.loads(kubectl("first", "-o", "json"))
    columns = "-o=custom-columns=NAME:.metadata.name,S:.status.phase,C:.status.conditions[*].type,X:.x"
    assert without_age(get("-l", "team", columns).out) == without_age(kubectl(columns))
    joined = "|".join(TEMPLATES)
    assert get("-l", "team", f"-o=jsonpath={joined}").out == kubectl(f"-o=jsonpath={joined}")
    by = "--sort-by=.metadata.labels.team"
    assert get("-l", "team", by, "-o", "name").out == kubectl(by, "-o", "name")
    backwards = get("-o", "name", "second", "first", "--sort-by={.metadata.name}").out
    assert backwards == names
    labelled = get("-l", "team", "--show-labels").out
    assert without_age(labelled) == without_age(kubectl("--show-labels"))
    assert get("--sort-by=.a[", "--kubeconfig", "/nowhere").code == 2
    missing = get("first", "secnd")
    assert (missing.code, "first" in missing.out) == (1, True)
    assert missing.err == f"tfyard: TFJob 'secnd' not found in the namespace {jobs}; did you mean second?\n"
    assert get("-w", "secnd").err == missing.err
    assert get("first", "-l", "team").code == 2
    assert get("-l", "team=x").err.startswith(
        f"tfyard: no TFJobs with the labels team=x in the namespace {jobs}; "
    )


@pytest.mark.cluster
async def test_each_change_is_a_row_while_get_watches(
    control_plane: ControlPlane, jobs: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-u", "-m", "tfyard", "get", "-w", "-n", jobs]
    env = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}
    watching = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    seen: list[str] = []
    assert watching.stdout is not None
    reader = threading.Thread(target=seen.extend, args=(iter(watching.stdout.readline, ""),))
    reader.start()

    async def has(*words: str) -> None:
        assert any(all(word in line for word in words) for line in seen), seen

    try:
        await eventually(lambda: has("third"))
        with SyncClient(control_plane.admin) as client:
            set_status(client, jobs, "first", {**running(), "phase": "Succeeded"})
            await eventually(lambda: has("first", "Succeeded"))
            client.send(requests.delete(TFJOBS.path(jobs, "second")))
            await eventually(lambda: has("second", "Deleted"))
    finally:
        watching.terminate()
        watching.wait()
        reader.join()
        watching.stdout.close()
    assert seen[0].startswith("NAME ")


@pytest.mark.cluster
def test_a_user_who_may_see_nothing_is_told_so_and_still_sees_runs(
    control_plane: ControlPlane, jobs: str, tmp_path: Path
) -> None:
    nobody = control_plane.write_kubeconfig(control_plane.access("nobody"), "nobody")
    done = tfyard("get", "-n", jobs, cwd=tmp_path, KUBECONFIG=str(nobody))
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert 'User "nobody" cannot list resource "tfjobs"' in done.err


def test_an_unreachable_cluster_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(kubeconfig.dump(Access(ClusterEntry(server="https://127.0.0.1:1"))))
    done = tfyard("get", cwd=tmp_path, KUBECONFIG=str(tmp_path / "config"))
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "127.0.0.1:1" in done.err
    soon = tfyard("get", "--request-timeout", "5s", cwd=tmp_path, KUBECONFIG=str(tmp_path / "config"))
    assert soon.err == done.err
    groups = tfyard("get", "--as-group", "devs", cwd=tmp_path, KUBECONFIG=str(tmp_path / "config"))
    assert (groups.code, groups.err) == (
        2,
        "tfyard: --as-group needs --as: groups are those of another user\n",
    )


def test_without_a_cluster_there_are_only_runs(tmp_path: Path) -> None:
    done = tfyard("get", cwd=tmp_path, HOME=str(tmp_path), KUBECONFIG="", KUBERNETES_SERVICE_HOST="")
    assert (done.code, done.err) == (0, "tfyard: no runs here; start one with `tfyard run FILE`\n")


@pytest.mark.parametrize("form", ["jsn", "jsonpath", "jsonpath={.a", "custom-columns=NAME"])
def test_an_unknown_output_form_is_refused_before_the_cluster_is_asked(tmp_path: Path, form: str) -> None:
    done = tfyard("get", "--local", "-o", form, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")


@pytest.mark.processes
def test_runs_are_listed_like_jobs_and_nothing_slow_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("print('Step: 1, loss: 0.5')")
    assert tfyard("run", "train.py", "-q", cwd=tmp_path).code == 0
    header, row = tfyard("get", "--local", cwd=tmp_path).out.splitlines()
    assert header.split() == ["NAME", "STATE", "CHIEF", "WORKERS", "PS", "RESTARTS", "AGE"]
    assert row.split()[1] == "Succeeded"
    found = json.loads(tfyard("get", "@latest", "--local", "-o", "json", cwd=tmp_path).out)
    assert (found["kind"], found["status"]["phase"], found["status"]["exitCode"]) == ("Run", "Succeeded", 0)
    assert found["metadata"]["name"] == row.split()[0]
    wrong = tfyard("get", "nothing", "--local", cwd=tmp_path)
    assert (wrong.code, "not found" in wrong.err) == (1, True)
    monkeypatch.chdir(tmp_path)
    assert not SLOW & imported("get", "--local")


def test_a_cluster_is_asked_without_slow_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(kubeconfig.dump(Access(ClusterEntry(server="http://127.0.0.1:1"))))
    monkeypatch.chdir(tmp_path)
    modules = imported("get", "--kubeconfig", "config")
    assert "tfyard.remote.reading.jobs" in modules
    assert not (SLOW | OF_JOBS) & modules
