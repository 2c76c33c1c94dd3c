"""Gang scheduling by others: PodGroups of their shape on a real apiserver, and their schedulers' part by hand."""

import asyncio
import logging
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controller import cluster
from tests.controller.cluster import Bench, bench, tfjob
from tests.controller.test_process import operator
from tests.controller.test_writes import writes
from tests.remote.asking import ask
from tfyard.controller import gang_schedulers
from tfyard.kube import Client, NotFound, Patch, Resource, requests
from tfyard.planner import Gang, Site, gang
from tfyard.testing import ControlPlane, Script, ScriptedKubelet, builders, eventually

pytestmark = pytest.mark.cluster

CRDS = Path(__file__).parents[1] / "data" / "crds" / "podgroups.yaml"
VOLCANO = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")
PLUGINS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups")
BY_VOLCANO = Site(gang=Gang(by="volcano", scheduler="volcano"))
BY_PLUGINS = Site(gang=Gang(by="scheduler-plugins", scheduler="together"))
WORKERS = {"train-worker-0", "train-worker-1"}
KUEUE = "kueue.x-k8s.io/managed"


def definitions() -> dict[str, dict[str, Any]]:
    """By API group."""
    return {each["spec"]["group"]: each for each in yaml.safe_load_all(CRDS.read_text())}


async def install(client: Client, *groups: str) -> None:
    await builders.install_crds(client, *(definitions()[group] for group in groups))


async def remove(client: Client, *groups: str) -> None:
    for group in groups:
        with suppress(NotFound):
            await client.send(requests.delete(requests.CRDS.path(name=f"podgroups.{group}")))

    async def served() -> None:
        found = await client.send(requests.get("/apis"))
        assert not set(groups) & {each["name"] for each in found["groups"]}

    await eventually(served)


async def group(yard: Bench, resource: Resource) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        found = await yard.client.send(requests.get(resource.path(yard.namespace)))
        assert len(found["items"]) == 1, found["items"]
        return dict(found["items"][0])

    return await eventually(look)


async def answer(yard: Bench, phase: str) -> None:
    """What Volcano's scheduler does: its PodGroup has no status of its own to be written apart."""
    path = VOLCANO.path(yard.namespace, "train")
    await yard.client.send(requests.patch(path, {"status": {"phase": phase}}))


async def no_group(yard: Bench, resource: Resource) -> None:
    async def look() -> None:
        assert await yard.names(resource) == set()

    await eventually(look)


async def pod(yard: Bench, name: str = "train-worker-0") -> dict[str, Any]:
    found: dict[str, Any] = await yard.client.send(requests.get(requests.PODS.path(yard.namespace, name)))
    return found


async def test_volcanos_pods_are_made_when_it_has_room_and_its_group_follows_the_job(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await install(client, VOLCANO.group)
    policy = {"schedulingPolicy": {"queue": "research", "priorityClass": "urgent"}}
    async with bench(control_plane, namespace, Script(), site=BY_VOLCANO) as yard:
        assert yard.operator is not None
        await yard.submit(tfjob(policy=policy, Worker=2))
        made = await group(yard, VOLCANO)
        assert made["spec"] == {"minMember": 2, "queue": "research", "priorityClassName": "urgent"}
        await answer(yard, "Pending")
        await yard.phase("Created")
        await asyncio.sleep(1)
        assert await yard.names() == set()
        before = writes(yard.operator)
        assert (before["create podgroups"], before["update tfjobs/status"]) == (1, 1)

        await answer(yard, "Inqueue")
        await yard.phase("Running")
        found = await pod(yard)
        assert found["spec"]["schedulerName"] == "volcano"
        notes = found["metadata"]["annotations"]
        assert (notes["scheduling.k8s.io/group-name"], notes["volcano.sh/task-spec"]) == ("train", "worker")

        await yard.patch({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}}})
        await yard.pods({*WORKERS, "train-worker-2"})

        async def follows() -> None:
            assert (await group(yard, VOLCANO))["spec"]["minMember"] == 3

        await eventually(follows)
        assert writes(yard.operator)["patch podgroups"] == 1
        await yard.patch({"spec": {"runPolicy": {"suspend": True}}})
        await no_group(yard, VOLCANO)
        await yard.pods(set())
        await yard.patch({"spec": {"runPolicy": {"suspend": False}}})
        await group(yard, VOLCANO)
        await answer(yard, "Running")
        await yard.phase("Running")
        for name in ("train-worker-0", "train-worker-1", "train-worker-2"):
            await yard.kubelet.finish(name)
        await yard.phase("Succeeded")
        await no_group(yard, VOLCANO)


