"""Another release takes over, and back again, while jobs of every kind run: nothing twice, nothing lost."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from tests.controller import test_gang as gangs
from tests.controller.cluster import Manifest, install, tfjob
from tests.controller.faults import OperatorProcess, Stage, stage
from tests.controller.test_faults_leadership import stands_by, taken_over
from tests.controller.test_old_jobs import CONTAINER, OLD
from tests.last_release import known_to
from tfyard.formats.crd.status import missing_memory
from tfyard.kube import Client, Resource, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.testing import ControlPlane, builders, eventually

pytestmark = pytest.mark.cluster

BETA = Resource("kubeflow.org", "v1beta2", "tfjobs")
V1BETA2 = {
    "apiVersion": "kubeflow.org/v1beta2",
    "kind": "TFJob",
    "metadata": {"name": "beta"},
    "spec": {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [CONTAINER]}}}}},
}
RETRIED = {"replicas": 1, "restartPolicy": "ExitCode"}
IN_PLACE = {"replicas": 2, "restartPolicy": "OnFailure"}
JOBS = (
    tfjob("running", Chief=1, Worker=2, PS=1, Evaluator=1),
    tfjob("done", Worker=1),
    tfjob("failed", {"backoffLimit": 1}, Worker=RETRIED),
    tfjob("restarted", Worker={**RETRIED, "replicas": 2}),
    tfjob("in-place", Worker=IN_PLACE),
    tfjob("waits", Worker=RETRIED),
    tfjob("suspended", {"suspend": True}, Worker=1),
    tfjob("gang", {"schedulingPolicy": {"minAvailable": 2}}, Worker=2),
    tfjob("limited", {"activeDeadlineSeconds": 3600}, Worker=1),
)
FAILURES = (
    ("done-worker-0", 0),
    ("failed-worker-0", 137),
    ("failed-worker-0", 137),
    ("restarted-worker-1", 137),
    ("in-place-worker-0", 1),
    ("waits-worker-0", 137),
    ("waits-worker-0", 137),
)
PHASES = {
    **dict.fromkeys(("running", "restarted", "in-place", "gang", "limited", "beta", "train"), "Running"),
    "done": "Succeeded",
    "failed": "Failed",
    "waits": "Restarting",
    "suspended": "Suspended",
}
"""The jobs when the other release takes over; `train` is a job of 2017."""
STEADY = PHASES.keys() - {"waits"}
"""Those whose status has no reason to change with time."""
LAST = (
    *(f"{name}-worker-0" for name in ("restarted", "in-place", "waits", "suspended", "gang", "beta")),
    "running-chief-0",
    "train-master-0",
)
"""The pods whose success is that of their jobs."""
ENDS = {**dict.fromkeys(PHASES, "Succeeded"), "failed": "Failed", "limited": "Failed"}


class Release:
    """A release of tfyard, by its interpreter, on this scene."""

    def __init__(self, python: str, scene: Stage, kubeconfig: Path) -> None:
        self.python, self._scene, self._kubeconfig = python, scene, kubeconfig
        self.schema: Manifest = {}
        """Of the status, as its CRD has it."""

    async def install_crds(self) -> None:
        command = [self.python, "-m", "tfyard", "crds", "--versions=all"]
        printed = await asyncio.to_thread(subprocess.check_output, command, timeout=120)
        definitions = list(yaml.safe_load_all(printed))
        assert [missing_memory(each) for each in definitions] == [[], []], (
            "this release runs on the older CRDs"
        )
        version = next(each for each in definitions[0]["spec"]["versions"] if each["storage"])
        self.schema = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        await builders.install_crds(self._scene.client, *definitions)

    @property
    def forgets_excuses(self) -> bool:
        """Whether it is older than `excused`: restarts in place that cost nothing count again."""
        tasks: Manifest = self.schema["properties"]["tasks"]["additionalProperties"]["properties"]
        return "excused" not in tasks

    @asynccontextmanager
    async def operator(self, log: Path) -> AsyncIterator[OperatorProcess]:
        """Ready, as in a rolling update before the old one is told to end."""
        options = (self._kubeconfig, self._scene.namespace, log, "--gang-scheduler=auto")
        made = OperatorProcess(*options, python=self.python)
        try:
            await stands_by(log)
            yield made
        finally:
            made.kill()


def declared(value: object, schema: Manifest) -> object:
    """The fields of a status that this schema names."""
    if isinstance(value, dict):
        parts, rest = schema.get("properties", {}), schema.get("additionalProperties")
        known = {key: parts.get(key, rest) for key in value}
        return {key: declared(value[key], part) for key, part in known.items() if isinstance(part, dict)}
    if isinstance(value, list):
        return [declared(each, schema.get("items", {})) for each in value]
    return value


@asynccontextmanager
async def with_gangs(client: Client) -> AsyncIterator[None]:
    """With scheduler-plugins' PodGroups and no others, and afterwards with our own CRDs of today."""
    await gangs.remove(client, *gangs.definitions())
    await gangs.install(client, gangs.PLUGINS.group)
    try:
        yield
    finally:
        await gangs.remove(client, gangs.PLUGINS.group)
        await install(client)


