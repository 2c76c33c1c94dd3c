"""Admission policies that rewrite the labels by which the operator finds its objects, and clients that undo what
it writes."""

import asyncio
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, end, operator_with, stage
from tests.controller.policies import changing, denying_deletes
from tests.controller.test_faults_refusals import pod_posts
from tests.controller.test_faults_strangers import blocked
from tests.remote.asking import ask
from tfyard.kube import requests
from tfyard.model.backoff import Backoff
from tfyard.model.names import JOB_NAME, OPERATOR_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.planner import Site
from tfyard.testing import ControlPlane, builders

pytestmark = pytest.mark.cluster

QUICK = Site(backoff=Backoff(first=2.0, longest=60.0))


CHANGES = [
    (OPERATOR_NAME, None, f"{OPERATOR_NAME}=tfjob-controller was removed"),
    (REPLICA_INDEX, "7", f"{REPLICA_INDEX}=0 became 7"),
    (REPLICA_INDEX, None, f"{REPLICA_INDEX}=0 was removed"),
    (REPLICA_TYPE, "ps", f"{REPLICA_TYPE}=worker became ps"),
    (JOB_NAME, "all-jobs", f"{JOB_NAME}=train became all-jobs"),
]


@pytest.mark.since(36, "MutatingAdmissionPolicies in v1")
async def test_a_label_that_a_policy_rewrites_blocks_the_job_at_once_and_is_no_endless_loop(
    control_plane: ControlPlane,
) -> None:
    """Such a pod was not seen, or taken for one too many: Created for ever, or 3,000 creates and deletes a
    minute. The cases run side by side, each with a namespace, a policy and an operator of its own."""
    async with control_plane.client() as admin, asyncio.TaskGroup() as cases:
        for change in CHANGES:
            namespace = await builders.create_namespace(admin)
            cases.create_task(check_change(control_plane, namespace, *change))


async def check_change(
    control_plane: ControlPlane, namespace: str, key: str, value: str | None, words: str
) -> None:
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace, site=QUICK):
        async with changing(scene.client, namespace, "labels", key, value):
            await scene.submit(tfjob(Worker=1, PS=1) if value is None else tfjob(Worker=1))
            condition = await blocked(scene, "LabelsMissing", timeout=30)
            assert f"pod train-worker-0: {words}" in condition["message"], condition
            told = await asyncio.to_thread(ask, control_plane.admin, namespace, "train")
            assert told.causes[0].kind == "labels-changed"
            assert words in told.sentence
            assert "mutatingadmissionpolicies" in told.causes[0].fix
            before = pod_posts(client)
            await asyncio.sleep(7)
            assert 1 <= pod_posts(client) - before <= 6, "each role's after 2 and 4 s"
            assert await blocked(scene, "LabelsMissing") == condition, "it does not come and go"
            assert await scene.names() <= {"train-worker-0"}, "nothing runs unseen"
            assert await reasons(scene) <= {"LabelsMissing", "SuccessfulCreateService"}
        await scene.phase("Running")
        await blocked(scene, "Unblocked", "False")


@pytest.mark.since(36, "MutatingAdmissionPolicies in v1")
async def test_a_service_whose_labels_a_policy_removes_blocks_its_job(
    control_plane: ControlPlane, namespace: str
) -> None:
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace, site=QUICK):
        async with changing(scene.client, namespace, "labels", OPERATOR_NAME, of="services"):
            await scene.submit(tfjob(Worker=2))
            condition = await blocked(scene, "LabelsMissing", timeout=30)
            assert f"service train: {OPERATOR_NAME}=tfjob-controller was removed" in condition["message"]
            await asyncio.sleep(7)
            posts = [each for each in client.writes if each.startswith("POST") and "/services" in each]
            assert 2 <= len(posts) <= 4
        await blocked(scene, "Unblocked", "False")
        assert await scene.names(requests.SERVICES) == {"train"}


async def test_a_service_that_is_deleted_whenever_it_is_created_is_created_ever_later(
    control_plane: ControlPlane, namespace: str
) -> None:
    """As by a clean-up job. Each deletion woke the job, which created it again at once."""
    client, path = Counting(control_plane.admin), requests.SERVICES.path(namespace)

    async def clean_up(scene: Stage) -> None:
        while True:
            for name in await scene.names(requests.SERVICES):
                await scene.client.send(requests.delete(f"{path}/{name}"))
            await asyncio.sleep(0.1)

    async with stage(control_plane, namespace) as scene, operator_with(client, namespace, site=QUICK):
        cleaning = asyncio.create_task(clean_up(scene))
        await scene.submit(tfjob(Worker=2))
        condition = await blocked(scene, "ChangedByOthers")
        assert condition["message"].startswith("service train is deleted whenever it is created")
        told = await asyncio.to_thread(ask, control_plane.admin, namespace, "train")
        assert told.causes[0].kind == "undone"
        await asyncio.sleep(8)
        await end(cleaning)
        assert 3 <= client.writes.count(f"POST {path}") <= 5, "after 0, 0, 2 and 4 s"
        await blocked(scene, "Unblocked", "False")
        assert await scene.names(requests.SERVICES) == {"train"}


async def test_a_delete_that_a_policy_denies_blocks_the_job(
    control_plane: ControlPlane, namespace: str
) -> None:
    """It was tried again and again, and nobody was told."""
    async with (
        stage(control_plane, namespace) as scene,
        operator_with(Counting(control_plane.admin), namespace, site=QUICK),
    ):
        await scene.submit(tfjob(Worker={"replicas": 1, "restartPolicy": "ExitCode"}))
        await scene.phase("Running")
        async with denying_deletes(scene.client, namespace):
            await scene.kubelet.finish("train-worker-0", 137)
            condition = await blocked(scene, "Invalid")
            assert condition["message"].startswith("cannot delete pod train-worker-0: ")
            assert "pods stay" in condition["message"]
        await scene.phase("Running", timeout=90)
        await blocked(scene, "Unblocked", "False")


async def reasons(scene: Stage) -> set[str]:
    found: dict[str, Any] = await scene.client.send(requests.get(requests.EVENTS.path(scene.namespace)))
    return {event["reason"] for event in found["items"] if event["involvedObject"]["kind"] == "TFJob"}