async def test_a_job_says_that_volcano_does_not_answer_until_it_does(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gang, "PATIENCE", 1.5)
    async with control_plane.client() as client:
        await install(client, VOLCANO.group)
    async with bench(control_plane, namespace, Script(), site=BY_VOLCANO) as yard:
        await yard.submit(tfjob(Worker=2))

        async def blocked(status: str, reason: str) -> None:
            found = (await yard.status()).get("conditions", ())
            told = {c["type"]: (c["status"], c["reason"]) for c in found}
            assert told.get("Blocked") == (status, reason)

        await eventually(partial(blocked, "True", "PodGroupNotSeen"))
        told = await asyncio.to_thread(ask, control_plane.admin, namespace, "train")
        assert (told.code, told.causes[0].kind) == (3, "gang")
        assert told.sentence == "Volcano has not processed PodGroup train yet: is its scheduler running?"
        await answer(yard, "Pending")
        await eventually(partial(blocked, "True", "PodGroupPending"))
        told = await asyncio.to_thread(ask, control_plane.admin, namespace, "train")
        assert told.sentence == "PodGroup train is Pending: waiting for capacity in Volcano's queue default"
        await answer(yard, "Inqueue")
        await eventually(partial(blocked, "False", "Unblocked"))
        await yard.phase("Running")


