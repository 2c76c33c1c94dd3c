"""A TfJob of 2017, as its users wrote it: default servers, TensorBoard, a port and a chief of its own."""

import json
from typing import Any

import yaml

from tests.planner.builders import NOW, manifests
from tfyard import formats
from tfyard.formats.tfjob.v1alpha1 import SCRIPT
from tfyard.model import Decision, Job, Observed, Pod, Status, Task
from tfyard.planner import Site, decide
from tfyard.views.tfjob_status import dump_status, load_status

TFJOB = """\
apiVersion: tensorflow.org/v1alpha1
kind: TfJob
metadata: {name: mnist, namespace: lab, uid: u-1}
spec:
  tfImage: tensorflow/tensorflow:1.3.0
  tensorboard: {logDir: /tmp/logs, serviceType: LoadBalancer}
  replicaSpecs:
    - tfReplicaType: MASTER
      template: &pod
        spec:
          containers: [{name: tensorflow, image: mnist:1}]
          restartPolicy: OnFailure
    - tfReplicaType: WORKER
      replicas: 2
      tfPort: 3333
      template: *pod
    - tfReplicaType: PS
      replicas: 2
"""
JOB = formats.load(yaml.safe_load(TFJOB))
CLUSTER = {
    "master": ["mnist-master-0.mnist.lab.svc:2222"],
    "ps": ["mnist-ps-0.mnist.lab.svc:2222", "mnist-ps-1.mnist.lab.svc:2222"],
    "worker": ["mnist-worker-0.mnist.lab.svc:3333", "mnist-worker-1.mnist.lab.svc:3333"],
}


def first() -> Decision:
    return decide(JOB, Observed(), Site(), NOW)


def container(name: str) -> Any:
    return manifests(first())[name]["spec"]["containers"][0]


def test_every_task_is_made_and_every_child_belongs_to_the_tfjob() -> None:
    decision = first()
    names = ["master-0", "worker-0", "worker-1", "ps-0", "ps-1"]
    assert list(manifests(decision)) == [f"mnist-{name}" for name in names]
    owners = {
        (owner["apiVersion"], owner["kind"], owner["uid"])
        for action in decision.actions
        for owner in action.manifest["metadata"]["ownerReferences"]  # type: ignore[union-attr]
    }
    assert owners == {("tensorflow.org/v1alpha1", "TfJob", "u-1")}


def test_a_default_server_runs_our_script_in_the_jobs_image_and_finds_itself_in_tf_config() -> None:
    server = container("mnist-ps-1")
    assert server["image"] == "tensorflow/tensorflow:1.3.0"
    assert server["command"] == ["python", "-c", SCRIPT]
    assert json.loads(server["env"][-1]["value"]) == {
        "cluster": CLUSTER,
        "task": {"type": "ps", "index": 1},
        "environment": "cloud",
    }


def test_a_port_of_the_jobs_own_is_listed_where_it_listens() -> None:
    assert container("mnist-worker-0")["ports"] == [{"name": "tfjob-port", "containerPort": 3333}]


def test_tensorboard_comes_in_the_jobs_image_with_the_wished_service() -> None:
    (board,) = manifests(first(), "Deployment").values()
    assert board["spec"]["template"]["spec"]["containers"][0]["image"] == "tensorflow/tensorflow:1.3.0"
    assert manifests(first(), "Service")["mnist-tensorboard"]["spec"]["type"] == "LoadBalancer"


def test_the_masters_end_is_the_jobs_end_and_its_pods_stay_as_in_2017() -> None:
    phase, targets = ended(JOB)
    assert (phase, targets) == ("Succeeded", [])


def test_a_clean_up_that_is_asked_for_takes_all_pods_but_tensorboard_stays() -> None:
    phase, targets = ended(formats.load(yaml.safe_load(TFJOB + "  cleanupPodPolicy: All\n")))
    assert phase == "Succeeded"
    assert targets == [("Pod", "mnist-master-0"), ("Pod", "mnist-ps-0"), ("Service", "mnist")]


def ended(job: Job) -> tuple[str, list[tuple[str, str]]]:
    """Its phase, and what is deleted, when its master has succeeded."""
    status = first().status
    done = Pod(name="mnist-master-0", uid="m", task=Task("Master", 0), phase="Succeeded", exit_code=0)
    server = Pod(name="mnist-ps-0", uid="p", task=Task("PS", 0), phase="Running")
    children = frozenset(
        (kind, name) for kind in ("Service", "Deployment") for name in manifests(first(), kind)
    )
    seen = Observed(status=status, pods=(done, server), children=children)
    decision = decide(job, seen, Site(), NOW)
    return decision.status.phase, [(action.kind, action.name) for action in decision.actions]  # type: ignore[union-attr]


def test_what_is_remembered_survives_being_stored_as_the_tfjobs_status() -> None:
    status = first().status
    stored = json.loads(json.dumps(dump_status(status)))
    assert load_status({"status": stored}) == status
    assert load_status({}) == Status()
