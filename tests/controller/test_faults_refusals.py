"""A server that refuses some requests, or fails: other jobs go on, and the refusal is reported."""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, operator_with, stage
from tests.controller.prometheus import parse
from tests.controller.test_faults_strangers import blocked
from tfyard.backends.kubernetes.runner import PARALLEL_WRITES
from tfyard.controller.operator import Operator
from tfyard.kube import Access, KubeError, Request, requests
from tfyard.kube.errors import ErrorStatus, build_error, from_status
from tfyard.kube.requests import TFJOBS
from tfyard.kube.transport import ANYTHING
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

MANY = 40

Answer = Callable[[int], KubeError | None]
"""Answer to the n-th creation of a pod, unless the server itself answers."""


class RefusingStatuses(Counting):
    refuses = True

    async def send(self, request: Request, into: Any = ANYTHING) -> Any:
        if self.refuses and request.method == "PUT" and request.path.endswith("/status"):
            self.sent.append(request)
            raise denied(400, SAYS_NO)
        return await super().send(request, into)


class Refusing(Counting):
    def __init__(self, access: Access, answer: Answer) -> None:
        super().__init__(access)
        self.answer = answer
        self.created = itertools.count()

    async def send(self, request: Request, into: Any = ANYTHING) -> Any:
        if request.method == "POST" and request.path.endswith("/pods"):
            problem = self.answer(next(self.created))
            if problem is not None:
                self.sent.append(request)
                raise problem
        return await super().send(request, into)


def denied(code: int, message: str, reason: str = "") -> KubeError:
    return from_status(ErrorStatus(code=code, reason=reason, message=message))


def pod_posts(client: Counting) -> int:
    return sum(write.startswith("POST") and write.endswith("/pods") for write in client.writes)


def metric(operator: Operator, name: str) -> float:
    return sum(parse(operator.metrics.render())[name].samples.values())


async def told_pods(scene: Any) -> int:
    """How many creations of pods all events together tell of."""
    events = await scene.client.send(requests.get(f"/api/v1/namespaces/{scene.namespace}/events"))
    texts = [e["message"] for e in events["items"] if e["reason"] == "SuccessfulCreatePod"]
    return sum(
        int(text.split()[1]) if text.split()[1].isdigit() else text.count("-worker-") for text in texts
    )


SAYS_NO = 'admission webhook "images.example" denied the request: no such registry'
CANNOT_BE_CALLED = 'Internal error occurred: failed calling webhook "images.example"'


@pytest.mark.parametrize(
    ("code", "text", "reason"), [(400, SAYS_NO, "Refused"), (500, CANNOT_BE_CALLED, "ServerFault")]
)
async def test_a_webhook_that_refuses_or_cannot_be_called_is_reported(
    control_plane: ControlPlane, namespace: str, code: int, text: str, reason: str
) -> None:
    client = Refusing(control_plane.admin, lambda _: denied(code, text))
    async with stage(control_plane, namespace, Script()) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=2))
        assert text in (await blocked(scene, reason))["message"]
        client.answer = lambda _: None
        await scene.phase("Running")


async def test_a_server_that_asks_to_wait_is_not_asked_again_before_and_the_job_says_so_meanwhile(
    control_plane: ControlPlane, namespace: str
) -> None:
    busy = build_error(429, b'{"message": "the webhook is busy", "reason": "TooManyRequests"}', "6")
    client, asked = Refusing(control_plane.admin, lambda _: busy), list[float]()
    async with stage(control_plane, namespace, Script()) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=1))
        message = (await blocked(scene, "RetryAfter"))["message"]
        assert "the webhook is busy" in message
        assert message.endswith("the next try is in 6 s, as the server asks")
        tries, client.answer = pod_posts(client), lambda _: asked.append(time.monotonic())
        assert tries == 1
        since = time.monotonic()
        await scene.patch({"spec": {"runPolicy": {"backoffLimit": 3}}})  # a reason to reconcile it at once
        await scene.phase("Running")
        assert asked[0] - since > 3, "it was tried before the time that the server had asked for"
        await blocked(scene, "Unblocked", "False")


async def test_a_job_beyond_its_quota_does_not_try_every_pod_at_every_try(
    control_plane: ControlPlane, namespace: str
) -> None:
    text = 'pods "x" is forbidden: exceeded quota: few, requested: pods=1'
    client = Refusing(control_plane.admin, lambda _: denied(403, text, "Forbidden"))
    async with (
        stage(control_plane, namespace, Script()) as scene,
        operator_with(client, namespace) as operator,
    ):
        await scene.submit(tfjob(Worker=10 * MANY))
        await blocked(scene, "QuotaExceeded")
        looks = parse(operator.metrics.render())["tfyard_reconcile_seconds"].samples
        assert pod_posts(client) <= PARALLEL_WRITES // 4 * looks["tfyard_reconcile_seconds_count", ()]
        assert metric(operator, "created_pods_total") == 0


RACE = denied(409, "Operation cannot be fulfilled on resourcequotas", "Conflict")
FAULT = denied(500, "etcdserver: leader changed")


