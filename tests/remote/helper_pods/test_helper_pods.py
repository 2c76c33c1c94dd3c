"""Helper pods: what they are, and that none stays."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.remote.copy_node import CopyNode, Helpers, copy_node
from tests.remote.situations import is_refused
from tfyard.kube import Client, requests
from tfyard.remote.helper_pods.helper_pod import (
    LABEL,
    USER,
    HelperFailed,
    HelperPod,
    Mount,
    manifest,
    running,
)
from tfyard.testing import ControlPlane, eventually
from tfyard.testing.acceptance import accept

HELPER = HelperPod(
    namespace="ml", purpose="test", mounts=(Mount("out", "/out"), Mount("out", "/b", "sub", True))
)


def say(_: str) -> None: ...


async def fail_within(client: Client, helper: HelperPod) -> None:
    async with running(client, helper, say):
        raise ZeroDivisionError


async def sleep_within(client: Client, helper: HelperPod) -> None:
    async with running(client, helper, say):
        await asyncio.sleep(600)


@pytest.mark.cluster
@pytest.mark.processes
async def test_a_helper_goes_with_its_caller_and_one_that_was_left_goes_with_the_next(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with copy_node(control_plane, namespace, tmp_path) as node:
        await node.claim()
        await node.restrict()
        helper = replace(HELPER, namespace=namespace, owner=(await node.job()).manifest)
        with pytest.raises(ZeroDivisionError):
            await fail_within(node.client, helper)
        await node.until_no_helper()

        task = asyncio.create_task(sleep_within(node.client, helper))
        await node.first_helper()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await node.until_no_helper()

        await leave_one(node)
        async with running(node.client, helper, say) as name:
            [pod] = await node.helpers()
            assert pod["metadata"]["name"] == name
            assert "controller" not in pod["metadata"]["ownerReferences"][0]
        await node.until_no_helper()


@pytest.mark.cluster
@pytest.mark.processes
async def test_a_helper_stays_with_its_client_and_ends_soon_after_that_was_killed(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfyard.remote.helper_pods.helper_pod.ALONE", 2.4)
    async with copy_node(control_plane, namespace, tmp_path) as node:
        await node.claim()
        helper = replace(HELPER, namespace=namespace, owner=(await node.job()).manifest)
        async with running(node.client, helper, say) as name:
            await asyncio.sleep(5)
            [pod] = await node.helpers()
            assert (pod["metadata"]["name"], pod["status"]["phase"]) == (name, "Running")
        await node.until_no_helper()
        left = manifest(helper, "left")  # by a client that was killed
        await node.client.send(requests.create(requests.PODS.path(namespace), left))
        await node.until_helper_runs()

        async def ended() -> None:
            assert [each["status"]["phase"] for each in await node.helpers()] == ["Succeeded"]

        await eventually(ended)


async def leave_one(node: CopyNode) -> None:
    """As a client does that is killed."""
    old = manifest(replace(HELPER, namespace=node.namespace, mounts=(), argv=("false",)), "old")
    await node.client.send(requests.create(requests.PODS.path(node.namespace), old))
    while (await node.helpers())[0]["status"].get("phase") != "Failed":
        await asyncio.sleep(0.05)


@pytest.mark.cluster
async def test_a_namespace_that_refuses_says_why(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    root = {"spec": {"containers": [{"securityContext": {"runAsUser": 0}}]}}
    async with control_plane.client() as client:
        pod = manifest(replace(HELPER, namespace=namespace, like=root), "root")
        await accept(client, pod, namespace)
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        path = requests.NAMESPACES.path(name=namespace)
        await client.send(requests.patch(path, {"metadata": {"labels": labels}}))
        await eventually(partial(is_refused, client, pod))
        await accept(client, manifest(replace(HELPER, namespace=namespace), "any"), namespace)
        with pytest.raises(HelperFailed, match=r"the helper pod was refused: .*violates PodSecurity"):
            await fail_within(client, replace(HELPER, namespace=namespace, like=root))


@pytest.mark.cluster
async def test_what_a_helper_waits_for_is_shown_and_a_lasting_problem_ends_it(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfyard.remote.helper_pods.helper_pod.PATIENCE", 0.0)
    said: list[str] = []

    async def start(client: Client) -> None:
        async with running(client, replace(HELPER, namespace=namespace), said.append):
            pytest.fail("nobody runs it")

    full = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes: full",
    }
    back_off = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    program = {"name": "helper", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    async with control_plane.client() as client:
        task, node = asyncio.create_task(start(client)), Helpers(client, namespace)
        name = (await node.first_helper())["metadata"]["name"]
        path = requests.PODS.path(namespace, name, "status")
        await client.send(requests.patch(path, {"status": {"conditions": [full]}}))
        while not said or "full" not in said[-1]:
            await asyncio.sleep(0.05)
        assert said[-1] == f"waiting for the helper pod {name}: Unschedulable: 0/3 nodes: full"
        status = {"containerStatuses": [{**program, "state": back_off}]}
        await client.send(requests.patch(path, {"status": status}))
        with pytest.raises(HelperFailed, match=r"ImagePullBackOff: .*--helper-image chooses another image"):
            await task
        await node.until_no_helper()


def test_a_helper_runs_as_the_user_of_the_job_and_does_not_look_like_a_task() -> None:
    plain = manifest(HELPER, "x")
    assert plain["spec"]["securityContext"]["runAsUser"] == USER
    assert plain["metadata"]["labels"] == {LABEL: "test", "app.kubernetes.io/managed-by": "tfyard"}
    claims = [each["persistentVolumeClaim"] for each in plain["spec"]["volumes"] if each["name"] != "signs"]
    assert [each["claimName"] for each in claims] == ["out"]
    spec = {
        "securityContext": {"runAsUser": 7, "fsGroup": 8},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "tensorflow", "securityContext": {"runAsUser": 9}}],
    }
    found = manifest(replace(HELPER, like={"spec": spec}, node="gpu-1"), "x")["spec"]
    assert (found["securityContext"]["runAsUser"], found["securityContext"]["fsGroup"]) == (9, 8)
    root = manifest(replace(HELPER, like={"spec": spec}, user=0), "x")["spec"]["securityContext"]
    assert (root["runAsUser"], root["runAsNonRoot"], root["fsGroup"]) == (0, False, 8)
    assert (found["tolerations"], found["nodeName"]) == ([{"operator": "Exists"}], "gpu-1")
