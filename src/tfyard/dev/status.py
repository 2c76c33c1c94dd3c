"""`status`: what runs in a cluster, and how much of this machine it uses."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tfyard.dev.folder import BoxFolder, ReportedState
from tfyard.dev.processes import family, memory
from tfyard.errors import Invalid
from tfyard.kube import Client, Kind, KubeError, NotFound, Resource, kubeconfig, list_all, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.views.objects import NodeView
from tfyard.views.pods import PodView
from tfyard.views.tfjob_status import load_status

ANSWER_TIMEOUT = 10.0
FULL = 1_000_000
"""Bytes of free space below which etcd cannot write."""


class NodeReport(Struct, frozen=True, kw_only=True):
    name: str
    ready: bool
    allocatable: dict[str, str]


class JobReport(Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    phase: str


class Report(Struct, frozen=True, kw_only=True):
    name: str
    running: bool
    phase: str
    """Phase such as ready; not ready if the apiserver does not answer or a component has ended; stopped or failed
    if the cluster does not run."""
    message: str = ""
    pid: int | None = None
    server: str = ""
    kubernetes: str = ""
    kubeconfig: str = ""
    context: str = ""
    nodes: list[NodeReport] = []
    jobs: list[JobReport] = []
    pods: dict[str, int] = {}
    """Phase -> number of pods."""
    restarts: dict[str, int] = {}
    notes: list[str] = []
    memory: int = 0
    disk: int = 0
    free: int = 0
    """Free bytes on the disk."""
    processes: int = 0
    folder: str
    logs: str


def report(folder: BoxFolder) -> Report:
    pid, state = folder.holder(), folder.state()
    if pid is None:
        return _asleep(folder, state)
    return _awake(folder, pid, state or ReportedState(phase="starting"))


def _asleep(folder: BoxFolder, state: ReportedState | None) -> Report:
    phase = "failed" if state is not None and state.phase in ("failed", "ready") else "stopped"
    killed = "it was killed, or the machine restarted" if state is not None and state.phase == "ready" else ""
    message = (state.message if state is not None else "") or killed
    return Report(**_place(folder), running=False, phase=phase, message=message)


def _awake(folder: BoxFolder, pid: int, state: ReportedState) -> Report:
    processes = family(pid)
    fields: dict[str, Any] = {
        **_place(folder),
        "phase": state.phase,
        "message": state.message,
        "pid": pid,
        "kubernetes": state.kubernetes,
        "restarts": state.restarts,
        "notes": state.notes,
        "memory": memory(processes),
        "processes": len(processes),
    }
    if state.phase == "ready":
        fields |= cluster(folder)
    if state.ended:
        fields |= {"phase": "not ready", "message": state.trouble}
    if fields["phase"] == "not ready" and fields["free"] < FULL:
        fields["message"] = f"its disk is full; {fields['message']}"
    return Report(**fields, running=True)


def _place(folder: BoxFolder) -> dict[str, Any]:
    where = {"name": folder.name, "folder": str(folder.path), "logs": str(folder.logs)}
    free = shutil.disk_usage(folder.path).free if folder.path.exists() else 0
    return {**where, "disk": sum(_sizes(folder.path)), "free": free}


def _sizes(folder: Path) -> Iterator[int]:
    """Sizes of all files in blocks, because logs may have holes; files may be removed meanwhile."""
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(f"{root}/{name}").st_blocks * 512
            except FileNotFoundError:
                continue


def cluster(folder: BoxFolder) -> dict[str, Any]:
    """Report of the apiserver. A cluster whose apiserver does not answer is not ready."""
    access = kubeconfig.load({}, str(folder.kubeconfig))
    about = {"server": access.cluster.server, "kubeconfig": str(folder.kubeconfig), "context": folder.name}
    try:
        objects = asyncio.run(_objects(Client(access)))
        if not any(node.ready for node in objects["nodes"]):
            objects |= {"phase": "not ready", "message": "its node is not ready"}
        return {**about, **objects}
    except TimeoutError:
        silent = f"the apiserver does not answer within {ANSWER_TIMEOUT:.0f} s"
        return {**about, "phase": "not ready", "message": silent}
    except KubeError as problem:
        return {**about, "phase": "not ready", "message": f"the apiserver does not answer: {problem}"}


async def _objects(client: Client) -> dict[str, Any]:
    async with asyncio.timeout(ANSWER_TIMEOUT), client:
        jobs = [await _list(client, each) for each in (TFJOBS, OLD_TFJOBS)]
        nodes = await list_all(client, Kind(NodeView), requests.NODES.path())
        pods = await list_all(client, Kind(PodView), requests.PODS.path(), {})
    phases = [pod.status.phase for pod in pods.items]
    return {
        "nodes": [
            NodeReport(name=each.name, ready=each.is_ready, allocatable=each.status.allocatable)
            for each in nodes.items
        ],
        "pods": {phase: phases.count(phase) for phase in sorted(set(phases))},
        "jobs": [_job(job) for of_group in jobs for job in of_group],
    }


async def _list(client: Client, resource: Resource) -> list[Any]:
    try:
        return list((await client.send(requests.get(resource.path())))["items"])
    except NotFound:  # no CRD of TFJob: --no-operator
        return []


def _job(job: dict[str, Any]) -> JobReport:
    try:
        phase = load_status(job).phase
    except Invalid:
        phase = "Unknown"
    return JobReport(namespace=job["metadata"]["namespace"], name=job["metadata"]["name"], phase=phase)
