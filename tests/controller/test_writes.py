"""What a job costs the apiserver over its whole life: few writes, few bytes."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.controller.cluster import Bench, install, operating, tfjob
from tests.controller.prometheus import parse
from tfyard.backends.kubernetes.store import LONGEST_UNQUIET, QUIET
from tfyard.controller.operator import Operator
from tfyard.kube import requests
from tfyard.model.names import REPLICA_INDEX
from tfyard.testing import ControlPlane, Script, ScriptedKubelet
from tfyard.testing.script import Pod, Scripts

pytestmark = pytest.mark.cluster

LARGE = 200
BYTES_PER_POD = 3072
"""Bytes of a stored pod, about 1,000 of them the server's defaults; with the list of 200 tasks it would be
12,000."""
TOGETHER = Script(start_after=1.0)
"""Script of pods that start at the same moment, even on a busy machine, and end on request."""


EXPECTED = 20.0
"""Seconds that the life of a large job takes at most; where it takes longer, counts that change are written now
and then."""


@asynccontextmanager
async def measured(
    plane: ControlPlane, namespace: str, script: Scripts = TOGETHER
) -> AsyncIterator[tuple[Bench, Operator]]:
    """An operator whose own counter of writes can be read."""
    async with plane.client() as client, plane.client() as other:
        await install(client)
        async with (
            ScriptedKubelet(other, script, namespace) as kubelet,
            operating(client, namespace) as operator,
        ):
            yield Bench(client, namespace, kubelet), operator


def writes(operator: Operator) -> Counter[str]:
    samples = parse(operator.metrics.render())["tfyard_api_writes_total"].samples
    return Counter({f"{dict(of)['verb']} {dict(of)['resource']}": int(n) for (_, of), n in samples.items()})


async def writes_of_life(yard: Bench, operator: Operator) -> Counter[str]:
    """From creation to success, and what is said after that."""
    await yard.phase("Running")
    await asyncio.gather(*(yard.kubelet.finish(name) for name in await yard.names()))
    await yard.phase("Succeeded")
    return await settled_writes(operator)


async def settled_writes(operator: Operator) -> Counter[str]:
    """When there are no more for a while."""
    before, now = Counter[str](), writes(operator)
    while before != now:
        await asyncio.sleep(1)
        before, now = now, writes(operator)
    return now


async def test_a_job_of_four_costs_its_pods_one_service_and_at_most_six_more(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with measured(control_plane, namespace) as (yard, operator):
        await yard.submit(tfjob(Worker=3, PS=1))
        cost = await writes_of_life(yard, operator)
    assert cost.pop("create pods") == 4
    assert cost.pop("create services") == 1
    assert cost.keys() == {"update tfjobs/status", "create events"}, cost
    assert cost.total() <= 6, cost


async def test_a_job_of_one_has_no_service_and_two_statuses_if_its_pod_starts_soon(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with measured(control_plane, namespace) as (yard, operator):
        made = await yard.submit(tfjob(Worker=1))
        assert (await yard.status())["phase"] == "Pending", "the CRD says it until the operator does"
        cost, status = await writes_of_life(yard, operator), await yard.status()
    ended = [(each["type"], each["status"]) for each in status["conditions"]]
    assert ended == [("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    times = [each["lastTransitionTime"] for each in status["conditions"]]
    assert times == sorted(times)
    began = made["metadata"]["creationTimestamp"]
    assert began <= status["startTime"] <= times[0] < times[1], "the pod started a second later"
    assert cost.pop("create pods") == 1
    assert cost.pop("update tfjobs/status") == 2, "created and running, succeeded"
    assert cost.pop("create events") == 2, "pod created, job succeeded"
    assert not cost


async def test_a_large_job_whose_pods_come_and_go_one_by_one_costs_eight_more_than_its_pods(
    control_plane: ControlPlane, namespace: str
) -> None:
    def one_by_one(pod: Pod) -> Script:
        late = 3.0 * int(pod.metadata.labels[REPLICA_INDEX]) / LARGE
        return Script(start_after=1.0 + late, run_for=5.0)

    async with measured(control_plane, namespace, one_by_one) as (yard, operator):
        began = time.monotonic()
        await yard.submit(tfjob(Worker=LARGE))
        await yard.phase("Succeeded")
        cost, took = await settled_writes(operator), time.monotonic() - began
    assert cost.pop("create pods") == LARGE
    late = max(0.0, took - EXPECTED) / (QUIET * LONGEST_UNQUIET)
    assert cost.total() <= 8 + late, f"{cost}, in {took} s"


async def test_an_idle_operator_writes_nothing(control_plane: ControlPlane, namespace: str) -> None:
    async with measured(control_plane, namespace) as (yard, operator):
        await yard.submit(tfjob(Worker=1))
        before = await writes_of_life(yard, operator)
        operator.enqueue_all()
        await asyncio.sleep(1)
        assert await settled_writes(operator) == before


async def test_events_give_way_while_jobs_are_looked_at(control_plane: ControlPlane, namespace: str) -> None:
    async with measured(control_plane, namespace) as (yard, operator):
        operator.events.is_busy = lambda _: True
        await yard.submit(tfjob(Worker=1))
        await yard.phase("Running")
        assert not writes(operator)["create events"]
        operator.events.is_busy = lambda _: False
        await writes_of_life(yard, operator)
        assert writes(operator)["create events"] == 2


async def test_in_a_rush_pods_come_before_the_news_that_a_job_has_begun(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with measured(control_plane, namespace, Script(start_after=60)) as (yard, operator):
        operator.store.is_creating_many = lambda _: True
        await yard.submit(tfjob(Worker=2))
        await yard.pods({"train-worker-0", "train-worker-1"})
        await asyncio.sleep(1)
        assert not writes(operator)["update tfjobs/status"]
        operator.store.is_creating_many = lambda _: False
        await yard.phase("Created")


async def test_the_cluster_list_of_a_large_job_is_stored_once(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client() as client:
        await install(client)
        async with operating(client, namespace) as operator:
            yard = Bench(client, namespace, ScriptedKubelet(client, namespace=namespace))
            await yard.submit(tfjob(Worker=LARGE))
            await yard.pods({f"train-worker-{index}" for index in range(LARGE)})
            assert writes(operator)["create configmaps"] == 1
            found = await client.send(requests.get(requests.PODS.path(namespace)))
    for pod in found["items"]:
        del pod["metadata"]["managedFields"]  # the server's own bookkeeping
        assert len(msgspec.json.encode([pod["metadata"], pod["spec"]])) < BYTES_PER_POD