async def begin(scene: Stage) -> dict[str, Manifest]:
    """Jobs of every kind, each in its phase; their statuses."""
    for manifest in JOBS:
        await scene.submit(manifest)
    await scene.client.send(requests.create(BETA.path(scene.namespace), V1BETA2))
    await scene.client.send(requests.create(OLD_TFJOBS.path(scene.namespace), OLD))
    for pod, code in FAILURES:
        await scene.kubelet.finish(pod, code)

    async def look() -> dict[str, Manifest]:
        found = await statuses(scene)
        assert {name: status.get("phase") for name, status in found.items()} == PHASES
        assert found["in-place"]["restarts"] == 1
        return found

    return await eventually(look)


async def statuses(scene: Stage) -> dict[str, Manifest]:
    lists = [
        await scene.client.send(requests.get(each.path(scene.namespace))) for each in (TFJOBS, OLD_TFJOBS)
    ]
    items = [item for each in lists for item in each["items"]]
    return {item["metadata"]["name"]: item.get("status") or {} for item in items}


async def hand_over(scene: Stage, old: OperatorProcess, changes: int) -> None:
    """From one leader to the next; when this returns, that one has reconciled every job."""
    old.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(old.process.wait, 30) == 0
    await taken_over(scene, changes)
    name = f"probe-{changes}"
    await scene.submit(tfjob(name, Worker=1))
    await scene.kubelet.finish(f"{name}-worker-0")
    await scene.phase("Succeeded", name)
    await scene.client.send(requests.delete(TFJOBS.path(scene.namespace, name)))
    await scene.client.send(requests.delete(requests.PODS.path(scene.namespace, f"{name}-worker-0"), grace=0))


async def kept_all(scene: Stage, before: dict[str, Manifest], schema: Manifest, jobs: set[str]) -> None:
    """Whatever a release declares of a status is as it was."""
    now = await statuses(scene)
    for name in jobs:
        was = declared(before[name], schema)
        assert known_to(was, now[name]) == was, name


