"""Measures `tfyard get` and `why` beside `kubectl get tfjobs`, as ratios of wall time on one control plane: of one
job, and of a list of 1,000 jobs of 4 tasks each.

The best of several counts, in turns: a busy machine slows all of them alike.

python bench/terminal.py [ROUNDS [JOBS]]
"""

import asyncio
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane, builders

AT = "2026-11-16T03:00:00Z"
TARGETS = {"one": 2.5, "why": 2.5, "many": 1.5}


def condition(type_: str, message: str) -> dict[str, Any]:
    times = {"lastUpdateTime": AT, "lastTransitionTime": AT}
    return {"type": type_, "status": "True", "reason": f"TFJob{type_}", "message": message, **times}


def job(name: str) -> dict[str, Any]:
    container = {
        "name": "tensorflow",
        "image": "example/mnist:1",
        "command": ["python", "train.py", "--steps", "1000"],
        "resources": {"limits": {"nvidia.com/gpu": "1", "memory": "8Gi"}},
        "volumeMounts": [{"name": "out", "mountPath": "/out"}],
    }
    volumes = [{"name": "out", "persistentVolumeClaim": {"claimName": "out"}}]
    template = {"spec": {"containers": [container], "volumes": volumes}}
    roles = {"Chief": 1, "Worker": 2, "PS": 1}
    specs = {role: {"replicas": count, "template": template} for role, count in roles.items()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": specs},
    }


def status() -> dict[str, Any]:
    ready = {"Chief": "1/1", "Worker": "2/2", "PS": "1/1"}
    return {
        "phase": "Running",
        "startTime": AT,
        "conditions": [condition("Created", "TFJob is created."), condition("Running", "TFJob is running.")],
        "replicaStatuses": {role: {"active": 1, "ready": text} for role, text in ready.items()},
    }


def fill(plane: ControlPlane, namespace: str, count: int) -> None:
    def some(first: int) -> None:
        with SyncClient(plane.admin) as client:
            for index in range(first, count, 4):
                made = client.send(requests.create(TFJOBS.path(namespace), job(f"job-{index:04}")))
                path = TFJOBS.path(namespace, made["metadata"]["name"], "status")
                client.send(requests.replace(path, {**made, "status": status()}))

    with SyncClient(plane.admin) as client:
        client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": namespace}}))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(some, range(4)))


def wall_time(command: list[str], folder: str) -> float:
    """Wall time of a command, with compiled files as an installed command has them."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
    if done.returncode not in (0, 3, 4):
        raise SystemExit(f"{command}: {done.stderr.decode()}")
    return time.perf_counter() - start


def tfyard(plane: ControlPlane, *args: str) -> list[str]:
    code = "from tfyard.__main__ import main; main()"
    return [sys.executable, "-c", code, *args, "--kubeconfig", str(plane.kubeconfig)]


def measure(plane: ControlPlane, rounds: int) -> dict[str, float]:
    commands = {
        "kubectl one": plane.kubectl_command("get", "tfjobs.kubeflow.org", "-n", "one"),
        "kubectl many": plane.kubectl_command("get", "tfjobs.kubeflow.org", "-n", "many"),
        "one": tfyard(plane, "get", "-n", "one"),
        "many": tfyard(plane, "get", "-n", "many"),
        "why": tfyard(plane, "why", "job-0000", "-n", "one"),
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, command in commands.items():
            best[name] = min(best[name], wall_time(command, str(plane.folder)))
    return best


async def install(plane: ControlPlane) -> None:
    async with plane.client() as client:
        await builders.install_crds(client)


def main() -> None:
    rounds, count = (*map(int, sys.argv[1:]), *(10, 1000)[len(sys.argv) - 1 :])
    with ControlPlane() as plane:
        asyncio.run(install(plane))
        fill(plane, "one", 1)
        fill(plane, "many", count)
        best = measure(plane, rounds)
    for name, target in TARGETS.items():
        kubectl = best["kubectl many" if name == "many" else "kubectl one"]
        label = {"one": "get, 1 job", "why": "why JOB", "many": f"get, {count:,} jobs x 4 tasks"}[name]
        ratio = best[name] / kubectl
        print(
            f"tfyard {label}: {best[name] * 1000:.0f} ms, {ratio:.1f}x kubectl get's {kubectl * 1000:.0f} ms "
            f"(target {target}x) {'ok' if ratio <= target else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
