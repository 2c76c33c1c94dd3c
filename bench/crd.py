"""Measures what a TFJob costs the apiserver: `python bench/crd.py [--upstream PATH] [DEFINITION.yaml ...]`.

It measures CPU of the apiserver per create and per status PUT, for tfyard's CRD with one, two and all versions
served, for training-operator's if its path is given (manifests/base/crds/kubeflow.org_tfjobs.yaml of its
repository), and for any other CRD of TFJob. Each has a control plane of its own, because a large heap makes the
garbage collector of the apiserver run seldom and long. All of them run at once and are measured in turn, so that
other work of the machine affects all of them alike. Only the ratios matter.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the tests' small helpers
sys.path.insert(0, str(Path(__file__).resolve().with_name("operator")))

from process import Measured
from scenarios import UNREAD, settled

from tfyard.formats.crd.documents import crds
from tfyard.kube import Client, Request, requests
from tfyard.kube.requests import TFJOBS
from tfyard.model import Cluster, Condition, Manifest, RoleStatus, Status
from tfyard.testing import ControlPlane, builders
from tfyard.views.tfjob_status import dump_status, load_status

WRITES, PARALLEL, ROUNDS = 500, 8, 5
SERVED = (("v1",), ("v1", "v1beta1"), ("v1", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1"))


class Costs(msgspec.Struct):
    """Milliseconds of CPU per write, one figure per round."""

    creates: list[float]
    statuses: list[float]


def template(image: str, *command: str) -> Manifest:
    container = {
        "name": "tensorflow",
        "image": image,
        "command": list(command),
        "env": [{"name": "DATA", "value": "/data"}, {"name": "TF_CPP_MIN_LOG_LEVEL", "value": "2"}],
        "resources": {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": 1}},
        "ports": [{"name": "tfjob-port", "containerPort": 2222}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return {
        "metadata": {"labels": {"team": "vision"}},
        "spec": {"containers": [container], "volumes": [volume]},
    }


def tfjob(name: str) -> Manifest:
    worker = template("example/train:1", "python", "train.py", "--epochs=10")
    roles = {
        "Chief": {"replicas": 1, "restartPolicy": "OnFailure", "template": worker},
        "Worker": {"replicas": 4, "restartPolicy": "OnFailure", "template": worker},
        "PS": {"replicas": 2, "restartPolicy": "OnFailure", "template": worker},
    }
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 3, "ttlSecondsAfterFinished": 3600}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "labels": {"team": "vision"}},
        "spec": {"runPolicy": policy, "tfReplicaSpecs": roles},
    }


def status(name: str) -> Manifest:
    """As our operator writes it once all tasks run."""
    now = load_status({"status": {"startTime": "2026-01-01T00:00:00Z"}}).start_time
    conditions = (
        Condition("Created", "True", "TFJobCreated", f"TFJob {name} is created.", now, now),
        Condition("Running", "True", "TFJobRunning", f"TFJob bench/{name} is running.", now, now),
    )
    tasks = {"Chief": 1, "Worker": 4, "PS": 2}
    labels = f"training.kubeflow.org/job-name={name},training.kubeflow.org/replica-type="
    roles = {
        role: RoleStatus(active=count, ready=f"{count}/{count}", selector=labels + role.lower())
        for role, count in tasks.items()
    }
    whole = Status(
        phase="Running",
        conditions=conditions,
        replica_statuses=roles,
        cluster=Cluster(services="shared", dialect="tf2"),
        start_time=now,
        observed_generation=1,
    )
    return dump_status(whole)


# The definitions.


def serving(versions: tuple[str, ...]) -> Manifest:
    return crds([f"kubeflow.org/{version}" for version in versions])[0]


def definitions(arguments: argparse.Namespace) -> dict[str, Manifest]:
    files = [("upstream's", arguments.upstream)] if arguments.upstream else []
    files += [(path.stem, path) for path in arguments.definitions]
    read = {name: yaml.load(path.read_bytes(), yaml.CSafeLoader) for name, path in files}
    ours = {} if arguments.others_only else {f"ours, {' '.join(some)}": serving(some) for some in SERVED}
    return {**read, **ours}


# The measurement.


async def in_parallel(items: Iterable[Any], work: Callable[[Any], Awaitable[Any]]) -> list[Any]:
    queue, done = iter(items), []

    async def worker() -> None:
        for item in queue:
            done.append(await work(item))

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))
    return done


class MeasuredPlane(msgspec.Struct, frozen=True):
    """A control plane with one CRD."""

    client: Client
    server: Measured

    async def cost(self, writes: int) -> tuple[float, float]:
        """Milliseconds per create and per status PUT."""
        namespace = await builders.create_namespace(self.client, "bench")
        jobs = [requests.create(TFJOBS.path(namespace), tfjob(f"train-{n}")) for n in range(writes)]
        before = self.server.cpu()
        made = await in_parallel(jobs, self.client.send)
        created = self.server.cpu()
        await in_parallel([put(job) for job in made], lambda request: self.client.send(request, UNREAD))
        written = self.server.cpu()
        await self.client.send(requests.delete(TFJOBS.path(namespace)))
        return (created - before) / writes * 1000, (written - created) / writes * 1000


def put(job: Manifest) -> Request:
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    return requests.replace(TFJOBS.path(namespace, name, "status"), {**job, "status": status(name)})


@asynccontextmanager
async def plane_with(definition: Manifest) -> AsyncIterator[MeasuredPlane]:
    async with ControlPlane() as plane, plane.client() as client:
        await builders.install_crds(client, definition)
        yield MeasuredPlane(client, Measured(plane.apiserver.pid))


async def measure(chosen: dict[str, Manifest], rounds: int, writes: int) -> dict[str, Costs]:
    costs = {name: Costs([], []) for name in chosen}
    async with AsyncExitStack() as stack:
        planes = {name: await stack.enter_async_context(plane_with(chosen[name])) for name in chosen}
        for turn in range(rounds + 1):
            for name in list(chosen) if turn % 2 else list(reversed(chosen)):
                await settled(planes[name].server)
                create, write = await planes[name].cost(writes)
                if turn:  # the first is a warm-up
                    costs[name].creates.append(create)
                    costs[name].statuses.append(write)
    return costs


def show(costs: dict[str, Costs], chosen: dict[str, Manifest]) -> None:
    """Print the figures; a ratio is the median of the rounds' ratios to the first definition."""
    base = next(iter(costs.values()))
    print(f"{'':52}{'KiB':>5}{'create, ms':>21}{'ratio':>7}{'status PUT, ms':>21}{'ratio':>7}")
    for name, cost in costs.items():
        size = len(msgspec.json.encode(chosen[name])) // 1024
        figures = figure(cost.creates, base.creates) + figure(cost.statuses, base.statuses)
        print(f"{name:52}{size:>5}{figures}")


def figure(costs: list[float], base: list[float]) -> str:
    ratio = median(mine / other for mine, other in zip(costs, base, strict=True))
    spread = f"{median(costs):.2f} ({min(costs):.2f}-{max(costs):.2f})"
    return f"{spread:>21}{ratio:>7.2f}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a TFJob costs the apiserver.")
    parser.add_argument("definitions", nargs="*", type=Path, help="more definitions of TFJob, as YAML files")
    parser.add_argument(
        "--upstream", type=Path, metavar="PATH", help="training-operator's: the base of ratios"
    )
    parser.add_argument("--others-only", action="store_true", help="leave tfyard's out")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="number of rounds, after a first one that does not count"
    )
    parser.add_argument("--writes", type=int, default=WRITES, help="creates and status PUTs in each round")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    chosen = definitions(arguments)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show(asyncio.run(measure(chosen, arguments.rounds, arguments.writes)), chosen)
    print(f"load after: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
