"""Jobs with every field, a status with every field, and requests to a server about them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tests.formats.test_validation import container, old, replica, tfjob
from tfyard.kube import Client, Resource, requests
from tfyard.model import Cluster, Condition, Ending, Failure, Job, Manifest, RoleMemory, RoleStatus, Status
from tfyard.views.tfjob_status import load_status

KUBEFLOW = ("v1", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1")
V1 = Resource("kubeflow.org", "v1", "tfjobs")


def resource(api_version: str) -> Resource:
    group, _, version = api_version.partition("/")
    return Resource(group, version, "tfjobs")


async def create(client: Client, namespace: str, body: Manifest, query: dict[str, str] | None = None) -> Any:
    body = {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "namespace"}}
    return await client.send(requests.create(resource(body["apiVersion"]).path(namespace), body, query))


def lost(sent: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Fields that were sent and that the server did not store; null counts as not sent."""
    if sent is None:
        return
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, part in sent.items():
            yield from lost(part, stored.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for i, part in enumerate(sent):
            yield from lost(part, stored[i], f"{path}[{i}]")
    elif sent != stored:
        yield f"{path}: {sent!r} became {stored!r}"


def essence(job: Job) -> Job:
    """The job without its identity, its version and its pod templates, which a server changes."""
    roles = tuple(msgspec.structs.replace(role, template={}) for role in job.roles)
    fresh: dict[str, Any] = {"name": "", "namespace": "", "uid": "", "generation": 0, "api_version": ""}
    return msgspec.structs.replace(job, roles=roles, **fresh)


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

NOW = load_status({"status": {"startTime": "2026-01-01T00:00:00Z"}}).start_time
EVERYTHING = Status(
    phase="Running",
    conditions=(Condition("Running", "True", "TFJobRunning", "It runs.", NOW, NOW),),
    replica_statuses={"Worker": RoleStatus(active=2, ready="1/2", restarts=3, selector="a=b")},
    restarts=3,
    tasks={"Worker": RoleMemory(attempts={"1": 3}, finished="0", retries=2)},
    cluster=Cluster(services="per-replica", domain="cluster.local", dialect="tf1"),
    failure=Failure(cause="TaskFailed", task="worker-1", exit_code=1, message="It failed."),
    endings=(
        Ending(
            task="worker-1",
            attempt=4,
            restart=2,
            started=NOW,
            finished=NOW,
            exit_code=1,
            reason="Error",
            message="It failed.",
        ),
    ),
    start_time=NOW,
    completion_time=NOW,
    observed_generation=1,
)

LIST_STATUS = {"state": "Running", "replicaStatuses": [{"tf_replica_type": "WORKER", "state": "Running"}]}
