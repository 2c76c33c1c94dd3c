"""Planner and runner together repeat no pair of writes without a back-off, whatever others do to the objects.

Passes follow each other as fast as they can, which no worker does: only the back-off limits the writes."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.kubernetes.hostile_server import Habit, HostileServer, Key, refusal, stamp
from tests.planner.builders import job, role
from tfyard.backends.kubernetes.cache import Cache
from tfyard.backends.kubernetes.last_lines import LastLines
from tfyard.backends.kubernetes.objects import ObjectWriter
from tfyard.backends.kubernetes.resources import Resources
from tfyard.backends.kubernetes.runner import ClusterRunner
from tfyard.backends.kubernetes.setup_events import SetupEvents
from tfyard.backends.kubernetes.views import StoredJob
from tfyard.backends.kubernetes.writes import Writer
from tfyard.kube import Client
from tfyard.kube.requests import TFJOBS
from tfyard.model import PS, WORKER, Decision, Job, Status
from tfyard.model.names import ATTEMPT, JOB_NAME, OPERATOR_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.planner import Site
from tfyard.spine import reconcile
from tfyard.views.metadata import ObjectMeta
from tfyard.views.tfjob_status import dump_status

SECONDS, PASSES = 100, 2
MOST = 12
"""Writes of one object in that time: after 0, 0, 10, 30 and 70 s, twice, because each of them may be repeated once
when the object is deleted. Without a back-off it is some hundreds."""
LABELS = (OPERATOR_NAME, JOB_NAME, REPLICA_TYPE, REPLICA_INDEX)
REJECTED = {"phase": "Failed", "reason": "NodeAffinity", "message": "Pod was rejected: no"}


def relabel(label: str, value: str | None) -> Habit:
    def change(server: HostileServer, key: Key) -> None:
        if label in server.objects[key]["metadata"]["labels"]:
            server.change(key, {"metadata": {"labels": {label: value}}})

    return change


def of_pods(patch: Callable[[HostileServer], dict[str, Any]]) -> Habit:
    def change(server: HostileServer, key: Key) -> None:
        if key[0] == "Pod":
            server.change(key, patch(server))

    return change


def remove(server: HostileServer, key: Key) -> None:
    server.remove(key)


def edit_service(server: HostileServer, key: Key) -> None:
    if key[0] == "Service":
        server.change(key, {"spec": {"selector": {"app": "other"}}})


def edit_anew(server: HostileServer, key: Key) -> None:
    if key[0] == "Service":
        server.change(key, {"spec": {"selector": {f"key-{server.version}": "other"}}})


def ended(code: int) -> Habit:
    def status(server: HostileServer) -> dict[str, Any]:
        at = stamp(server.now())
        over = {"exitCode": code, "startedAt": at, "finishedAt": at}
        one = {"name": "tensorflow", "state": {"terminated": over}}
        phase = "Failed" if code else "Succeeded"
        return {"status": {"phase": phase, "startTime": at, "containerStatuses": [one]}}

    return of_pods(status)


def runs(server: HostileServer) -> dict[str, Any]:
    at = stamp(server.now())
    one = {"name": "tensorflow", "state": {"running": {"startedAt": at}}}
    return {"status": {"phase": "Running", "startTime": at, "containerStatuses": [one]}}


def postpone(server: HostileServer, key: Key) -> None:
    """Refuses a pod, and asks to try again after half a minute."""
    if key[0] == "Pod":
        del server.objects[key]
        raise refusal(429, "TooManyRequests", 30.0)


def refuse_at_length(server: HostileServer, key: Key) -> None:
    """Refuses a pod, and quotes what its user wrote, as an API server does."""
    if key[0] == "Pod":
        del server.objects[key]
        raise refusal(422, "Invalid", message=f'Pod "p" is invalid: "{"m" * 400_000}": no')


ADMISSION: dict[str, Habit] = {
    "postpone": postpone,
    **{f"without {label}": relabel(label, None) for label in LABELS},
    **{f"other {label}": relabel(label, "7") for label in LABELS},
    "another role": relabel(REPLICA_TYPE, "ps"),
    "without attempt": of_pods(lambda _: {"metadata": {"annotations": {ATTEMPT: None}}}),
    "without annotations": of_pods(lambda _: {"metadata": {"annotations": None}}),
    "without owner": of_pods(lambda _: {"metadata": {"ownerReferences": None}}),
}
REFUSALS: dict[str, Habit] = {"refuse": refuse_at_length}
"""After these the queue waits, which has no part in these tests."""
OTHERS: dict[str, Habit] = {
    "run": of_pods(runs),
    "delete": remove,
    "crash": ended(137),
    "fail": ended(1),
    "reject": of_pods(lambda _: {"status": REJECTED}),
    "edit": edit_service,
    "edit anew": edit_anew,
    "relabel": relabel(REPLICA_INDEX, "7"),
    "unlabel": relabel(OPERATOR_NAME, None),
    "disown": of_pods(lambda _: {"metadata": {"ownerReferences": None}}),
}


class Store:
    """Keeps each status at once."""

    def __init__(self, server: HostileServer, view: StoredJob) -> None:
        self._server, self._cache, self._view, self._version = server, server.cache, view, 1

    async def report(self, job: Job, before: Status, decision: Decision) -> None:  # noqa: ARG002
        self._version += 1
        self._server.statuses.append(decision.status)
        meta = msgspec.structs.replace(self._view.metadata, resource_version=str(self._version))
        status = msgspec.Raw(msgspec.json.encode(dump_status(decision.status)))
        self._cache.put_job(TFJOBS, msgspec.structs.replace(self._view, metadata=meta, status=status))


async def play(asked: Job, phases: list[tuple[list[str], list[str]]]) -> HostileServer:
    """The writes of a job while the habits of others change from phase to phase."""
    cache = Cache()
    server = HostileServer(cache)
    client = cast(Client, server)
    objects = ObjectWriter(
        Writer(client, lambda: True, lambda *_: None), cache, Resources.of([TFJOBS]), lambda _: None
    )
    lines = LastLines(client, lambda _: None)
    runner = ClusterRunner(objects, cache, Site().backoff, SetupEvents(client), lines, lambda: server.seconds)
    meta = ObjectMeta(asked.name, "lab", asked.uid, "1")
    view = StoredJob(metadata=meta, api_version=asked.api_version, kind=asked.kind)
    cache.put_job(TFJOBS, view)
    store = Store(server, view)
    for admission, others in phases:
        server.admission = [(ADMISSION | REFUSALS)[name] for name in admission]
        server.others = [OTHERS[name] for name in others]
        for _ in range(SECONDS // len(phases)):
            for _ in range(PASSES):
                await reconcile(asked, store, runner, Site(), server.now())
                server.pass_on()
            server.seconds += 1
    return server


habits = st.tuples(
    st.lists(st.sampled_from(sorted(ADMISSION)), max_size=2),
    st.lists(st.sampled_from(sorted(OTHERS)), max_size=2),
)
restarts = st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"])


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.lists(habits, min_size=1, max_size=3), restarts, st.sampled_from([None, "per-replica"]))
def test_no_object_is_created_changed_or_deleted_again_and_again_without_a_back_off(
    phases: list[tuple[list[str], list[str]]], restart: str, services: Any
) -> None:
    asked = job(role(WORKER, 2, restart), role(PS, 1, restart), services=services)
    asked = msgspec.structs.replace(asked, uid="u-1", namespace="lab", api_version="kubeflow.org/v1")
    server = asyncio.run(play(asked, phases))
    assert server.writes, "the job was worked on"
    assert max(server.writes.values()) <= MOST, server.writes.most_common(5)


def test_what_the_server_postpones_is_tried_when_it_asks_for_it_and_the_job_says_so() -> None:
    asked = msgspec.structs.replace(job(role(WORKER, 1)), api_version="kubeflow.org/v1")
    server = asyncio.run(play(asked, [(["postpone"], []), ([], [])]))
    assert server.writes["create", ("Pod", "mnist-worker-0")] == 3, "at 0, 30 and 60 s"
    told = [status.condition("Blocked") for status in server.statuses]
    first, last = next(filter(None, told)), told[-1]
    assert (first.status, first.reason) == ("True", "RetryAfter")
    assert first.message == (
        "cannot create pod mnist-worker-0: TooManyRequests (429 TooManyRequests);"
        " the next try is in 30 s, as the server asks"
    )
    assert last is not None
    assert last.status == "False"


@pytest.mark.parametrize("is_readable", [True, False])
def test_what_a_message_quotes_does_not_make_the_status_of_a_job_large(is_readable: bool) -> None:
    """A name of 400 kB gave a status of 800 kB."""
    asked = msgspec.structs.replace(job(role(WORKER, 1)), api_version="kubeflow.org/v1")
    if not is_readable:
        asked = msgspec.structs.replace(asked, problems=("m" * 400_000, "second"))
    server = asyncio.run(play(asked, [(["refuse"], [])]))
    status = msgspec.json.encode(dump_status(server.statuses[-1]))
    assert b"mmmmm" in status
    assert max(len(condition.message) for condition in server.statuses[-1].conditions) == 1024
    assert len(status) < 4_000
