"""Pods on a node, without a job: commands, states, logs, deletion."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tfyard.backends.local.node import (
    ContainerEnded,
    ContainerStarted,
    FileSources,
    LocalNode,
    LocalPod,
    NodeEvent,
    PodOptions,
)

POD = {
    "metadata": {"name": "j-worker-0", "uid": "u", "labels": {}, "annotations": {}},
    "spec": {
        "volumes": [
            {"name": "out", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "code", "hostPath": {"path": "/var/tmp"}},
        ]
    },
}
CONTAINER = {
    "name": "main",
    "command": ["python", "train.py", "--out=/out/model"],
    "workingDir": "/code/src",
    "env": [{"name": "LOGS", "value": "/out/logs"}],
    "volumeMounts": [{"name": "out", "mountPath": "/out"}, {"name": "code", "mountPath": "/code"}],
}


def node(folder: Path) -> LocalNode:
    return LocalNode(folder, {"PATH": "/bin"}, lambda _event: None, FileSources(folder / "volumes"))


def planned() -> dict[str, Any]:
    return {**POD, "spec": {**POD["spec"], "restartPolicy": "Never", "containers": [CONTAINER]}}


def test_without_a_private_view_paths_become_the_directories_here(tmp_path: Path) -> None:
    here = node(tmp_path)
    ((_, command),) = here.plan(planned(), private_view=False)
    assert command.argv == ["python", "train.py", f"--out={tmp_path}/volumes/c/model"]
    assert command.env == {"PATH": "/bin", "HOSTNAME": "j-worker-0", "LOGS": f"{tmp_path}/volumes/c/logs"}
    assert command.cwd == "/var/tmp/src"
    assert command.mounts == ()
    assert here.rewritten_paths() == {"/out": f"{tmp_path}/volumes/c", "/code": "/var/tmp"}


def test_with_a_private_view_paths_stay_the_clusters_own_and_nothing_is_made(tmp_path: Path) -> None:
    here = node(tmp_path)
    ((_, command),) = here.plan(planned(), private_view=True)
    assert command.argv == ["python", "train.py", "--out=/out/model"]
    assert command.cwd == "/code/src"
    assert command.mounts == ((f"{tmp_path}/volumes/c", "/out", False), ("/var/tmp", "/code", False))
    assert [path for _, path, _ in command.files] == ["/dev/termination-log"]
    assert here.rewritten_paths() == {}
    assert [*tmp_path.iterdir()] == []


def pod(*command: str, uid: str = "u", policy: str = "Never", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "command": ["/bin/sh", "-c", *command]}
    metadata = {"name": "p", "namespace": "n", "uid": uid, "labels": {}, "annotations": {}}
    return {"metadata": metadata, "spec": {"restartPolicy": policy, "containers": [container], **spec}}


class Box:
    """A node with one pod or more, and what it told."""

    def __init__(self, folder: Path) -> None:
        self.told: list[NodeEvent] = []
        self.node = LocalNode(folder, os.environ, self.told.append, FileSources(folder / "volumes"))

    def create(self, manifest: dict[str, Any], **options: Any) -> None:
        self.node.create(manifest, PodOptions(log_name=lambda container: f"n_p_{container}", **options))

    def pods(self) -> list[LocalPod]:
        return [*self.node.pods.values()]

    async def until(self, is_so: Any) -> list[LocalPod]:
        while not is_so(self.pods()):
            self.node.change.clear()
            await asyncio.wait_for(self.node.change.wait(), 60)
        return self.pods()

    def ends(self) -> list[ContainerEnded]:
        return [event for event in self.told if isinstance(event, ContainerEnded)]


def is_ready(local: LocalPod) -> bool:
    return all(each.is_ready for each in local.pod.state().containers.values())


@pytest.mark.processes
async def test_a_pod_ends_as_its_containers_do_and_stays_until_it_is_deleted(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.node:
        made = pod("echo out of ideas; exit 3")
        made["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError"
        box.create(made)
        (local,) = await box.until(lambda pods: pods[0].pod.is_over)
        state = local.pod.state()
        box.node.delete("u")
        assert box.pods() == []
    ended = state.containers["main"].ended
    assert ended is not None
    assert (ended.code, ended.why, ended.message) == (3, "Error", "out of ideas")
    assert (local.pod.uid, local.pod.name, local.is_running, state.phase) == ("u", "p", False, "Failed")
    (end,) = box.ends()
    assert (end.exit.code, end.is_stopped) == (3, False)
    assert end.started == ContainerStarted("u", "main", "n_p_main", 1, tmp_path / "logs" / "n_p_main.1.log")
    assert end.started.log.read_text() == "out of ideas\n"


@pytest.mark.processes
async def test_a_deleted_pod_is_gone_when_its_processes_are(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.node:
        box.create(pod("exec sleep 300"))
        await box.until(lambda pods: is_ready(pods[0]))
        box.node.delete("u")
        assert [local.deleting is not None for local in box.pods()] == [True]
        await box.until(lambda pods: not pods)
    assert [(end.exit.code, end.is_stopped) for end in box.ends()] == [(143, True)]


@pytest.mark.processes
@pytest.mark.parametrize("graces", [(0,), (None, 0), (0.2,)], ids=["at once", "then at once", "after it"])
async def test_a_process_that_ignores_the_request_to_stop_is_killed(
    tmp_path: Path, graces: tuple[float | None, ...]
) -> None:
    box = Box(tmp_path)
    async with box.node:
        box.create(pod("trap '' TERM; echo up; while :; do sleep 0.1; done"))
        while not (log := tmp_path / "logs" / "n_p_main.1.log").exists() or not log.read_text():
            await asyncio.sleep(0.05)
        for grace in graces:
            box.node.delete("u", grace)
        await box.until(lambda pods: not pods)
    assert [end.exit.code for end in box.ends()] == [137]


@pytest.mark.processes
async def test_a_pod_that_is_deleted_while_its_program_starts_goes(tmp_path: Path) -> None:
    box = Box(tmp_path)
    made = pod("exec sleep 300")
    made["spec"]["containers"][0]["stdin"] = True
    async with box.node:
        box.create(made)
        (main,) = box.pods()[0].pod.all.values()
        while main.log is None:
            await asyncio.sleep(0)
        assert main.process is None, "it is being started"
        box.node.delete("u")
        await box.until(lambda pods: not pods)


@pytest.mark.processes
async def test_an_evicted_pod_fails_with_the_reason_and_is_not_restarted(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.node:
        box.create(pod("exec sleep 300", policy="Always"))
        await box.until(lambda pods: is_ready(pods[0]))
        assert box.node.evict("u", "Evicted", 5) == 5
        assert box.node.evict("u", "Again") is None
        (local,) = await box.until(lambda pods: pods[0].pod.is_over)
    state = local.pod.state()
    assert (state.phase, state.reason, local.is_running, local.deleting) == ("Failed", "Evicted", False, None)
    assert [end.reason for end in box.ends()] == ["Evicted"]


@pytest.mark.processes
async def test_pods_of_one_name_differ_by_their_uid(tmp_path: Path) -> None:
    """One runs after the other: logs are counted on, scratch space is their own."""
    box = Box(tmp_path)
    scratch = {"volumes": [{"name": "s", "emptyDir": {}}]}
    async with box.node:
        for uid in ("one", "two"):
            made = pod(f"ls /s; touch /s/{uid}", uid=uid, **scratch)
            made["spec"]["containers"][0]["volumeMounts"] = [{"name": "s", "mountPath": "/s"}]
            box.create(made)
            await box.until(lambda pods: all(local.pod.is_over for local in pods))
        assert [local.pod.state().phase for local in box.pods()] == ["Succeeded", "Succeeded"]
        box.node.delete("one")
        assert [local.pod.uid for local in box.pods()] == ["two"]
    assert [end.started.start for end in box.ends()] == [1, 2]
    assert [end.started.log.read_text() for end in box.ends()] == ["", ""]


@pytest.mark.processes
async def test_a_restart_in_place_that_is_not_allowed_is_not_made(tmp_path: Path) -> None:
    box = Box(tmp_path)
    asked: list[str] = []
    async with box.node:
        box.create(
            pod("exit 3", policy="OnFailure"), may_restart=lambda name: asked.append(name) or len(asked) < 2
        )
        (local,) = await box.until(lambda _pods: len(asked) == 2)
        await asyncio.sleep(0.1)
        state = local.pod.state()
        assert (state.phase, state.containers["main"].restart_due) == ("Running", True)
        assert not local.is_running
        box.node.delete("u")
        await box.until(lambda pods: not pods)
    assert [end.started.start for end in box.ends()] == [1, 2]
    assert asked == ["main", "main"]


@pytest.mark.processes
async def test_a_pod_has_the_deadline_of_its_own(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.node:
        box.create(pod("exec sleep 300", activeDeadlineSeconds=1))
        (local,) = await box.until(lambda pods: pods[0].pod.is_over)
    state = local.pod.state()
    assert (state.phase, state.reason) == ("Failed", "DeadlineExceeded")
