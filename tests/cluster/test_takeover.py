"""Kubeflow's own training-operator on a whole cluster: tfyard takes its TFJobs over, and gives them back."""

from collections.abc import Iterator

import pytest
import yaml

from tests.cluster import guests
from tests.cluster.clusters import Cluster, until
from tests.cluster.test_installation import install, on
from tfyard.model import Manifest
from tfyard.remote.installing import one_task_job

pytestmark = [pytest.mark.cluster, pytest.mark.long]
OLD = "deployment training-operator in the namespace kubeflow"
END = "/tmp/end-of-train"
WAITS = f"until [ -e {END} ]; do sleep 0.2; done"


@pytest.fixture(scope="module")
def box(empty: Cluster) -> Iterator[Cluster]:
    with guests.installed(empty, "training-operator"):
        yield empty
        assert on(empty, "uninstall", "--crds", "--force").code == 0
        empty.kubectl("delete", "namespace", "tfyard", "--ignore-not-found")


def job(name: str, command: str = "true", replicas: int = 1, container: str = "tensorflow") -> Manifest:
    found = one_task_job.job("i")
    found["metadata"]["name"] = name
    worker = found["spec"]["tfReplicaSpecs"]["Worker"]
    worker |= {"replicas": replicas, "restartPolicy": "Never"}
    worker["template"]["spec"]["containers"][0] |= {"command": ["sh", "-c", command], "name": container}
    return found


def create(box: Cluster, job: Manifest) -> None:
    box.kubectl("create", "-f", "-", stdin=yaml.safe_dump(job))


def conditions(box: Cluster, name: str) -> list[str]:
    """Those that hold."""
    status = box.get("tfjob", name).get("status") or {}
    return [each["type"] for each in status.get("conditions") or [] if each["status"] == "True"]


def has_succeeded(box: Cluster, name: str) -> bool:
    found = conditions(box, name)
    assert "Failed" not in found, box.kubectl("describe", "tfjob", name)
    return "Succeeded" in found


def states(box: Cluster) -> dict[str, str]:
    """As `kubectl get tfjobs` shows them."""
    rows = [line.split() for line in box.kubectl("get", "tfjobs", "--no-headers").splitlines()]
    return {row[0]: row[1] for row in rows}


def pods(box: Cluster, name: str) -> dict[str, str]:
    """Name -> uid of the pods of a job that run."""
    found = box.get("pods", "-l", f"training.kubeflow.org/job-name={name}")["items"]
    return {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in found
        if each["status"]["phase"] == "Running" and "deletionTimestamp" not in each["metadata"]
    }


def finish(box: Cluster, name: str) -> None:
    for pod in pods(box, name):
        box.kubectl("exec", pod, "--", "touch", END)
    until(lambda: has_succeeded(box, name))


def test_a_running_job_goes_over_to_tfyard_and_loses_no_pod(box: Cluster) -> None:
    create(box, job("done"))
    create(box, job("train", WAITS, replicas=2))
    until(lambda: has_succeeded(box, "done"))
    until(lambda: "Running" in conditions(box, "train") and len(pods(box, "train")) == 2)
    before = pods(box, "train")
    refused = on(box, "install")
    assert (refused.code, f"{OLD} works on TFJobs" in refused.err) == (1, True)

    said = install(box, "--replace-kubeflow")
    waits = [number for number, line in enumerate(said) if line.startswith(f"waiting: {OLD}: ")]
    assert waits, said
    assert waits[-1] < said.index("deployment.apps/tf-job-operator serverside-applied")
    until(lambda: states(box) == {"done": "Succeeded", "train": "Running"})
    assert pods(box, "train") == before

    box.kubectl("delete", "pod", "train-worker-1", "--grace-period=1")
    until(lambda: len(pods(box, "train")) == 2 and pods(box, "train") != before)
    finish(box, "train")


def test_the_other_kinds_stay_with_training_operator(box: Cluster) -> None:
    found = job("torch", container="pytorch")
    found |= {"kind": "PyTorchJob"}
    found["spec"]["pytorchReplicaSpecs"] = {"Master": found["spec"].pop("tfReplicaSpecs")["Worker"]}
    create(box, found)
    box.kubectl("wait", "--for=condition=Succeeded", "pytorchjob/torch", "--timeout=60s")
    box.kubectl("delete", "pytorchjob/torch")


def test_given_back_jobs_are_checked_and_run_by_training_operator_again(box: Cluster) -> None:
    create(box, job("stays", WAITS))
    until(lambda: len(pods(box, "stays")) == 1)
    before = pods(box, "stays")
    done = on(box, "uninstall")
    assert done.code == 0, done.err
    said = done.out.splitlines()
    waits = [number for number, line in enumerate(said) if line.startswith(f"waiting: {OLD}: ")]
    (back,) = [number for number, line in enumerate(said) if "TFJobs put back into the webhook" in line]
    assert waits[-1] < back
    create(box, job("again"))  # the webhook answers
    with pytest.raises(AssertionError, match="must have at least one container with name tensorflow"):
        create(box, job("unnamed", container="trainer"))
    until(lambda: has_succeeded(box, "again"))
    assert pods(box, "stays") == before
    finish(box, "stays")
    until(lambda: states(box).items() >= {"again": "Succeeded", "stays": "Succeeded"}.items())