@pytest.mark.parametrize(
    "answer",
    [lambda number: None if number % 5 else RACE, lambda number: FAULT if number in (3, 17, 30) else None],
    ids=["races for a quota", "faults of the server"],
)
async def test_requests_that_fail_now_and_then_cost_no_pod_and_every_action_is_reported(
    control_plane: ControlPlane, namespace: str, answer: Answer
) -> None:
    client = Refusing(control_plane.admin, answer)
    async with (
        stage(control_plane, namespace, Script()) as scene,
        operator_with(client, namespace) as operator,
    ):
        await scene.submit(tfjob(Worker=MANY))
        await scene.pods({f"train-worker-{index}" for index in range(MANY)})

        async def all_told() -> None:
            assert await told_pods(scene) == MANY

        await eventually(all_told)
        assert metric(operator, "created_pods_total") == MANY
        assert metric(operator, "succeeded_service_creation_total") == 1


async def test_a_finished_pod_that_is_deleted_before_its_end_was_written_is_not_run_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace, Script()) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=3))
        await scene.phase("Running")
        await scene.kubelet.finish("train-worker-1", 0)
        path = requests.PODS.path(namespace, "train-worker-1")
        while (await scene.client.send(requests.get(path)))["status"]["phase"] != "Succeeded":
            await asyncio.sleep(0.01)
        await scene.client.send(requests.delete(path, grace=0))

        async def is_remembered() -> None:
            assert (await scene.status())["replicaStatuses"]["Worker"].get("succeeded") == 1

        await eventually(is_remembered)
        assert await scene.names() == {"train-worker-0", "train-worker-2"}
        assert scene.chronicle.twice == []


async def test_another_obstacle_of_the_same_kind_replaces_the_message(
    control_plane: ControlPlane, namespace: str
) -> None:
    client = Refusing(control_plane.admin, lambda _: denied(400, "no such registry"))
    async with stage(control_plane, namespace, Script()) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=2))
        assert "no such registry" in (await blocked(scene, "Refused"))["message"]
        client.answer = lambda _: denied(400, "no such team")

        async def is_told() -> None:
            assert "no such team" in (await blocked(scene, "Refused"))["message"]

        await eventually(is_told)


async def test_an_operator_that_starts_leaves_a_blocked_job_as_it_is(
    control_plane: ControlPlane, namespace: str
) -> None:
    def no(_number: int) -> KubeError:
        return denied(400, "no such registry")

    async with stage(control_plane, namespace, Script()) as scene:
        async with operator_with(Refusing(control_plane.admin, no), namespace):
            await scene.submit(tfjob(Worker=2))
            before = await blocked(scene, "Refused")
        client = Refusing(control_plane.admin, no)
        async with operator_with(client, namespace) as operator:
            await asyncio.sleep(3)

            async def tried_twice() -> None:
                assert pod_posts(client) >= 2

            await eventually(tried_twice)
            await operator.drain()
            assert [write for write in client.writes if not write.endswith("/pods")] == []
        assert await blocked(scene, "Refused") == before
        async with operator_with(Counting(control_plane.admin), namespace):
            await scene.phase("Running")
            await blocked(scene, "Unblocked", "False")


async def test_a_status_that_is_refused_is_sent_again_ever_more_rarely_and_logged_once(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = RefusingStatuses(control_plane.admin)
    async with (
        stage(control_plane, namespace, Script()) as scene,
        operator_with(client, namespace) as operator,
    ):
        await scene.submit(tfjob(Worker=2))
        await eventually(lambda: _sent(client, 5))
        assert refused_statuses(operator) == 1
        first = len(client.sent)
        await asyncio.sleep(10)
    assert len(client.sent) - first < 10
    lines = [record.message for record in caplog.records if "requeue" in record.message]
    assert len(lines) <= 2, lines


async def _sent(client: Counting, number: int) -> None:
    assert sum(write.startswith("PUT") for write in client.writes) >= number


def refused_statuses(operator: Operator) -> float:
    name = "tfyard_refused_statuses"
    return parse(operator.metrics.render())[name].samples[name, ()]


async def test_a_status_counts_as_refused_until_it_is_stored_or_its_job_is_deleted(
    control_plane: ControlPlane, namespace: str
) -> None:
    client = RefusingStatuses(control_plane.admin)
    async with (
        stage(control_plane, namespace, Script()) as scene,
        operator_with(client, namespace) as operator,
    ):

        async def refused(number: int) -> None:
            assert refused_statuses(operator) == number

        await scene.submit(tfjob("stored", Worker=1))
        await scene.submit(tfjob("deleted", Worker=1))
        await eventually(lambda: refused(2))
        await scene.client.send(requests.delete(TFJOBS.path(namespace, "deleted")))
        await eventually(lambda: refused(1))
        client.refuses = False
        await eventually(lambda: refused(0))
        await scene.phase("Running", "stored")


async def test_a_request_that_is_cancelled_ends_no_worker(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A worker that ended so was missed by nobody, and its job not tried again."""

    class Cancelled(Counting):
        left = 5

        async def send(self, request: Request, into: Any = ANYTHING) -> Any:
            if request.method == "POST" and request.path.endswith("/pods") and self.left:
                self.left -= 1
                raise asyncio.CancelledError
            return await super().send(request, into)

    client = Cancelled(control_plane.admin)
    async with stage(control_plane, namespace, Script()) as scene, operator_with(client, namespace):
        await scene.submit(tfjob(Worker=1))
        await scene.phase("Running")
        assert client.left == 0
