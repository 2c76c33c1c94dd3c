"""The rules of the CRDs on a real apiserver: what it refuses, and with which message."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.formats.serving import V1, create
from tests.formats.test_validation import container, old, replica, tfjob
from tfyard import formats, kube
from tfyard.kube import Client, requests
from tfyard.model import Manifest
from tfyard.testing import ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crds")]

DRY_RUN = {"dryRun": "All", "fieldValidation": "Strict"}
GPU = {"resources": {"requests": {"nvidia.com/gpu": 1}}}
MASTER = {"tfReplicaType": "MASTER", **replica()}
WORKER = {"tfReplicaType": "WORKER", **replica()}
BOARD = {"logDir": "/logs"}
GANG = {"minAvailable": 2}


def named(body: Manifest, name: str) -> Manifest:
    return {**body, "metadata": {"name": name}}


def chief(name: str, index: int = 0) -> Manifest:
    return {"terminationPolicy": {"chief": {"replicaName": name, "replicaIndex": index}}}


def most_tasks(**more: int) -> Manifest:
    """As many workers as TF_CONFIG can list in the namespace with the shortest name, which is the server's limit:
    its rules do not see namespaces. `more` are added to a role."""
    counts = {**more, "Worker": 2515 + more.get("Worker", 0)}
    body = tfjob({role: replica(replicas=count) for role, count in counts.items()})
    return {**body, "metadata": {"name": "mnist", "namespace": "n"}}


BAD: list[tuple[Manifest, str]] = [
    (tfjob(name="Upper.case"), "metadata.name must be lower-case letters|RFC 1123"),
    (tfjob(name="0-digit"), "metadata.name must be lower-case letters, digits and '-', begin with a letter"),
    (tfjob(name="with.dot"), "metadata.name must be lower-case letters, digits and '-', begin with a letter"),
    (tfjob(name="x" * 55), "metadata.name is too long: with role and index"),
    (tfjob({"Worker": replica(replicas=101)}, name="x" * 53), "metadata.name is too long"),
    (most_tasks(Worker=1), "too many tasks: TF_CONFIG lists them all"),
    (most_tasks(PS=1), "too many tasks"),
    (tfjob({"Worker": replica(replicas=2400)}, name="m" * 40), "too many tasks.* shorter name"),
    (
        tfjob({"Worker": replica(replicas=5000), "chief": replica()}, enableDynamicWorker=True),
        "too many tasks",
    ),
    (old(MASTER, {**WORKER, "replicas": 2600}), "too many tasks"),
    (tfjob("absent"), "spec must have roles: tfReplicaSpecs, or replicaSpecs as in v1alpha1"),
    (tfjob({}), "should have at least 1 properties"),
    (tfjob(replicaSpecs=[MASTER]), "spec must have roles: .* and not both"),
    (tfjob(tfImage="example/a:1"), "tfImage, .* must not be used with tfReplicaSpecs"),
    (tfjob({"Boss": replica()}), "unknown replica type; one of: Chief, Master, Worker, PS, Evaluator"),
    (tfjob({"Chief": replica(), "MASTER": replica()}), "must not have more than 1 Chief or Master role"),
    (tfjob({"chief": replica(replicas=2)}), "replicas of Chief or Master must be at most 1"),
    (tfjob({"Worker": replica(), "WORKER": replica()}), "a role is given twice"),
    (tfjob({"Worker": {}}), r"spec\.tfReplicaSpecs\.Worker\.template: Required value"),
    (tfjob({"Worker": {"template": {}}}), r"Worker\.template\.spec: Required value"),
    (tfjob({"Worker": {"template": {"spec": {"containers": []}}}}), "at least one container with name"),
    (tfjob({"Worker": replica(container(name="main"))}), "at least one container with name tensorflow"),
    (tfjob({"Worker": replica({"name": "tensorflow"})}), r"containers\[0\]\.image: Required value"),
    (tfjob({"Worker": replica(container(image=""))}), "image in body should be at least 1 chars long"),
    (tfjob({"Worker": replica(container(), container())}), "Duplicate value"),
    (tfjob({"Worker": replica(container(**GPU))}), "must also be a limit, Kubernetes rejects a GPU request"),
    (tfjob({"Worker": replica(container(ports=[{"containerPort": 0}]))}), "greater than or equal to 1"),
    (
        tfjob({"Worker": replica(container(ports=[{"containerPort": 1}, {"containerPort": 1}]))}),
        "Duplicate value",
    ),
    (tfjob({"Worker": replica(replicas=-1)}), "greater than or equal to 0"),
    (
        tfjob({"Worker": replica(restartPolicy="Sometimes")}),
        'supported values: "Always", "ExitCode", "Never"',
    ),
    (tfjob(runPolicy={"cleanPodPolicy": "Some"}), 'supported values: "All", "None", "Running"'),
    (tfjob(runPolicy={"managedBy": "me"}), "supported values: .*multikueue"),
    (tfjob(runPolicy={"activeDeadlineSeconds": 0}), "greater than or equal to 1"),
    (tfjob(successPolicy="Most"), "supported values: .*AllWorkers"),
    (tfjob(dialect="tf3"), 'supported values: "kubeflow", "tf1", "tf2"'),
    (
        tfjob(backoffLimit=1, runPolicy={"backoffLimit": 2}),
        "runPolicy.backoffLimit must not differ from spec.backoff",
    ),
    (
        tfjob(schedulingPolicy={"queue": "a"}, runPolicy={"schedulingPolicy": {"queue": "b"}}),
        "schedulingPolicy is given twice",
    ),
    (tfjob(schedulingPolicy=GANG), "minAvailable must be at most the number of tasks"),
    (tfjob(runPolicy={"schedulingPolicy": GANG}), "minAvailable must be at most the number of tasks"),
    (old(), "should have at least 1 items|replicaSpecs must be given"),
    (named(old(MASTER), "x" * 55), "metadata.name is too long"),
    (named(old(MASTER, tensorboard=BOARD), "x" * 52), "metadata.name is too long"),
    (old(MASTER, MASTER), "a tfReplicaType is given twice"),
    (old({**MASTER, "replicas": 0}), "replicas of a MASTER must be 1"),
    (old({**MASTER, "replicas": 2}), "replicas of a MASTER must be 1"),
    (old({"tfReplicaType": "WORKER"}), "template must be given: only a PS may omit it"),
    (old({"tfReplicaType": "worker", **replica()}), 'supported values: "MASTER", "PS", "WORKER"'),
    (old(replica(container(name="main"))), "at least one container with name tensorflow"),
    (old(replica({"name": "tensorflow"})), r"containers\[0\]\.image: Required value"),
    (old(MASTER, **chief("WORKER")), "Missing ReplicaSpec for chief"),
    (
        old(MASTER, {**WORKER, "replicas": 2}, **chief("WORKER", 2)),
        "replicaIndex must be less than the replicas",
    ),
    (old(MASTER, tensorboard={"serviceType": "NodePort"}), "tensorboard.logDir: Required value"),
    (old(MASTER, cleanupPodPolicy="Some"), "cleanupPodPolicy: Unsupported value"),
]


def everywhere() -> Iterator[tuple[Manifest, str]]:
    """Each wrong job in its own version and, unless the rule is about pods, in another version of its form."""
    for body, message in BAD:
        yield body, message
        if body["apiVersion"] == "tensorflow.org/v1alpha1":
            yield {**body, "apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob"}, message
        elif "GPU" not in message and "ports" not in json.dumps(body):
            yield {**body, "apiVersion": "kubeflow.org/v1beta1"}, message


async def test_wrong_jobs_are_refused_with_the_message_of_the_rule(
    control_plane: ControlPlane, namespace: str
) -> None:
    unexpected = []
    async with control_plane.client() as client:
        for body, message in everywhere():
            answer = await _refusal(client, namespace, body)
            if not re.search(message, answer):
                unexpected.append(
                    f"{message!r}, of {body['apiVersion']} {body['spec']}: {answer or 'accepted'}"
                )
    assert unexpected == []


@pytest.mark.parametrize("body", [body for body, _ in BAD], ids=range(len(BAD)))
def test_the_server_refuses_no_job_that_tfyard_accepts(body: Manifest) -> None:
    assert formats.check(body).errors


async def _refusal(client: Client, namespace: str, body: Manifest) -> str:
    try:
        await create(client, namespace, body, DRY_RUN)
    except kube.Refused as problem:
        return str(problem)
    return ""


GOOD = [
    most_tasks(),
    tfjob({"Worker": replica(replicas=5000), "ps": replica(replicas=2)}, enableDynamicWorker=True),
    old(MASTER, {**WORKER, "replicas": 2000}),
    tfjob(name="x" * 54),
    tfjob({"Worker": replica(replicas=100)}, name="x" * 53),
    tfjob({role: replica() for role in ("CHIEF", "worker", "Ps", "eValuator")}),
    tfjob({"Worker": replica(replicas=0), "Chief": replica(replicas=1)}),
    tfjob({"Worker": replica(container(), {"name": "side", "image": "example/b:1"})}),
    tfjob(backoffLimit=1, suspend=True, runPolicy={"backoffLimit": 1, "suspend": False}),
    tfjob(
        {"Worker": replica(replicas=3), "PS": replica()}, runPolicy={"schedulingPolicy": {"minAvailable": 4}}
    ),
    tfjob({"Worker": replica(container(resources={"limits": {"nvidia.com/gpu": 1}, **GPU["resources"]}))}),
    tfjob(successPolicy=""),
    old(MASTER, {**WORKER, "replicas": 2}, {"tfReplicaType": "PS"}, **chief("WORKER", 1)),
    old(replica(), cleanupPodPolicy=""),
    named(old(MASTER, tensorboard=BOARD), "x" * 51),
]


@pytest.mark.parametrize("body", GOOD, ids=range(len(GOOD)))
async def test_valid_jobs_are_accepted(control_plane: ControlPlane, namespace: str, body: Manifest) -> None:
    assert formats.check(body).errors == ()
    async with control_plane.client() as client:
        assert await _refusal(client, namespace, body) == ""


THEIRS = "kubeflow.org/training-operator"
CHANGES = [
    ({}, {"managedBy": THEIRS}, "managedBy is immutable"),
    ({}, {"runPolicy": {"managedBy": THEIRS}}, "managedBy is immutable"),
    ({"runPolicy": {"managedBy": THEIRS}}, {"runPolicy": None}, "managedBy is immutable"),
    ({"runPolicy": {"managedBy": THEIRS}}, {"runPolicy": None, "managedBy": THEIRS}, ""),
    ({"schedulingPolicy": {"queue": "a"}}, {"schedulingPolicy": {"queue": "b"}}, "queue is immutable"),
    ({"runPolicy": {"suspend": True}}, {"runPolicy": {"suspend": False}}, ""),
]


@pytest.mark.parametrize(("before", "change", "message"), CHANGES)
async def test_immutable_fields_cannot_be_changed(
    control_plane: ControlPlane, namespace: str, before: Manifest, change: Manifest, message: str
) -> None:
    async with control_plane.client() as client:
        await create(client, namespace, tfjob(**before))
        patch = requests.patch(V1.path(namespace, "mnist"), {"spec": change})
        if not message:
            await client.send(patch)
            return
        with pytest.raises(kube.Unprocessable, match=message):
            await client.send(patch)
