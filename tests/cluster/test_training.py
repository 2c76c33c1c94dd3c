"""The main job on a whole cluster, with real TensorFlow."""

import os
import re
import signal

import pytest

from tests.cli.running import ROOT, tfyard
from tests.cluster.clusters import Cluster, until

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow]
CANCER = ROOT / "examples" / "cancer" / "job.yaml"
GOOD_AUC = 0.976


def manifests(*render: str) -> str:
    rendered = tfyard("render", *render)
    assert rendered.code == 0, rendered.err
    return rendered.out


def apply(cluster: Cluster, *render: str, steps: int = 900) -> None:
    text = manifests(*render).replace("--steps 3000", f"--steps {steps}")
    cluster.kubectl("apply", "-f", "-", stdin=text)


def delete(cluster: Cluster, *render: str) -> None:
    """Delete all that was applied, and wait: a claim stays as long as a pod mounts it, such as TensorBoard's."""
    cluster.kubectl("delete", "-f", "-", stdin=manifests(*render))


def wait(cluster: Cluster, job: str, patience: float = 300) -> None:
    """Until it has succeeded; if it fails or takes too long, with what it and its pods say."""

    def is_over() -> bool:
        conditions = (cluster.get(job).get("status") or {}).get("conditions") or []
        true = {condition["type"] for condition in conditions if condition["status"] == "True"}
        assert "Failed" not in true, cluster.kubectl("describe", job, "pods")
        return "Succeeded" in true

    try:
        until(is_over, patience)
    except AssertionError as problem:
        name = job.partition("/")[2]
        logs = cluster.tfyard("logs", name, "--tail", "3").out
        raise AssertionError(cluster.tfyard("why", name).out + logs) from problem


def said_so_far(cluster: Cluster, pod: str, namespace: str = "default") -> str:
    """Empty while there is no container yet, which kubectl calls an error."""
    try:
        return cluster.kubectl("-n", namespace, "logs", pod, "--tail=50")
    except AssertionError:
        return ""


def until_it_trains(cluster: Cluster, pod: str = "cancer-chief-0", step: str = "Step: ") -> None:
    """Until a task of the job cancer runs and has printed a step; if it does not, with what the job waits for."""
    try:
        until(lambda: phases(cluster).get(pod) == "Running" and step in said_so_far(cluster, pod), 240)
    except AssertionError as problem:
        pods = cluster.kubectl("get", "pods,pvc", "--all-namespaces")
        told = cluster.tfyard("why", "cancer").out + pods + said_so_far(cluster, pod)
        raise AssertionError(told) from problem


def phases(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in cluster.get("pods")["items"]}


def auc(log: str) -> float:
    found = re.search(r"Held-out: .*auc: ([\d.]+)", log)
    assert found, log[-2000:]
    return float(found[1])


def check_use(cluster: Cluster) -> None:
    """While it trains: `tfyard top` and `kubectl top` show what each task takes, and the node more than that. If
    nothing measures it, `tfyard top` says so."""
    shown = cluster.tfyard("top", "cancer")
    if not cluster.has_metrics:
        assert "metrics" in shown.err, shown.err
        return
    assert (shown.code, shown.err) == (0, "")
    chief = next(line.split() for line in shown.out.splitlines() if line.startswith("chief-0"))
    assert float(chief[2]) > 0, shown.out
    assert chief[4] in ("MB", "GB"), shown.out
    rows = [line.split() for line in cluster.kubectl("top", "pods", "--no-headers").splitlines()]
    used = {row[0]: (row[1], row[2]) for row in rows if row[0].startswith("cancer-")}
    memories = [int(used[f"cancer-{task}"][1].removesuffix("Mi")) for task in ("chief-0", "ps-0", "worker-0")]
    assert min(memories) > 50, "TensorFlow is in it"
    assert int(used["cancer-chief-0"][0].removesuffix("m")) > 10
    node = cluster.kubectl("top", "nodes", "--no-headers").split()
    assert node[0] == cluster.name
    largest = max(int(memory.removesuffix("Mi")) for _, memory in used.values())
    assert int(node[3].removesuffix("Mi")) > largest


def test_the_cancer_job_trains_to_its_end_though_a_worker_is_killed(cluster: Cluster) -> None:
    apply(cluster, str(CANCER))
    until_it_trains(cluster, step="Step: 100,")
    os.kill(cluster.program_of("cancer-worker-1"), signal.SIGKILL)  # at once: it trains for some seconds only
    check_use(cluster)
    wait(cluster, "tfjob/cancer")
    assert auc(cluster.kubectl("logs", "cancer-chief-0")) >= GOOD_AUC
    (claim,) = cluster.claims.glob("default_cancer_*")
    assert (claim / "model" / "saved_model.pb").stat().st_size > 0
    job = cluster.get("tfjob", "cancer")
    assert job["status"]["replicaStatuses"]["Chief"]["succeeded"] == 1
    delete(cluster, str(CANCER))
