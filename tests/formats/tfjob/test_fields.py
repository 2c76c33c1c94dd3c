"""Every declared field is read and written: one that is not would be accepted and lost."""

from typing import Any

import pytest

from tests.formats.samples import again
from tfyard import formats
from tfyard.formats.tfjob.fields import ReplicaSpec, RunPolicySpec, SchedulingSpec, TFJobSpec
from tfyard.model import Job

SCHEDULING = {
    "minAvailable": 1,
    "queue": "training",
    "minResources": {"cpu": "4"},
    "priorityClass": "high",
    "scheduleTimeoutSeconds": 60,
}
POLICY = {
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 600,
    "activeDeadlineSeconds": 3600,
    "backoffLimit": 3,
    "suspend": True,
    "managedBy": "kueue.x-k8s.io/multikueue",
    "schedulingPolicy": SCHEDULING,
}
WORKER = {
    "replicas": 3,
    "restartPolicy": "OnFailure",
    "template": {"spec": {"containers": [{"name": "tensorflow", "image": "example/train:1"}]}},
}
SPEC = {
    "tfReplicaSpecs": {"Worker": WORKER},
    "runPolicy": POLICY,
    "successPolicy": "AllWorkers",
    "enableDynamicWorker": True,
    "dialect": "kubeflow",
}
TREE: dict[tuple[str, ...], dict[str, Any]] = {
    (): SPEC,
    ("runPolicy",): POLICY,
    ("runPolicy", "schedulingPolicy"): SCHEDULING,
    ("tfReplicaSpecs", "Worker"): WORKER,
}
FIELDS = [(*path, name) for path, fields in TREE.items() for name in fields]
REQUIRED = {("tfReplicaSpecs",), ("tfReplicaSpecs", "Worker", "template")}


def job_of(spec: dict[str, Any]) -> Job:
    head = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist"}}
    (document,) = formats.read(formats.to_yaml({**head, "spec": spec}))
    return formats.load(document)


def without(fields: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: value for name, value in fields.items() if name != path[0]}
    return {**fields, path[0]: without(fields[path[0]], path[1:])}


def test_the_example_has_every_field() -> None:
    flat = {*TFJobSpec.__struct_encode_fields__} - {*RunPolicySpec.__struct_encode_fields__}
    assert flat == {*SPEC}
    assert {*RunPolicySpec.__struct_encode_fields__} == {*POLICY}
    assert {*SchedulingSpec.__struct_encode_fields__} == {*SCHEDULING}
    assert {*ReplicaSpec.__struct_encode_fields__} == {*WORKER}


@pytest.mark.parametrize("path", [each for each in FIELDS if each not in REQUIRED], ids=".".join)
def test_every_field_means_something(path: tuple[str, ...]) -> None:
    assert job_of(without(SPEC, path)) != job_of(SPEC)


def test_every_field_is_written_as_it_was_read() -> None:
    assert again(job_of(SPEC), "v1") == job_of(SPEC)
