"""Jobs whose node is rebooted or drained, whose operator is killed, or whose name another job had a moment ago."""

import os
import signal
from typing import Any

import pytest

from tests.cluster.clusters import Cluster, until
from tfyard.model import Manifest

pytestmark = pytest.mark.cluster
IDLE = "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: exit())\ntime.sleep(3600)"
PORT = 2222
SERVE = f"""
import os, signal, socket
signal.signal(signal.SIGTERM, signal.SIG_IGN)
server = socket.create_server(("0.0.0.0", {PORT}))
while True:
    with server.accept()[0] as connection:
        connection.sendall(os.environ["JOB"].encode())
"""
"""A parameter server that says whose it is, and does not end before it is killed."""
ASK = """
import json, os, signal, socket, time
signal.signal(signal.SIGTERM, lambda *_: exit())
host, _, port = json.loads(os.environ["TF_CONFIG"])["cluster"]["ps"][0].rpartition(":")
while True:
    try:
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            print("served by", connection.recv(100).decode(), flush=True)
            break
    except OSError:
        time.sleep(0.1)
while os.environ["JOB"] == "first":
    time.sleep(1)
"""


def task(program: str, restart: str = "Never", replicas: int = 1, **container: Any) -> Manifest:
    """A role of a TFJob whose pods have at most ten seconds to end."""
    trainer = {"name": "tensorflow", "image": "any:1", "command": ["python", "-c", program], **container}
    pod = {"containers": [trainer], "terminationGracePeriodSeconds": 10}
    return {"replicas": replicas, "restartPolicy": restart, "template": {"spec": pod}}


def tfjob(name: str, policy: Manifest | None = None, **roles: Manifest) -> Manifest:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": roles, "runPolicy": {"cleanPodPolicy": "None", **(policy or {})}},
    }


def status(cluster: Cluster, name: str) -> Any:
    return cluster.get("tfjob", name).get("status") or {}


def program(cluster: Cluster, pod: str) -> Any:
    """The status of its container; empty if there is no such pod, or no container yet."""
    pods = [each for each in cluster.get("pods")["items"] if each["metadata"]["name"] == pod]
    known = pods[0]["status"].get("containerStatuses") if pods else None
    return {"uid": pods[0]["metadata"]["uid"], **known[0]} if known else {}


def until_runs(cluster: Cluster, pod: str, besides: str = "") -> Any:
    """Its container, once it runs; `besides`: not the one with this id."""

    def found() -> Any:
        one = program(cluster, pod)
        return one if "running" in one.get("state", {}) and one["containerID"] != besides else None

    return until(found, 180)


POLICIES = ("Never", "ExitCode", "OnFailure", "Always")


@pytest.mark.long
def test_a_reboot_costs_no_retry_under_any_restart_policy(cluster: Cluster) -> None:
    jobs = {policy: f"reboot-{policy.lower()}" for policy in POLICIES}
    limit = {"backoffLimit": 1}  # at 0 the kubelet may restart nothing
    cluster.apply(*(tfjob(jobs[each], limit, Worker=task(IDLE, each)) for each in POLICIES))
    before = {each: until_runs(cluster, f"{jobs[each]}-worker-0") for each in POLICIES}
    cluster.reboot()
    for policy, name in jobs.items():
        after = until_runs(cluster, f"{name}-worker-0", before[policy]["containerID"])
        until(lambda name=name: status(cluster, name)["phase"] == "Running", 120)
        is_same_pod = after["uid"] == before[policy]["uid"]
        assert is_same_pod == (policy in ("OnFailure", "Always")), "a kubelet restarts in place what it may"
        assert after["restartCount"] == int(is_same_pod)
        told = status(cluster, name)
        assert told["restarts"] == 0
        assert told["replicaStatuses"]["Worker"].get("restarts", 0) == 0
        (ending,) = told["endings"]
        assert (ending["exitCode"], ending["reason"]) == (255, "Unknown")
        assert ending["started"] == before[policy]["state"]["running"]["startedAt"]
        assert ending["finished"] > ending["started"]
        why = cluster.tfyard("why", name)
        assert (why.code, "its node was rebooted" in why.out) == (0, True), why.out
    cluster.kubectl("delete", "tfjob", *jobs.values())


@pytest.mark.long
def test_a_drain_and_the_death_of_the_operator_cost_no_retry(cluster: Cluster) -> None:
    cluster.apply(tfjob("drained", {"backoffLimit": 0}, Worker=task(IDLE, replicas=2)))
    first = [until_runs(cluster, f"drained-worker-{index}") for index in (0, 1)]
    os.kill(cluster.pid_of("operator"), signal.SIGKILL)
    cluster.kubectl(
        "drain", cluster.name, "--force", "--pod-selector=training.kubeflow.org/job-name=drained", timeout=180
    )
    cluster.kubectl("uncordon", cluster.name)
    for index in (0, 1):
        again = until_runs(cluster, f"drained-worker-{index}")
        assert again["uid"] not in [each["uid"] for each in first]
    until(lambda: status(cluster, "drained")["phase"] == "Running")
    told = status(cluster, "drained")
    assert (told["restarts"], "retries" in str(told.get("tasks"))) == (0, False)
    cluster.kubectl("delete", "tfjob", "drained")


@pytest.mark.long
def test_a_job_that_is_submitted_again_at_once_reaches_only_its_own_parameter_server(
    cluster: Cluster,
) -> None:
    def submit(mark: str) -> None:
        env = [{"name": "JOB", "value": mark}]
        ports = [{"name": "tfjob-port", "containerPort": PORT}]
        ps, worker = task(SERVE, env=env, ports=ports), task(ASK, env=env)
        cluster.apply(tfjob("again", Worker=worker, PS=ps))

    submit("first")
    until(lambda: "running" in program(cluster, "again-worker-0").get("state", {}), 180)
    until(lambda: cluster.kubectl("logs", "again-worker-0") == "served by first\n")
    old = program(cluster, "again-ps-0")["uid"]
    cluster.kubectl("delete", "tfjob", "again")
    submit("second")
    assert program(cluster, "again-ps-0")["uid"] == old, "it still terminates"
    until(lambda: status(cluster, "again").get("phase") == "Succeeded", 120)
    assert cluster.kubectl("logs", "again-worker-0") == "served by second\n"
    cluster.kubectl("delete", "tfjob", "again")


@pytest.mark.long
def test_a_program_that_cannot_start_is_never_called_running(cluster: Cluster) -> None:
    broken = task("", "OnFailure", command=["no-such-program"])
    cluster.apply(tfjob("broken", Worker=broken))
    until(lambda: status(cluster, "broken").get("phase") == "Waiting", 60)
    told = status(cluster, "broken")
    assert [(each["type"], each["reason"]) for each in told["conditions"]] == [
        ("Created", "TFJobCreated"),
        ("Waiting", "Start"),
    ]
    assert "no-such-program" in told["conditions"][-1]["message"]
    (ended,) = {each["reason"] for each in told["endings"]}
    assert ended == "StartError"
    line = cluster.tfyard("get", "broken").out.splitlines()[-1].split()
    assert line[:3] == ["broken", "Waiting", "0/1"]
    assert "no-such-program" in cluster.tfyard("describe", "broken").out
    cluster.kubectl("delete", "tfjob", "broken")
