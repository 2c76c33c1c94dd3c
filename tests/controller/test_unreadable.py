"""Jobs whose spec cannot be read: what of them still holds, and what a cluster shows."""

from typing import Any

import msgspec
import pytest

from tests.controller.cluster import bench, tfjob
from tests.kube.test_decoding import DEEP, nested
from tfyard.backends.kubernetes.views import StoredJob
from tfyard.controller.job_reading import read
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, Script, eventually

POLICY = {
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 60,
    "activeDeadlineSeconds": 3600,
    "backoffLimit": 4,
    "suspend": True,
}


def view(manifest: dict[str, Any]) -> StoredJob:
    return msgspec.json.decode(msgspec.json.encode(manifest), type=StoredJob)


def test_every_field_of_the_run_policy_that_can_be_read_is_kept() -> None:
    job = read(view(tfjob("train", POLICY, Worker=9000)))
    assert ["TF_CONFIG would have" in problem for problem in job.problems] == [True]
    policy = job.run_policy
    assert (policy.clean, policy.ttl, policy.deadline, policy.backoff_limit) == ("All", 60, 3600, 4)
    assert policy.suspend


def test_a_field_of_the_run_policy_that_cannot_be_read_costs_only_itself() -> None:
    job = read(view(tfjob("train", {**POLICY, "activeDeadlineSeconds": "soon"}, Worker=1)))
    assert job.problems == ("spec.runPolicy.activeDeadlineSeconds: must be a whole number",)
    assert (job.run_policy.deadline, job.run_policy.ttl) == (None, 60)


def test_a_job_for_an_unknown_controller_is_ignored() -> None:
    job = read(view(tfjob("train", {"managedBy": "example.com/other"}, Worker=1)))
    assert (bool(job.problems), job.run_policy.managed_by) == (True, "example.com/other")


def test_a_job_that_is_nested_too_deeply_keeps_its_run_policy() -> None:
    manifest = tfjob("train", POLICY, Worker={"template": {"x": "DEEP"}})
    spec = msgspec.json.encode(manifest["spec"]).replace(b'"DEEP"', nested(DEEP))
    deep = msgspec.structs.replace(view(manifest), spec=msgspec.Raw(spec))
    job = read(deep)
    assert job.problems == ("spec: is nested too deeply to be read",)
    assert (job.run_policy.clean, job.run_policy.deadline) == ("All", 3600)


@pytest.mark.cluster
async def test_a_running_job_that_is_edited_into_nonsense_keeps_its_pods_and_takes_the_next_good_edit(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script()) as yard:
        await yard.submit(tfjob(Worker=2))
        await yard.phase("Running")
        scale = {"spec": {"replicas": 2400}}  # with a namespace of one letter, TF_CONFIG could list them
        await yard.client.send(requests.patch(TFJOBS.path(namespace, "train", "scale"), scale))

        async def blocked() -> None:
            last = (await yard.status())["conditions"][-1]
            assert (last["type"], last["status"], last["reason"]) == ("Blocked", "True", "InvalidSpec")
            assert "TF_CONFIG would have" in last["message"]

        async def told() -> None:
            events = await yard.client.send(requests.get(f"/api/v1/namespaces/{namespace}/events"))
            assert "InvalidSpec" in {event["reason"] for event in events["items"]}

        await eventually(blocked)
        assert (await yard.status())["phase"] == "Running"
        assert await yard.names() == {"train-worker-0", "train-worker-1"}
        await eventually(told)
        await yard.patch({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}}})
        await yard.pods({f"train-worker-{index}" for index in range(3)})
        await yard.client.send(requests.patch(TFJOBS.path(namespace, "train", "scale"), scale))
        await eventually(blocked)
        await yard.patch({"spec": {"runPolicy": {"suspend": True}}})
        await yard.phase("Suspended")
        await yard.pods(set())


@pytest.mark.cluster
async def test_a_job_that_was_never_readable_goes_when_its_time_is_over(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script()) as yard:
        unreadable = tfjob(policy={"ttlSecondsAfterFinished": 4}, Worker=1)
        unreadable["metadata"]["annotations"] = {"tfyard.dev/dialect": "tf9"}
        await yard.submit(unreadable)
        await yard.phase("Failed")

        async def gone() -> None:
            assert await yard.jobs() == set()

        await eventually(gone)