async def test_a_group_of_scheduler_plugins_comes_back_and_goes_with_the_end(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await install(client, PLUGINS.group)
    needs = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "example/train:1", **needs}]}}
    policy = {"schedulingPolicy": {"scheduleTimeoutSeconds": 90}, "cleanPodPolicy": "None"}
    async with bench(control_plane, namespace, Script(), site=BY_PLUGINS) as yard:
        assert yard.operator is not None
        await yard.submit(tfjob(policy=policy, Worker={"replicas": 2, "template": template}))
        await yard.phase("Running")
        made = await group(yard, PLUGINS)
        assert made["spec"] == {
            "minMember": 2,
            "scheduleTimeoutSeconds": 90,
            "minResources": {"cpu": "1", "memory": "2147483648"},
        }
        found = await pod(yard)
        assert found["spec"]["schedulerName"] == "together"
        assert found["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "train"

        path = PLUGINS.path(namespace, "train", "status")
        await yard.client.send(requests.patch(path, {"status": {"phase": "Running", "running": 2}}))
        await yard.client.send(requests.delete(PLUGINS.path(namespace, "train")))

        async def is_new() -> None:
            assert (await group(yard, PLUGINS))["metadata"]["uid"] != made["metadata"]["uid"]

        await eventually(is_new)
        for name in WORKERS:
            await yard.kubelet.finish(name)
        await yard.phase("Succeeded")
        await no_group(yard, PLUGINS)
        assert await yard.names() == WORKERS, "cleanPodPolicy is for pods"
        cost = writes(yard.operator)
        assert (cost["create podgroups"], cost["delete podgroups"], cost["patch podgroups"]) == (2, 1, 0)


async def test_pods_are_not_made_without_the_group_that_holds_them_together(
    control_plane: ControlPlane, namespace: str
) -> None:
    """They would join the stranger's."""
    async with control_plane.client() as client:
        await install(client, PLUGINS.group)
        stranger = {"apiVersion": f"{PLUGINS.group}/{PLUGINS.version}", "kind": "PodGroup"}
        body = {**stranger, "metadata": {"name": "train"}, "spec": {"minMember": 1}}
        await client.send(requests.create(PLUGINS.path(namespace), body))
    async with bench(control_plane, namespace, Script(), site=BY_PLUGINS) as yard:
        await yard.submit(tfjob(Worker=2))

        async def blocked() -> None:
            found = (await yard.status()).get("conditions", ())
            assert [c["reason"] for c in found if c["type"] == "Blocked"] == ["NameTaken"]

        await eventually(blocked)
        assert await yard.names() == set()
        await yard.client.send(requests.delete(PLUGINS.path(namespace, "train")))
        await yard.phase("Running")


async def test_a_group_that_another_operator_made_for_the_job_is_adopted(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await install(client, VOLCANO.group)
    async with bench(control_plane, namespace, Script(), site=BY_VOLCANO, may_write=lambda: writing) as yard:
        writing = False
        made = await yard.submit(tfjob(Worker=2))
        owner = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "name": "train",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        body = {
            "apiVersion": f"{VOLCANO.group}/{VOLCANO.version}",
            "kind": "PodGroup",
            "metadata": {"name": "train", "ownerReferences": [owner]},
            "spec": {"minMember": 2},
        }
        await yard.client.send(requests.create(VOLCANO.path(namespace), body))
        writing = True
        assert yard.operator is not None
        yard.operator.enqueue_all()

        async def adopted() -> None:
            labels = (await group(yard, VOLCANO))["metadata"].get("labels", {})
            assert labels.get("training.kubeflow.org/job-name") == "train"

        await eventually(adopted)
        await answer(yard, "Inqueue")
        await yard.phase("Running")


async def test_auto_takes_what_there_is_in_order_and_what_is_missing_is_named(
    control_plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with control_plane.client() as client:
        find = partial(gang_schedulers.find, client)
        await remove(client, VOLCANO.group, PLUGINS.group)
        assert await find("none") is None
        assert await find("auto") is None
        assert "not available in this cluster; pods start one by one" in caplog.text
        for name in ("core", "volcano", "scheduler-plugins"):
            with pytest.raises(
                gang_schedulers.NotServed, match=f"gang scheduler {name}: this cluster does not serve"
            ):
                await find(name)
        await install(client, PLUGINS.group)
        chart = "scheduler-plugins-scheduler"
        assert await find("auto") == Gang(by="scheduler-plugins", scheduler=chart, every=False)
        await install(client, VOLCANO.group)
        assert await find("auto") == Gang(by="volcano", scheduler="volcano", every=False)
        assert await find("scheduler-plugins", "mine") == Gang(by="scheduler-plugins", scheduler="mine")
        # training-operator's flag, alone
        assert await find("none", "Volcano") == Gang(by="volcano", scheduler="volcano")
        assert await find("none", "mine") == Gang(by="scheduler-plugins", scheduler="mine")


async def test_an_operator_that_misses_its_scheduler_says_so_in_one_line_and_ends(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await cluster.install(client)
    kubeconfig = control_plane.write_kubeconfig(control_plane.access(), f"gang-{namespace}")
    command = ("-m", "tfyard", "operator", "--kubeconfig", str(kubeconfig), "--gang-scheduler", "core")
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == 1
    assert said.decode() == (
        "tfyard: gang scheduler core: this cluster does not serve podgroups of scheduling.k8s.io/v1alpha2;"
        " turn on the feature gates GenericWorkload and GangScheduling of Kubernetes 1.36,"
        " or choose auto or none\n"
    )


async def test_the_flags_reach_the_jobs(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    options = ("--gang-scheduler", "auto", "--kueue-pod-groups")
    queued = tfjob(policy={"schedulingPolicy": {}}, Worker=2)
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    async with control_plane.client() as client, ScriptedKubelet(client, Script(), namespace) as kubelet:
        await cluster.install(client)
        await install(client, VOLCANO.group)
        async with operator(control_plane, namespace, tmp_path / "log", *options):
            yard = Bench(client, namespace, kubelet)
            await yard.submit(queued)
            await group(yard, VOLCANO)
            await answer(yard, "Inqueue")
            await yard.phase("Running")
            meta = (await pod(yard))["metadata"]
    assert meta["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "2"
    assert meta["annotations"]["scheduling.k8s.io/group-name"] == "train"
    assert "by volcano (scheduling.volcano.sh/v1beta1)" in (tmp_path / "log").read_text()


async def test_a_pod_that_kueue_holds_is_let_go_so_that_another_can_take_its_name(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Kueue's webhook gives each pod of a group a finalizer, and takes it when a replacement is there."""
    queued = tfjob(Worker={"replicas": 2, "restartPolicy": "ExitCode"})
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    async with bench(control_plane, namespace, Script(), site=Site(queues_pods=True)) as yard:
        await yard.submit(queued)
        await yard.phase("Running")
        first = await pod(yard)
        assert first["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] == "train"
        assert first["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "2"
        for name in WORKERS:
            held = {"metadata": {"finalizers": [KUEUE, "example.com/other"]}}
            await yard.client.send(requests.patch(requests.PODS.path(namespace, name), held, Patch.MERGE))
        await yard.kubelet.finish("train-worker-0", 137)

        async def is_let_go() -> None:
            assert (await pod(yard))["metadata"]["finalizers"] == ["example.com/other"]

        await eventually(is_let_go)
        others = {"metadata": {"finalizers": []}}
        await yard.client.send(requests.patch(requests.PODS.path(namespace, "train-worker-0"), others))

        async def is_replaced() -> None:
            assert (await pod(yard))["metadata"]["uid"] != first["metadata"]["uid"]

        await eventually(is_replaced)
        assert (await pod(yard))["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "2"
        await yard.kubelet.finish("train-worker-1", 1)
        await yard.phase("Failed")

        async def is_told() -> None:
            found = await yard.client.send(requests.get(requests.PODS.path(namespace)))
            notes = [each["metadata"]["annotations"] for each in found["items"]]
            assert [n.get("kueue.x-k8s.io/retriable-in-group") for n in notes].count("false") == 1

        await eventually(is_told)
