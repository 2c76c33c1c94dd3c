"""Pods on a node, without a job: commands, states, logs, deletion."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tfyard.node.containers import Objects
from tfyard.node.node import ContainerEnded, ContainerStarted, Node, NodeEvent
from tfyard.node.pod import Options, PodState
from tfyard.node.volumes import Volumes

POD = {
    "metadata": {"name": "j-worker-0", "uid": "u", "labels": {}, "annotations": {}},
    "spec": {
        "volumes": [
            {"name": "out", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "code", "hostPath": {"path": "/mycode"}},
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


def volumes(folder: Path) -> Volumes:
    return Volumes(folder / "volumes", {}, Objects())


def node(folder: Path, *, namespaces: bool) -> Node:
    made = Node(folder, {"PATH": "/bin"}, lambda _event: None)
    made.processes.namespaces = namespaces
    return made


def test_without_a_private_view_paths_become_the_directories_here(tmp_path: Path) -> None:
    here = node(tmp_path, namespaces=False)
    command = here.command(POD, CONTAINER, volumes(tmp_path))
    assert command.argv == ["python", "train.py", f"--out={tmp_path}/volumes/c/model"]
    assert command.env == {"PATH": "/bin", "LOGS": f"{tmp_path}/volumes/c/logs"}
    assert command.cwd == "/mycode/src"
    assert command.mounts == ()
    assert here.rewritten == {"/out": f"{tmp_path}/volumes/c", "/code": "/mycode"}


def test_with_a_private_view_paths_stay_the_clusters_own(tmp_path: Path) -> None:
    here = node(tmp_path, namespaces=True)
    command = here.command(POD, CONTAINER, volumes(tmp_path))
    assert command.argv == ["python", "train.py", "--out=/out/model"]
    assert command.cwd == "/code/src"
    assert command.mounts == ((f"{tmp_path}/volumes/c", "/out", False), ("/mycode", "/code", False))
    assert here.rewritten == {}


def pod(*command: str, uid: str = "u", policy: str = "Never", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "command": ["/bin/sh", "-c", *command]}
    metadata = {"name": "p", "namespace": "n", "uid": uid, "labels": {}, "annotations": {}}
    return {"metadata": metadata, "spec": {"restartPolicy": policy, "containers": [container], **spec}}


class Box:
    """A node with one pod or more, and what it told."""

    def __init__(self, folder: Path) -> None:
        self.told: list[NodeEvent] = []
        self.node, self.volumes = Node(folder, os.environ, self.told.append), volumes(folder)

    def create(self, manifest: dict[str, Any], **options: Any) -> None:
        chosen = Options(log_name=lambda container: f"n_p_{container}", **options)
        self.node.create(manifest, self.volumes, chosen)

    async def until(self, is_so: Any) -> list[PodState]:
        while not is_so(self.node.states()):
            self.node.change.clear()
            await asyncio.wait_for(self.node.change.wait(), 60)
        return self.node.states()

    def ends(self) -> list[ContainerEnded]:
        return [event for event in self.told if isinstance(event, ContainerEnded)]


@pytest.mark.processes
async def test_a_pod_ends_as_its_containers_do_and_stays_until_it_is_deleted(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.node:
        box.create(pod("echo out of ideas; exit 3"))
        (state,) = await box.until(lambda states: states[0].phase == "Failed")
        (container,) = state.containers
        box.node.delete("u")
        assert box.node.states() == []
    assert (container.exit_code, container.reason, container.message) == (3, "Error", "out of ideas")
    assert (state.uid, state.name, state.is_running, state.is_ready) == ("u", "p", False, False)
    (end,) = box.ends()
    assert (end.exit.code, end.is_stopped) == (3, False)
    assert end.started == ContainerStarted("u", "main", "n_p_main", 1, tmp_path / "logs" / "n_p_main.1.log")
    assert end.started.log.read_text() == "out of ideas\n"


@pytest.mark.processes
async def test_a_deleted_pod_is_gone_when_its_processes_are(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.node:
        box.create(pod("exec sleep 300"))
        await box.until(lambda states: states[0].is_ready)
        box.node.delete("u")
        assert [state.deleting is not None for state in box.node.states()] == [True]
        await box.until(lambda states: not states)
    assert [(end.exit.code, end.is_stopped) for end in box.ends()] == [(143, True)]


@pytest.mark.processes
@pytest.mark.parametrize("graces", [(0,), (None, 0), (0.2,)], ids=["at once", "then at once", "after it"])
async def test_who_ignores_the_request_to_stop_is_killed(
    tmp_path: Path, graces: tuple[float | None, ...]
) -> None:
    box = Box(tmp_path)
    async with box.node:
        box.create(pod("trap '' TERM; echo up; while :; do sleep 0.1; done"))
        while not (log := tmp_path / "logs" / "n_p_main.1.log").exists() or not log.read_text():
            await asyncio.sleep(0.05)
        for grace in graces:
            box.node.delete("u", grace)
        await box.until(lambda states: not states)
    assert [end.exit.code for end in box.ends()] == [137]


@pytest.mark.processes
async def test_an_evicted_pod_fails_with_the_reason_and_is_not_restarted(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.node:
        box.create(pod("exec sleep 300", policy="Always"))
        await box.until(lambda states: states[0].is_ready)
        box.node.evict("u", "Evicted")
        (state,) = await box.until(lambda states: states[0].phase == "Failed")
    assert (state.reason, state.is_running, state.deleting) == ("Evicted", False, None)
    assert [end.reason for end in box.ends()] == ["Evicted"]


@pytest.mark.processes
async def test_pods_of_one_name_are_told_apart_by_their_uid(tmp_path: Path) -> None:
    """One runs after the other: logs are counted on, scratch space is their own."""
    box = Box(tmp_path)
    scratch = {"volumes": [{"name": "s", "emptyDir": {}}]}
    async with box.node:
        for uid in ("one", "two"):
            made = pod(f"ls /s; touch /s/{uid}", uid=uid, **scratch)
            made["spec"]["containers"][0]["volumeMounts"] = [{"name": "s", "mountPath": "/s"}]
            box.create(made)
            await box.until(lambda states: all(not state.is_running for state in states))
        assert [state.phase for state in box.node.states()] == ["Succeeded", "Succeeded"]
        box.node.delete("one")
        assert [state.uid for state in box.node.states()] == ["two"]
    assert [end.started.start for end in box.ends()] == [1, 2]
    assert [end.started.log.read_text() for end in box.ends()] == ["", ""]


@pytest.mark.processes
@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
async def test_the_end_of_the_main_container_is_the_pods_and_the_others_are_stopped(
    tmp_path: Path, code: int, phase: str
) -> None:
    box, go = Box(tmp_path), tmp_path / "go"
    made = pod(f"while ! [ -e {go} ]; do sleep 0.05; done; exit {code}", policy="Never")
    others = {"proxy": "exec sleep 300", "broken": "exit 9"}
    made["spec"]["containers"] += [
        {"name": name, "command": ["/bin/sh", "-c", command]} for name, command in others.items()
    ]
    async with box.node:
        box.create(made, main="main")
        await box.until(lambda _: [end.started.container for end in box.ends()] == ["broken"])
        go.touch()
        (state,) = await box.until(lambda states: states[0].phase != "Running" and not states[0].is_running)
    assert state.phase == phase
    assert {end.started.container: end.is_stopped for end in box.ends()} == {
        "main": False,
        "proxy": True,
        "broken": False,
    }


@pytest.mark.processes
async def test_a_restart_in_place_that_is_not_allowed_is_not_made(tmp_path: Path) -> None:
    box = Box(tmp_path)
    asked: list[int] = []
    async with box.node:
        box.create(
            pod("exit 3", policy="OnFailure"), may_restart=lambda: asked.append(1) is None and len(asked) < 2
        )
        (state,) = await box.until(lambda _states: len(asked) == 2)
        await asyncio.sleep(0.1)
        assert (state.phase, state.restart_due, state.is_running) == ("Running", True, False)
        box.node.delete("u")
    assert [end.started.start for end in box.ends()] == [1, 2]
