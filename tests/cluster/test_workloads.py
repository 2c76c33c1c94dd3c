"""What else runs on the cluster: other forms of jobs, other strategies; and disruptions."""

import os
import pty
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import ROOT
from tests.cluster.clusters import Cluster, command_line, environment, until
from tests.cluster.test_training import (
    CANCER,
    GOOD_AUC,
    apply,
    auc,
    delete,
    until_it_trains,
    wait,
)

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]
MNIST = ROOT / "examples" / "mnist"
KINDS = "deployments,jobs,replicationcontrollers,pods,services,pvc"
"""All that these tests create; not `all`, which has the kind of a CRD that is deleted meanwhile."""


def model(cluster: Cluster) -> list[Path]:
    return list(cluster.claims.glob("default_cancer_*/model/saved_model.pb"))


def test_plain_jobs_need_no_operator(empty: Cluster) -> None:
    apply(empty, str(CANCER), "--as", "plain")
    empty.kubectl("wait", "--for=condition=Complete", "--timeout=4m", "job/cancer", timeout=300)
    (chief,) = [name for name in names(empty) if name.startswith("cancer-0-")]
    assert auc(empty.kubectl("logs", chief)) >= GOOD_AUC
    assert model(empty)
    empty.kubectl("delete", KINDS, "--all", "--grace-period=1")
    until(lambda: not model(empty))


def test_the_form_of_2016_trains_too(empty: Cluster) -> None:
    """Its ReplicationControllers start every task again, also after success."""
    apply(empty, str(CANCER), "--as", "legacy")

    def restarted() -> Any:
        pods = [pod for pod in empty.get("pods")["items"] if "chief" in pod["metadata"]["name"]]
        return [pod for pod in pods if pod["status"].get("containerStatuses", [{}])[0].get("lastState")]

    (chief,) = until(restarted, 300)
    assert chief["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 0
    assert auc(empty.kubectl("logs", "-p", chief["metadata"]["name"])) >= GOOD_AUC
    assert model(empty)
    empty.kubectl("delete", KINDS, "--all", "--grace-period=1")


def names(box: Cluster) -> list[str]:
    return [str(pod["metadata"]["name"]) for pod in box.get("pods")["items"]]


@pytest.mark.parametrize("name", ["multiworker", "evaluator"])
def test_other_strategies_train(cluster: Cluster, name: str) -> None:
    apply(cluster, str(MNIST / f"{name}.yaml"))
    wait(cluster, f"tfjob/mnist-{name}")


def test_tensorboard_answers_over_port_forward(cluster: Cluster) -> None:
    apply(cluster, str(MNIST / "multiworker.yaml"))
    cluster.kubectl("rollout", "status", "deployment/mnist-multiworker-tensorboard", "--timeout=2m")
    said = ("logs", "deployment/mnist-multiworker-tensorboard")
    until(lambda: "Press CTRL+C to quit" in cluster.kubectl(*said))  # kubectl ends if nobody listens
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = cluster.kubectl_command("port-forward", "service/mnist-multiworker-tensorboard", f"{port}:80")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        assert forward.stdout
        assert "Forwarding from" in forward.stdout.readline()
        try:
            page = until(lambda: answer(f"http://127.0.0.1:{port}/"), 60)
        finally:
            forward.kill()
    assert "TensorBoard" in page


def answer(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return str(opener.open(url, timeout=10).read().decode())
    except OSError:
        return ""


def test_training_goes_on_through_drain_a_killed_operator_and_a_reboot(cluster: Cluster) -> None:
    apply(cluster, str(CANCER), steps=6000)
    until_it_trains(cluster)
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--grace-period=5")
    cluster.kubectl("drain", cluster.name, *options, "--pod-selector=training.kubeflow.org/job-name=cancer")
    assert not [pod for pod in tasks(cluster) if pod["status"]["phase"] == "Running"]
    cluster.kubectl("uncordon", cluster.name)
    until_it_trains(cluster)
    os.kill(cluster.pid_of("operator"), signal.SIGKILL)
    cluster.reboot()
    until_it_trains(cluster)
    none_twice = ["chief-0", "ps-0", "worker-0", "worker-1"]
    until(lambda: sorted(programs(cluster)) == none_twice)  # a kubelet shows the old log until they start
    wait(cluster, "tfjob/cancer", 600)
    assert auc(cluster.kubectl("logs", "cancer-chief-0")) >= GOOD_AUC
    status = cluster.get("tfjob", "cancer")["status"]
    assert status["replicaStatuses"]["Chief"]["succeeded"] == 1
    assert "retries" not in str(status.get("tasks")), "nothing of this is the program's fault"
    delete(cluster, str(CANCER))


def tasks(cluster: Cluster) -> list[Any]:
    """The job's pods, without that of its TensorBoard."""
    pods = cluster.get("pods")["items"]
    return [pod for pod in pods if "training.kubeflow.org/job-name" in pod["metadata"].get("labels", {})]


def programs(cluster: Cluster) -> list[str]:
    """Which task each training process of the machine is, by its host's name."""
    mark = b"HOSTNAME=cancer-"
    trainers = [environment(pid) for pid in cluster.family() if "train.py" in command_line(pid)]
    names = [value for values in trainers for value in values if value.startswith(mark)]
    return [name.removeprefix(mark).decode() for name in names]


def test_kubectl_run_talks_with_the_process_that_it_starts(empty: Cluster) -> None:
    one = ("run", "one", "--image=any", "-i", "--rm", "--restart=Never", "--quiet", "--command", "--", "cat")
    assert empty.kubectl(*one, stdin="hello\n") == "hello\n"
    until(lambda: "one" not in names(empty))
    shell = {"name": "main", "image": "any", "command": ["sh"], "stdin": True, "tty": True}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shell"}, "spec": {"containers": [shell]}}
    empty.apply(pod)
    empty.kubectl("wait", "--for=condition=Ready", "pod/shell")
    attach = empty.kubectl_command("attach", "-it", "shell")
    for number in (1, 2):  # a client that leaves does not end it
        terminal, theirs = pty.openpty()
        with subprocess.Popen(attach, stdin=theirs, stdout=theirs, stderr=theirs) as visit:
            os.write(terminal, f"echo visit $(({number} + 40))\n".encode())
            until(lambda: f"visit {number + 40}" in empty.kubectl("logs", "shell"))  # noqa: B023
            visit.kill()
        os.close(terminal)
        os.close(theirs)
    assert empty.get("pod", "shell")["status"]["containerStatuses"][0]["restartCount"] == 0
    empty.kubectl("delete", "pod", "shell", "--now")