async def finish(scene: Stage, waited_until: str) -> dict[str, Manifest]:
    """Each job comes to its end, and those that had ended stay so. The deadline counts from the first start."""
    await scene.patch({"spec": {"runPolicy": {"suspend": False}}}, "suspended")
    await scene.patch({"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}}, "limited")
    for pod in LAST:
        await scene.kubelet.finish(pod)

    async def look() -> dict[str, Manifest]:
        found = await statuses(scene)
        assert {name: status.get("phase") for name, status in found.items()} == ENDS
        return found

    ended = await eventually(look)
    assert ended["limited"]["failure"]["cause"] == "DeadlineExceeded"
    assert scene.chronicle.twice == []
    path = requests.PODS.path(scene.namespace, "waits-worker-0")
    assert (await scene.client.send(requests.get(path)))["metadata"]["creationTimestamp"] >= waited_until
    return ended


def waits_until(found: dict[str, Manifest]) -> str:
    return str(found["waits"]["tasks"]["Worker"]["backoff"]["0"]["until"])


@asynccontextmanager
async def two_releases(
    plane: ControlPlane, namespace: str, last_release: str
) -> AsyncIterator[tuple[Stage, Release, Release]]:
    """The last one, whose CRDs are installed, and this one."""
    async with stage(plane, namespace) as scene, with_gangs(scene.client):
        old, new = (Release(python, scene, plane.kubeconfig) for python in (last_release, sys.executable))
        await old.install_crds()
        yield scene, old, new


async def test_an_upgrade_touches_no_pod_and_forgets_nothing_of_any_job(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, last_release: str
) -> None:
    async with two_releases(control_plane, namespace, last_release) as (scene, old, new):
        async with old.operator(tmp_path / "old") as leader:
            before = await begin(scene)
            pods = dict(scene.chronicle.pods)
            await new.install_crds()
            async with new.operator(tmp_path / "new"):
                await hand_over(scene, leader, 1)
                await kept_all(scene, before, old.schema, STEADY)
                made = {scene.chronicle.pods[uid] for uid in scene.chronicle.pods.keys() - pods.keys()}
                assert made <= {("probe-1-worker-0", 0), ("waits-worker-0", 2)}
                ended = await finish(scene, waits_until(before))
        restarts = {name: status["restarts"] for name, status in ended.items() if status.get("restarts")}
        assert restarts == {"failed": 1, "restarted": 1, "in-place": 1, "waits": 2}
        started = {name: status["startTime"] for name, status in before.items() if "startTime" in status}
        assert started.items() <= {name: status["startTime"] for name, status in ended.items()}.items()


@pytest.mark.long
async def test_a_downgrade_touches_no_pod_and_forgets_nothing_that_the_older_release_knows(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, last_release: str
) -> None:
    async with two_releases(control_plane, namespace, last_release) as (scene, old, new):
        async with old.operator(tmp_path / "old") as first:
            await begin(scene)
            await new.install_crds()
            async with new.operator(tmp_path / "new") as second:
                await hand_over(scene, first, 1)
                before = await go_on(scene)
                await old.install_crds()
                await kept_all(scene, before, new.schema, STEADY)
                pods = dict(scene.chronicle.pods)
                async with old.operator(tmp_path / "old-again"):
                    await hand_over(scene, second, 2)
                    forgotten = {"in-place"} if old.forgets_excuses else set()
                    await kept_all(scene, before, old.schema, STEADY - forgotten)
                    made = {scene.chronicle.pods[uid] for uid in scene.chronicle.pods.keys() - pods.keys()}
                    assert made <= {("probe-2-worker-0", 0), ("waits-worker-0", 3)}
                    ended = await finish(scene, waits_until(before))
        restarts = {name: status["restarts"] for name, status in ended.items() if status.get("restarts")}
        assert restarts == {"failed": 1, "restarted": 2, "in-place": 1 + len(forgotten), "waits": 3}


async def go_on(scene: Stage) -> dict[str, Manifest]:
    """What happens under the new release: failures, and a task that is taken away, for which its peer fails; the
    statuses after it."""
    await scene.kubelet.finish("waits-worker-0", 137)
    await scene.kubelet.finish("restarted-worker-1", 137)
    await scene.kubelet.preempt("in-place-worker-1")
    await scene.kubelet.finish("in-place-worker-0", 1)

    async def look() -> dict[str, Manifest]:
        found = await statuses(scene)
        assert {name: status.get("phase") for name, status in found.items()} == PHASES
        assert (found["restarted"]["restarts"], found["waits"]["restarts"]) == (2, 3)
        assert found["in-place"]["disruption"]["recovered"]
        assert (found["in-place"]["restarts"], len(found["in-place"]["tasks"]["Worker"]["excused"])) == (1, 1)
        return found

    return await eventually(look)
