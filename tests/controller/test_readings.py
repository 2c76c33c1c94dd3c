"""What a person reads with kubectl, of a job in each of its states."""

import asyncio
from functools import partial

import pytest

from tests.controller.cluster import bench, tfjob
from tfyard.kube import requests
from tfyard.planner import waiting
from tfyard.testing import ControlPlane, Pod, Script, builders, eventually

pytestmark = pytest.mark.cluster

SCRIPTS = {
    "done": Script(run_for=0.2),
    "broken": Script(run_for=0.2, exit_codes=(3,)),
    "waiting": Script(waiting="ImagePullBackOff"),
}


def script(pod: Pod) -> Script:
    """By the job's name; `again` is killed once, and its next pod does not come up."""
    name, attempt = pod.metadata.name.split("-")[0], pod.metadata.annotations.get("tfyard.dev/attempt")
    if name == "again":
        return Script(run_for=0.2, exit_codes=(137,)) if attempt == "0" else SCRIPTS["waiting"]
    return SCRIPTS.get(name, Script())


TABLE = """
again     Restarting  0/1      1
done      Succeeded   2/2 1/1  0
broken    Failed      0/1, 1 failed  0
waiting   Created     0/2      0
runs      Running     2/2      0
rests     Suspended   0/2      0
blocked   Blocked     0/1      0
half      Running     1/2      0
invalid   Failed      0
"""
"""Table of kubectl without the age, with the columns that are filled."""


async def test_tables_descriptions_and_explanations_read_well(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 600.0)  # no job is Waiting yet, however slow the machine
    async with bench(control_plane, namespace, script) as yard:
        for name in ("blocked-worker-0", "half-worker-1"):
            await yard.client.send(requests.create(requests.PODS.path(namespace), builders.pod(name)))
        await yard.submit(tfjob("again", Worker={"restartPolicy": "ExitCode"}))
        await yard.submit(tfjob("done", Worker=2, PS=1))
        await yard.submit(tfjob("rests", policy={"suspend": True}, Worker=2))
        for name, workers in (("broken", 1), ("waiting", 2), ("runs", 2), ("blocked", 1), ("half", 2)):
            await yard.submit(tfjob(name, Worker=workers))
        invalid = tfjob("invalid", Worker=1)
        invalid["metadata"]["annotations"] = {"tfyard.dev/dialect": "tf9"}
        await yard.submit(invalid)
        kubectl = partial(asyncio.to_thread, control_plane.kubectl, "-n", namespace)

        async def table() -> None:
            rows = [
                line.split()[:-1] for line in (await kubectl("get", "tfjob", "--no-headers")).splitlines()
            ]
            assert sorted(rows) == sorted(line.split() for line in TABLE.split("\n") if line)

        await eventually(table)
        wide = {line.split()[0]: line for line in (await kubectl("get", "tfjob", "-o", "wide")).splitlines()}
        taken = "exists and is not this job's; delete or rename one of them"
        assert wide["blocked"].endswith(f"pod blocked-worker-0 {taken}")
        assert wide["half"].endswith(f"pod half-worker-1 {taken}")
        assert wide["broken"].endswith("worker-0 exited with code 3")
        assert "is invalid: metadata.annotations[tfyard.dev/dialect]: must be one of" in wide["invalid"]

        async def told() -> None:
            said = await kubectl("describe", "tfjob", "half")
            assert "Created pod: half-worker-0" in said, "what was done is told"

        await eventually(told)
        told = await kubectl("describe", "tfjob", "done")
        assert "Cluster: Dialect: tf2 Services: shared" in " ".join(told.split())
        assert "TFJobSucceeded" in told
        assert "\nmetadata" not in await kubectl("describe", "tfjob", "invalid"), "all in its column"

        for part in ("", ".conditions", ".replicaStatuses", ".tasks", ".cluster", ".failure"):
            assert "<no description>" not in await kubectl("explain", f"tfjob.status{part}")
        pod = await kubectl("explain", "tfjob.spec.tfReplicaSpecs.template.spec")
        assert "  containers\t<[]Object> -required-\n    List of containers belonging to the pod." in pod
