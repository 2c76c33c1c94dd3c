"""The CRDs on a real apiserver: what it keeps, what it fills in, what it refuses and in which words."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.formats.samples import MANIFESTS, SEEDS, document
from tests.formats.test_validation import container, old, replica, tfjob
from tfyard import formats, kube
from tfyard.formats import crd
from tfyard.kube import Client, Resource, requests
from tfyard.model import Cluster, Condition, Failure, Job, Manifest, RoleMemory, RoleStatus, Status
from tfyard.testing import ControlPlane, builders
from tfyard.testing.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crds")]

KUBEFLOW = ("v1", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1")
V1 = Resource("kubeflow.org", "v1", "tfjobs")
DRY_RUN = {"dryRun": "All", "fieldValidation": "Strict"}


def resource(api_version: str) -> Resource:
    group, _, version = api_version.partition("/")
    return Resource(group, version, "tfjobs")


async def create(client: Client, namespace: str, body: Manifest, query: dict[str, str] | None = None) -> Any:
    body = {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "namespace"}}
    return await client.send(requests.create(resource(body["apiVersion"]).path(namespace), body, query))


def lost(given: Any, stored: Any, path: str = "") -> Iterator[str]:
    """What was given and is no longer there; null was never there."""
    if given is None:
        return
    if isinstance(given, dict) and isinstance(stored, dict):
        for key, part in given.items():
            yield from lost(part, stored.get(key), f"{path}.{key}")
    elif isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        for i, part in enumerate(given):
            yield from lost(part, stored[i], f"{path}[{i}]")
    elif given != stored:
        yield f"{path}: {given!r} became {stored!r}"


def essence(job: Job) -> Job:
    """The job without what a server adds to it, and as what it was written."""
    roles = tuple(msgspec.structs.replace(role, template={}) for role in job.roles)
    fresh: dict[str, Any] = {"name": "", "namespace": "", "uid": "", "generation": 0, "api_version": ""}
    return msgspec.structs.replace(job, roles=roles, **fresh)


# --- every field of every version

FULL_TEMPLATE = {
    "metadata": {"creationTimestamp": None, "labels": {"team": "vision"}, "nextYear": {"a": [1]}},
    "nextYear": True,
    "spec": {
        "nextYear": {"deep": {"er": 1}},
        "containers": [
            {
                **container(nextYear="kept", env=[{"name": "A", "value": "1"}]),
                "lifecycle": {"preStop": {"sleep": {"seconds": 1}, "nextYear": 1}},
                "resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1, "memory": "1Gi"}},
                "ports": [{"containerPort": 2222, "name": "tfjob-port"}],
            }
        ],
        "initContainers": [{"name": "first", "image": "example/b:1", "nextYear": 1}],
        "volumes": [{"name": "data", "nextYear": {"share": "x"}}],
    },
}
FLAT = {
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 5,
    "activeDeadlineSeconds": 60,
    "backoffLimit": 0,
    "suspend": True,
    "managedBy": "kubeflow.org/training-operator",
    "schedulingPolicy": {
        "minAvailable": 1,
        "queue": "q",
        "minResources": {"cpu": "4", "nvidia.com/gpu": 1},
        "priorityClass": "high",
        "scheduleTimeoutSeconds": 9,
    },
}
OTHERS = {"successPolicy": "AllWorkers", "enableDynamicWorker": True, "dialect": "kubeflow"}
ROLE = {"replicas": 2, "restartPolicy": "ExitCode", "template": FULL_TEMPLATE}
ALPHA1_FIELDS = {
    "RuntimeId": "x7f3",
    "tfImage": "example/tf:1",
    "schedulerName": "kube-batch",
    "cleanupPodPolicy": "None",
    "terminationPolicy": {"chief": {"replicaName": "WORKER", "replicaIndex": 1}},
    "tensorboard": {
        "logDir": "/logs",
        "serviceType": "NodePort",
        "volumes": [{"name": "logs", "azureFile": {"shareName": "s", "secretName": "t"}}],
        "volumeMounts": [{"name": "logs", "mountPath": "/logs", "subPath": "a"}],
    },
}
ALPHA1 = old(
    {"tfReplicaType": "WORKER", "replicas": 2, "tfPort": 3333, "template": FULL_TEMPLATE},
    {"tfReplicaType": "PS", "IsDefaultPS": True},
    **ALPHA1_FIELDS,
)


def written(version: str, **spec: Any) -> Manifest:
    body = tfjob({"Worker": ROLE, "PS": replica()}, **spec)
    return {**body, "apiVersion": f"kubeflow.org/{version}"}


FULL = [
    written("v1", **OTHERS, runPolicy=FLAT),
    *(written(version, **OTHERS, **FLAT) for version in KUBEFLOW[:-1]),
    {**ALPHA1, "apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob"},
    ALPHA1,
]
EXAMPLES = [document(path).data for path in (*MANIFESTS, *SEEDS)]
NAMES = [*("full" for _ in FULL), *(path.stem for path in (*MANIFESTS, *SEEDS))]
IDS = [f"{name}-{body['apiVersion']}" for name, body in zip(NAMES, [*FULL, *EXAMPLES], strict=True)]


@pytest.mark.parametrize("body", [*FULL, *EXAMPLES], ids=IDS)
async def test_what_is_created_as_one_version_is_read_as_every_other(
    control_plane: ControlPlane, namespace: str, body: Manifest
) -> None:
    group, _, version = body["apiVersion"].partition("/")
    async with control_plane.client() as client:
        made = await create(client, namespace, body)
        for other in KUBEFLOW if group == "kubeflow.org" else ("v1alpha1",):
            path = Resource(group, other, "tfjobs").path(namespace, made["metadata"]["name"])
            read = await client.send(requests.get(path))
            assert read["apiVersion"] == f"{group}/{other}"
            assert list(lost(body["spec"], read["spec"])) == []
            if other in ("v1", version):
                assert essence(formats.load(read)) == essence(formats.load(body))


@pytest.mark.parametrize("version", KUBEFLOW[1:-1])
async def test_changing_a_job_through_an_older_version_loses_nothing(
    control_plane: ControlPlane, namespace: str, version: str
) -> None:
    body = written("v1", **OTHERS, runPolicy={**FLAT, "cleanPodPolicy": "Running"})
    async with control_plane.client() as client:
        await create(client, namespace, body)
        path = Resource("kubeflow.org", version, "tfjobs").path(namespace, "mnist")
        await client.send(requests.patch(path, {"metadata": {"labels": {"a": "b"}}}))
        read = await client.send(requests.get(V1.path(namespace, "mnist")))
    assert list(lost(body["spec"], read["spec"])) == []
    assert read["metadata"]["labels"] == {"a": "b"}


DEFAULTS: dict[str, Manifest] = {
    "kubeflow.org/v1": {},
    "kubeflow.org/v1beta2": {"cleanPodPolicy": "Running", "dialect": "tf1"},
    "kubeflow.org/v1beta1": {"cleanPodPolicy": "Running", "dialect": "tf1"},
    "kubeflow.org/v1alpha2": {"cleanPodPolicy": "Running", "dialect": "tf1"},
    "kubeflow.org/v1alpha1": {"cleanupPodPolicy": "All", "dialect": "tf1"},
    "tensorflow.org/v1alpha1": {"cleanupPodPolicy": "All", "dialect": "tf1"},
}


@pytest.mark.parametrize(("version", "expected"), DEFAULTS.items())
async def test_each_version_stores_its_own_defaults(
    control_plane: ControlPlane, namespace: str, version: str, expected: Manifest
) -> None:
    is_list = version.endswith("v1alpha1")
    body = {**(old(replica()) if is_list else tfjob()), "apiVersion": version}
    body["kind"] = "TfJob" if version.startswith("tensorflow") else "TFJob"
    async with control_plane.client() as client:
        made = await create(client, namespace, body)
    roles = ("replicaSpecs", "tfReplicaSpecs")
    assert {key: value for key, value in made["spec"].items() if key not in roles} == expected


async def test_the_server_says_that_a_version_is_old(control_plane: ControlPlane, namespace: str) -> None:
    body = json.dumps({**tfjob(), "apiVersion": "kubeflow.org/v1beta1"})
    with pytest.raises(Exception, match="tfyard convert"):
        control_plane.kubectl("create", "-n", namespace, "--warnings-as-errors", "-f", "-", stdin=body)


# --- the status

NOW = formats.load_status({"status": {"startTime": "2026-01-01T00:00:00Z"}}).start_time
EVERYTHING = Status(
    phase="Running",
    conditions=(Condition("Running", "True", "TFJobRunning", "It runs.", NOW, NOW),),
    replica_statuses={"Worker": RoleStatus(active=2, ready="1/2", restarts=3, selector="a=b")},
    restarts=3,
    tasks={"Worker": RoleMemory(attempts={"1": 3}, finished="0", retries=2)},
    cluster=Cluster(services="per-replica", domain="cluster.local", dialect="tf1"),
    failure=Failure(cause="TaskFailed", task="worker-1", exit_code=1, message="It failed."),
    start_time=NOW,
    completion_time=NOW,
    last_reconcile_time=NOW,
    observed_generation=1,
)

LIST_STATUS = {"state": "Running", "replicaStatuses": [{"tf_replica_type": "WORKER", "state": "Running"}]}


async def test_the_server_remembers_all_that_we_must_remember(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await create(client, namespace, tfjob())
        await create(client, namespace, old(replica()))
        for one in (V1, resource("tensorflow.org/v1alpha1")):
            body = {"status": formats.dump_status(EVERYTHING)}
            await client.send(requests.patch(one.path(namespace, "mnist", "status"), body))
            read = await client.send(requests.get(one.path(namespace, "mnist")))
            assert formats.load_status(read) == EVERYTHING


async def test_what_other_operators_wrote_into_a_status_stays(
    control_plane: ControlPlane, namespace: str
) -> None:
    theirs = {
        "conditions": [{"type": "Created", "status": "True", "lastUpdateTime": None}],
        "replicaStatuses": {"PS": {}, "Worker": {"active": 1, "labelSelector": {"matchLabels": {"a": "b"}}}},
        "tfReplicaStatuses": {"Worker": {"active": 1}},
        "lastReconcileTime": "2020-01-01T00:00:00Z",
        "completionTime": None,
    }
    async with control_plane.client() as client:
        made = await create(client, namespace, tfjob())
        path = V1.path(namespace, "mnist", "status")
        read = await client.send(requests.replace(path, {**made, "status": theirs}))
    assert list(lost(theirs, read["status"])) == []


async def test_v1alpha1s_list_of_statuses_stays_until_we_write_our_own(
    control_plane: ControlPlane, namespace: str
) -> None:
    path = resource("tensorflow.org/v1alpha1").path(namespace, "mnist")
    async with control_plane.client() as client:
        made = await create(client, namespace, old(replica()))
        await client.send(requests.replace(f"{path}/status", {**made, "status": LIST_STATUS}))
        read = await client.send(requests.patch(path, {"metadata": {"labels": {"a": "b"}}}))
        assert read["status"] == {**LIST_STATUS, "restarts": 0}
        ours = {**read, "status": formats.dump_status(EVERYTHING)}
        assert formats.load_status(await client.send(requests.replace(f"{path}/status", ours))) == EVERYTHING


async def test_what_is_served_is_what_missing_memory_judges(control_plane: ControlPlane) -> None:
    async with control_plane.client() as client:
        for definition in crd.crds():
            path = requests.CRDS.path(name=definition["metadata"]["name"])
            served = await client.send(requests.get(path))
            assert crd.missing_memory(served) == []
            conditions = {c["type"]: c["status"] for c in served["status"]["conditions"]}
            assert conditions == {"NamesAccepted": "True", "Established": "True"}


# --- the rules

GPU = {"resources": {"requests": {"nvidia.com/gpu": 1}}}
MASTER = {"tfReplicaType": "MASTER", **replica()}
WORKER = {"tfReplicaType": "WORKER", **replica()}
GANG = {"minAvailable": 2}


def chief(name: str, index: int = 0) -> Manifest:
    return {"terminationPolicy": {"chief": {"replicaName": name, "replicaIndex": index}}}


BAD: list[tuple[Manifest, str]] = [
    (tfjob(name="Upper.case"), "metadata.name must be lower-case letters|RFC 1123"),
    (tfjob(name="0-digit"), "metadata.name must be lower-case letters, digits and '-', begin with a letter"),
    (tfjob(name="with.dot"), "metadata.name must be lower-case letters, digits and '-', begin with a letter"),
    (tfjob(name="x" * 55), "metadata.name is too long: with role and index"),
    (tfjob({"Worker": replica(replicas=101)}, name="x" * 53), "metadata.name is too long"),
    (tfjob("absent"), "spec must have roles: tfReplicaSpecs, or replicaSpecs as in v1alpha1"),
    (tfjob({}), "should have at least 1 properties"),
    (tfjob(replicaSpecs=[MASTER]), "spec must have roles: .* and not both"),
    (tfjob(tfImage="example/a:1"), "tfImage, .* belong to v1alpha1"),
    (tfjob({"Boss": replica()}), "unknown replica type; one of: Chief, Master, Worker, PS, Evaluator"),
    (tfjob({"Chief": replica(), "MASTER": replica()}), "must not have more than 1 Chief or Master role"),
    (tfjob({"chief": replica(replicas=2)}), "there is one Chief or Master, not more"),
    (tfjob({"Worker": replica(), "WORKER": replica()}), "a role is given twice"),
    (tfjob({"Worker": {}}), "template.spec.containers must be specified"),
    (tfjob({"Worker": {"template": {"spec": {"containers": []}}}}), "at least one container with name"),
    (tfjob({"Worker": replica(container(name="main"))}), "at least one container with name tensorflow"),
    (tfjob({"Worker": replica({"name": "tensorflow"})}), "image must be required"),
    (tfjob({"Worker": replica(container(image=""))}), "image must be required"),
    (tfjob({"Worker": replica(container(), container())}), "Duplicate value"),
    (tfjob({"Worker": replica(container(**GPU))}), "a GPU must be a limit"),
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
        "runPolicy.backoffLimit differs from spec.backoff",
    ),
    (
        tfjob(schedulingPolicy={"queue": "a"}, runPolicy={"schedulingPolicy": {"queue": "b"}}),
        "schedulingPolicy is given twice",
    ),
    (tfjob(schedulingPolicy=GANG), "the gang never fits"),
    (tfjob(runPolicy={"schedulingPolicy": GANG}), "the gang never fits"),
    (old(), "should have at least 1 items|replicaSpecs must be given"),
    (old(MASTER, MASTER), "a tfReplicaType is given twice"),
    (old({**MASTER, "replicas": 0}), "a MASTER is exactly one"),
    (old({**MASTER, "replicas": 2}), "a MASTER is exactly one"),
    (old({"tfReplicaType": "WORKER"}), "only a PS may do without a template"),
    (old({"tfReplicaType": "worker", **replica()}), 'supported values: "MASTER", "PS", "WORKER"'),
    (old(replica(container(name="main"))), "at least one container with name tensorflow"),
    (old(replica({"name": "tensorflow"})), "image must be required"),
    (old(MASTER, **chief("WORKER")), "Missing ReplicaSpec for chief"),
    (old(MASTER, {**WORKER, "replicas": 2}, **chief("WORKER", 2)), "there is no such replica"),
    (old(MASTER, tensorboard={"serviceType": "NodePort"}), "tensorboard.logDir: Required value"),
    (old(MASTER, cleanupPodPolicy="Some"), "cleanupPodPolicy: Unsupported value"),
]


def everywhere() -> Iterator[tuple[Manifest, str]]:
    """Each in its own version, and what needs no description of pods in every other that has its form."""
    for body, message in BAD:
        yield body, message
        if body["apiVersion"] == "tensorflow.org/v1alpha1":
            yield {**body, "apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob"}, message
        elif "GPU" not in message and "ports" not in json.dumps(body):
            yield {**body, "apiVersion": "kubeflow.org/v1beta1"}, message


async def test_what_is_wrong_is_refused_in_our_words(control_plane: ControlPlane, namespace: str) -> None:
    found = []
    async with control_plane.client() as client:
        for body, message in everywhere():
            said = await _refusal(client, namespace, body)
            if not re.search(message, said):
                found.append(f"{message!r}, of {body['apiVersion']} {body['spec']}: {said or 'accepted'}")
    assert found == []


@pytest.mark.parametrize("body", [body for body, _ in BAD], ids=range(len(BAD)))
def test_the_server_refuses_nothing_that_we_would_take(body: Manifest) -> None:
    assert formats.check(body).errors


async def _refusal(client: Client, namespace: str, body: Manifest) -> str:
    try:
        await create(client, namespace, body, DRY_RUN)
    except kube.Refused as problem:
        return str(problem)
    return ""


GOOD = [
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
]


@pytest.mark.parametrize("body", GOOD, ids=range(len(GOOD)))
async def test_what_is_right_is_accepted(control_plane: ControlPlane, namespace: str, body: Manifest) -> None:
    assert formats.check(body).errors == ()
    async with control_plane.client() as client:
        assert await _refusal(client, namespace, body) == ""


THEIRS = "kubeflow.org/training-operator"
CHANGES = [
    ({}, {"managedBy": THEIRS}, "managedBy cannot be changed"),
    ({}, {"runPolicy": {"managedBy": THEIRS}}, "managedBy cannot be changed"),
    ({"runPolicy": {"managedBy": THEIRS}}, {"runPolicy": None}, "managedBy cannot be changed"),
    ({"runPolicy": {"managedBy": THEIRS}}, {"runPolicy": None, "managedBy": THEIRS}, ""),
    ({"schedulingPolicy": {"queue": "a"}}, {"schedulingPolicy": {"queue": "b"}}, "queue is immutable"),
    ({"runPolicy": {"suspend": True}}, {"runPolicy": {"suspend": False}}, ""),
]


@pytest.mark.parametrize(("before", "change", "message"), CHANGES)
async def test_what_may_not_change_does_not(
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


# --- kubectl


def test_kubectl_explains_the_job_down_into_the_pod(control_plane: ControlPlane) -> None:
    explained = control_plane.kubectl("explain", "tfjob.spec.tfReplicaSpecs.template.spec.containers.image")
    assert "Container image name" in explained
    assert "How many restarts of any kind" in control_plane.kubectl("explain", "tfjob.spec.runPolicy")
    assert "must remember" in control_plane.kubectl("explain", "tfj.status.tasks")


async def test_kubectl_shows_a_job_in_one_line(control_plane: ControlPlane, namespace: str) -> None:
    roles = {
        "Master": RoleStatus(ready="1/1"),
        "Worker": RoleStatus(active=3, ready="3/4"),
        "PS": RoleStatus(ready="2/2"),
    }
    status = Status(phase="Running", replica_statuses=roles)
    async with control_plane.client() as client:
        await create(client, namespace, tfjob())
        body = {"status": formats.dump_status(status)}
        await client.send(requests.patch(V1.path(namespace, "mnist", "status"), body))
    head, line = control_plane.kubectl("get", "tfjob", "-n", namespace).splitlines()
    assert head.split() == ["NAME", "STATE", "CHIEF", "WORKERS", "PS", "RESTARTS", "AGE"]
    assert line.split()[:-1] == ["mnist", "Running", "1/1", "3/4", "2/2", "0"]
    assert "mnist" in control_plane.kubectl("get", "ml", "-n", namespace)
    assert "MESSAGE" in control_plane.kubectl("get", "tfj", "-n", namespace, "-o", "wide")


async def test_kubectl_scales_the_workers(control_plane: ControlPlane, namespace: str) -> None:
    async with control_plane.client() as client:
        await create(client, namespace, tfjob())
        body = {"status": formats.dump_status(EVERYTHING)}
        await client.send(requests.patch(V1.path(namespace, "mnist", "status"), body))
        control_plane.kubectl("scale", "tfjob/mnist", "--replicas=5", "-n", namespace)
        read = await client.send(requests.get(V1.path(namespace, "mnist")))
        scale = await client.send(requests.get(V1.path(namespace, "mnist", "scale")))
    assert read["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 5
    assert (scale["status"]["replicas"], scale["status"]["selector"]) == (2, "a=b")


def test_kubectl_apply_changes_a_job_of_an_old_version_without_a_quarrel(
    control_plane: ControlPlane, namespace: str
) -> None:
    for how in ([], ["--server-side", "--force-conflicts"]):
        for replicas in (1, 2):
            body = tfjob({"Worker": replica(replicas=replicas)})
            text = json.dumps({**body, "apiVersion": "kubeflow.org/v1beta1"})
            control_plane.kubectl("apply", *how, "-n", namespace, "-f", "-", stdin=text)
    read = json.loads(control_plane.kubectl("get", "tfjob", "mnist", "-n", namespace, "-o", "json"))
    assert read["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 2
    assert read["spec"]["dialect"] == "tf1"


# --- the upgrade from another operator's CRD

OLD_GROUP = "old.example.org"
OLD = Resource(OLD_GROUP, "v1", "tfjobs")


def minimal() -> Manifest:
    """As tf-operator 1.0 had it: hardly any schema, everything kept. Under a group of its own, because the
    real one serves other tests."""
    root = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"tfjobs.{OLD_GROUP}"},
        "spec": {
            "group": OLD_GROUP,
            "scope": "Namespaced",
            "names": {"plural": "tfjobs", "singular": "tfjob", "kind": "TFJob", "listKind": "TFJobList"},
            "versions": [{**version, "schema": {"openAPIV3Schema": root}}],
        },
    }


def ours() -> Manifest:
    kubeflow, _ = crd.crds()
    spec = {**kubeflow["spec"], "group": OLD_GROUP}
    return {**kubeflow, "metadata": {"name": f"tfjobs.{OLD_GROUP}"}, "spec": spec}


LONG = "x" * 60
OLD_JOBS = {
    "plain": tfjob()["spec"],
    "list": ALPHA1["spec"],
    LONG: tfjob({"Worker": replica(container(resources={"limits": {"cpu": 0.5}}, command=None))})["spec"],
    "wrong": tfjob({"Boss": replica({"name": "main"})}, unknown=1)["spec"],
}
OLD_STATUS = {"conditions": None, "replicaStatuses": {"Worker": {"active": 1}}, "startTime": None}


async def test_jobs_of_another_operators_crd_stay_and_can_be_finished(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await builders.install_crds(client, minimal())
        for name, spec in OLD_JOBS.items():
            await _make_old(client, namespace, name, spec)
        await builders.install_crds(client, ours())
        await eventually(lambda: _prunes(client, namespace))
        for name, spec in OLD_JOBS.items():
            await _finish(client, namespace, name)
            read = await client.send(requests.get(OLD.path(namespace, name)))
            known = {key: value for key, value in spec.items() if key != "unknown"}
            assert list(lost(known, read["spec"])) == []
            assert formats.load_status(read) == EVERYTHING
        await _check_long_name(client, namespace)


async def _make_old(client: Client, namespace: str, name: str, spec: Manifest) -> None:
    body = {"apiVersion": f"{OLD_GROUP}/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec}
    made = await client.send(requests.create(OLD.path(namespace), body))
    await client.send(
        requests.replace(
            OLD.path(namespace, name, "status"),
            {**made, "status": LIST_STATUS if name == "list" else OLD_STATUS},
        )
    )


async def _prunes(client: Client, namespace: str) -> None:
    """The server goes over to a new schema in its own time."""
    read = await client.send(requests.get(OLD.path(namespace, "wrong")))
    assert "unknown" not in read["spec"]


async def _finish(client: Client, namespace: str, name: str) -> None:
    """The status first: while it is v1alpha1's list, the scale subresource refuses every other change."""
    read = await client.send(requests.get(OLD.path(namespace, name)))
    finished = {**read, "status": formats.dump_status(EVERYTHING)}
    await client.send(requests.replace(OLD.path(namespace, name, "status"), finished))
    await client.send(requests.patch(OLD.path(namespace, name), {"metadata": {"labels": {"seen": "yes"}}}))


async def _check_long_name(client: Client, namespace: str) -> None:
    """It cannot have run under us; it may shrink, and not grow."""
    path = OLD.path(namespace, LONG)
    await client.send(requests.patch(path, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 0}}}}))
    with pytest.raises(kube.Unprocessable, match=r"metadata\.name is too long"):
        await client.send(requests.patch(path, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1}}}}))
