"""Every object that the operator reads, with odd values at the edges of their types, through its real watches."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import operator_with
from tests.controller.odd_objects import OddServer, odd_objects, oddities, replaced
from tests.kube.answers import answering
from tfyard.backends.kubernetes.objects import _force_obstacle
from tfyard.backends.kubernetes.setup_events import SetupEvents
from tfyard.controller.leader_election import LeaseApi
from tfyard.controller.lease import DEFAULT_TIMING, LONGEST_PROMISE, Candidate, Observation
from tfyard.controller.operator import Operator
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.kube import Access, Client, Undecodable
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.model import API_VERSION, Delete, Job, Pod, Task, Wait
from tfyard.planner import Gang, Site
from tfyard.testing import eventually
from tfyard.views.pods import PodView

Manifest = dict[str, Any]
HERE = "lab"
SITE = Site(gang=Gang(by="volcano", scheduler="volcano"))
COLLECTIONS = ("tfjobs", "old-tfjobs", "pods", "services", "configmaps", "deployments", "podgroups", "events")


def numbered(manifest: Manifest, number: int, name: str) -> Manifest:
    meta = {"namespace": HERE, "resourceVersion": str(number), "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**manifest, "metadata": {**meta, "uid": f"uid-{name}", **manifest["metadata"], "name": name}}


def job(number: int) -> Manifest:
    return numbered(tfjob(Worker=1), number, f"job-{number}")


def child(number: int, name: str, **fields: Any) -> Manifest:
    """An object of the job with this number."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": f"job-{number}", "controller": True}
    labels = {"operator-name": "tfjob-controller", "job-name": f"job-{number}"}
    labels |= {"replica-type": "worker", "replica-index": "0"}
    meta = {
        "labels": {f"training.kubeflow.org/{key}": value for key, value in labels.items()},
        "annotations": {"tfyard.dev/attempt": "0"},
        "ownerReferences": [{**owner, "uid": f"uid-job-{number}"}],
        "finalizers": ["example.com/a"],
        "generation": 1,
    }
    return numbered({"metadata": meta, **fields}, number, name)


RUNNING = {
    "name": "tensorflow",
    "restartCount": 1,
    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    "lastState": {
        "terminated": {
            "exitCode": 1,
            "reason": "Error",
            "message": "m",
            "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": "2026-01-01T00:00:00Z",
        }
    },
}
WAITING = {"name": "prepare", "restartCount": 0, "state": {"waiting": {"reason": "r", "message": "m"}}}


def pod(number: int) -> Manifest:
    spec = {
        "nodeName": "node",
        "restartPolicy": "OnFailure",
        "activeDeadlineSeconds": 9,
        "containers": [{"name": "tensorflow", "restartPolicy": "Never"}],
        "initContainers": [{"name": "prepare"}],
        "schedulingGroup": {"podGroupName": "g"},
    }
    status = {
        "phase": "Running",
        "reason": "r",
        "message": "m",
        "startTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "m"}],
        "containerStatuses": [RUNNING],
        "initContainerStatuses": [WAITING],
    }
    made = child(number, f"job-{number}-worker-0", spec=spec, status=status)
    leaving = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
    return {**made, "metadata": {**made["metadata"], **leaving}}


def group(number: int) -> Manifest:
    spec = {"minMember": 1, "queue": "q", "minResources": {"cpu": "1"}}
    return child(number, f"job-{number}", spec=spec, status={"phase": "Inqueue"})


CHILDREN = {
    "pods": pod,
    "services": lambda number: child(number, f"job-{number}", spec={"ports": [{"port": 1}]}),
    "configmaps": lambda number: child(number, f"job-{number}-cluster-0a", data={"a": "b"}),
    "deployments": lambda number: child(number, f"job-{number}-tensorboard", spec={"replicas": 1}),
    "podgroups": group,
}


@asynccontextmanager
async def operating(server: OddServer) -> AsyncIterator[Operator]:
    async with answering(server) as cluster:
        jobs = [TFJOBS, OLD_TFJOBS]
        async with operator_with(Client(Access(cluster)), HERE, jobs=jobs, site=SITE) as operator:
            yield operator


def stage(by: str, collection: str, odd: list[Manifest], jobs: list[Manifest]) -> OddServer:
    """A server that has the objects in its lists, or sends them as events, each changed and then removed."""
    lists: dict[str, list[Manifest]] = {name: [] for name in COLLECTIONS}
    lists["tfjobs"] = list(jobs)
    last = CHILDREN[collection](0) if collection in CHILDREN else versioned(odd[0]["apiVersion"], 0)
    if by == "list":
        lists[collection] += [*odd, last]
        return OddServer(lists, {})
    kinds = ("ADDED", "MODIFIED", "DELETED")
    events = [{"type": type, "object": each} for type in kinds for each in odd]
    return OddServer(lists, {collection: [*events, {"type": "ADDED", "object": last}]})


def unexpected(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.exc_text or each.getMessage() for each in caplog.records if each.exc_info]


def check_logged_once(caplog: pytest.LogCaptureFixture) -> int:
    lines = Counter(each.getMessage() for each in caplog.records if "cannot be read" in each.getMessage())
    assert {line: count for line, count in lines.items() if count > 1} == {}
    return len(lines)


def reported(server: OddServer) -> dict[str, Manifest]:
    """The last status of each job that was written."""
    puts = (body for method, path, body in server.writes if method == "PUT" and path.endswith("/status"))
    return {body["metadata"]["name"]: body["status"] for body in puts}


SOME, ALL = 7, 1
"""Every seventh oddity has each field and each odd value, if not each value in each field."""
EVERY = pytest.mark.parametrize(
    "every", [SOME, pytest.param(ALL, marks=pytest.mark.long)], ids=["some", "all"]
)


def test_some_of_the_oddities_have_each_field_and_each_value() -> None:
    for base in (pod(1), versioned(API_VERSION, 1)):
        every, some = oddities(base), oddities(base)[::SOME]
        for part in (0, 1):
            assert {repr(each[part]) for each in some} == {repr(each[part]) for each in every}


@EVERY
@pytest.mark.parametrize("by", ["list", "watch"])
@pytest.mark.parametrize("collection", CHILDREN)
async def test_an_odd_object_of_a_job_ends_no_watch_and_fails_no_pass(
    collection: str, by: str, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    build = CHILDREN[collection]
    odd = odd_objects(build, every)
    server = stage(by, collection, odd, [job(number) for number in range(len(odd) + 1)])
    async with operating(server) as operator:
        objects = operator.cache.pods.of if collection == "pods" else operator.cache.children.of

        async def seen() -> None:
            assert objects(owner(0)), "the last one, which is healthy"
            assert len(reported(server)) == len(odd) + 1, "every job is reconciled"
            assert operator.queue.is_idle

        await eventually(seen, 180)
        assert operator.metrics.watch_restarts.labels(collection)._value.get() == 0, "no watch ended"
        if by == "list" and collection == "pods":
            await eventually(lambda: check_pods(server, odd))
        elif by == "watch":
            assert len(operator.cache.unreadable) == 0, "what is gone is forgotten"
    assert unexpected(caplog) == []
    assert check_logged_once(caplog) > 0, "some of them cannot be read"


async def check_pods(server: OddServer, odd: list[Manifest]) -> None:
    """Each pod that can be told from its metadata to be a job's, and cannot be read, blocks its job."""
    statuses = reported(server)
    unknown = [(number, each) for number, each in enumerate(odd, 1) if not is_readable(each, PodView)]
    owned = [number for number, each in unknown if is_owned(each, pod(number))]
    assert len(owned) > 50
    touched = {path.rpartition("/")[2] for _, path, _ in server.writes}
    for number in owned:
        name = f"job-{number}-worker-0"
        blocked = [each for each in statuses[f"job-{number}"]["conditions"] if each["type"] == "Blocked"]
        assert [(each["status"], each["reason"]) for each in blocked] == [("True", "Unreadable")], number
        assert name in blocked[0]["message"]
        assert name not in touched, "neither deleted nor changed"


def is_owned(manifest: Manifest, healthy: Manifest) -> bool:
    meta, own = manifest["metadata"], healthy["metadata"]
    same = all(meta[field] == own[field] for field in ("labels", "ownerReferences"))
    return same and is_readable({"metadata": meta}, PodView)


def is_readable(manifest: Manifest, view: type) -> bool:
    try:
        msgspec.json.decode(msgspec.json.encode(manifest), type=view)
    except msgspec.DecodeError:
        return False
    return True


STATUS = {
    "conditions": [
        {
            "type": "Running",
            "status": "True",
            "reason": "TFJobRunning",
            "message": "m",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
    "replicaStatuses": {"Worker": {"active": 1, "restarts": 2, "ready": "1/1"}},
    "tasks": {"Worker": {"attempts": {"0": 1}, "finished": "", "retries": 1}},
    "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T00:00:00Z",
}
POLICY = {
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 9,
    "activeDeadlineSeconds": 9,
    "backoffLimit": 2,
}
POLICY |= {"schedulingPolicy": {"minAvailable": 1, "queue": "q", "minResources": {"cpu": "1"}}}


def versioned(version: str, number: int) -> Manifest:
    """A job of one of the served versions, with the fields of all."""
    container = {"name": "tensorflow", "image": "i", "resources": {"limits": {"cpu": "1"}}, "env": []}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    if version.endswith("v1alpha1"):
        roles = [{"tfReplicaType": "MASTER", "replicas": 1, "template": template}]
        spec = {"replicaSpecs": roles, "tensorboard": {"logDir": "/logs"}}
    else:
        worker = {"replicas": 1, "restartPolicy": "OnFailure", "template": template}
        spec = {"tfReplicaSpecs": {"Worker": worker}, "runPolicy": POLICY, **POLICY}
    annotations = {"tfyard.dev/services": "shared", "tfyard.dev/evaluator-grace": "9"}
    kind = "TfJob" if version.startswith("tensorflow.org") else "TFJob"
    meta = {"annotations": annotations, "generation": 1}
    body = {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec, "status": STATUS}
    return numbered(body, number, f"job-{number}")


LISTS = [version for version in VERSIONS if version.endswith("v1alpha1")]
FORMS = [[version for version in VERSIONS if version not in LISTS], *([version] for version in LISTS)]
"""Versions of one form have the same fields: each has its share of the oddities."""


@EVERY
@pytest.mark.parametrize("by", ["list", "watch"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
async def test_an_odd_job_ends_no_watch_and_its_pass_raises_nothing(
    form: list[str], by: str, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    odd = odd_objects(lambda number: versioned(form[number % len(form)], number), every)
    server = stage(by, "old-tfjobs" if form[0].startswith("tensorflow.org") else "tfjobs", odd, [])
    async with operating(server) as operator:

        async def seen() -> None:
            assert "job-0" in reported(server), "the last one, which is healthy"
            assert operator.queue.is_idle

        await eventually(seen, 180)
        await asyncio.sleep(1)  # for what waits until it may be written
    assert unexpected(caplog) == []
    check_logged_once(caplog)


def owner(number: int) -> str:
    return f"{HERE}/TFJob.kubeflow.org/job-{number}/uid-job-{number}"


@pytest.mark.parametrize("by", ["list", "watch"])
@pytest.mark.parametrize("meta", [None, [], "x", {"name": 5}, {"name": ["a"], "namespace": None}])
async def test_an_object_without_readable_metadata_is_skipped(meta: Any, by: str) -> None:
    """No server has one; a relay or a proxy between may have."""
    server = stage(by, "pods", [{**pod(1), "metadata": meta}], [job(0), job(1)])
    async with operating(server) as operator:

        async def seen() -> None:
            assert "job-0" in reported(server)
            assert operator.cache.pods.of(owner(0)), "the last one, which is healthy"

        if by == "watch":
            server.lists["pods"] = [pod(0)]  # an event without a version costs a new list
        await eventually(seen, 60)


async def test_an_odd_event_of_a_pod_costs_at_most_its_explanation() -> None:
    event = {
        "metadata": {"name": "e", "namespace": HERE, "resourceVersion": "7", "labels": {"a": "b"}},
        "involvedObject": {"kind": "Pod", "name": "p", "uid": "u"},
        "reason": "FailedMount",
        "message": "m",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
        "source": {"component": "kubelet"},
    }
    waits = Wait("Mount", since=datetime(2025, 1, 1, tzinfo=UTC))
    waiting = Pod(name="p", uid="u", task=Task("Worker", 0), wait=waits)
    server = OddServer({"events": []}, {})
    async with answering(server) as cluster, Client(Access(cluster)) as client:
        for change in oddities(event):
            server.lists["events"] = [replaced(event, *change), event]
            (explained,) = await SetupEvents(client).explain(Job(name="j", namespace=HERE), (waiting,))
            assert explained.wait is not None


async def test_an_odd_node_or_pod_is_no_reason_to_delete_by_force_and_no_error() -> None:
    node = {
        "metadata": {"name": "node", "resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}], "unschedulable": True},
        "status": {
            "allocatable": {"cpu": "1"},
            "conditions": [
                {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ],
        },
    }
    healthy = pod(1)
    healthy["metadata"].pop("finalizers")
    server, delete = OddServer({}, {}), Delete("Pod", "job-1-worker-0", "uid-job-1-worker-0", force=True)
    async with answering(server) as cluster, Client(Access(cluster)) as client:
        server.singles["job-1-worker-0"] = healthy
        for change in oddities(node):
            server.singles["node"] = replaced(node, *change)
            assert await _force_obstacle(client, HERE, delete) is not None, change
        server.singles["node"] = node
        for change in oddities(healthy):
            if change[0] != ("spec", "nodeName") and change[0] != ("spec",):
                server.singles["job-1-worker-0"] = replaced(healthy, *change)
                assert await _force_obstacle(client, HERE, delete) is not None, change


async def test_an_odd_lease_is_an_error_that_may_pass_or_is_read() -> None:
    lease = {
        "metadata": {"name": "tfyard-operator", "namespace": HERE, "resourceVersion": "7"},
        "spec": {
            "holderIdentity": "another",
            "leaseDurationSeconds": 10,
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 1,
        },
    }
    server, candidate = OddServer({}, {}), Candidate("me", HERE)
    async with answering(server) as cluster, Client(Access(cluster)) as client:
        api, unread = LeaseApi(client, candidate, DEFAULT_TIMING), 0
        for change in oddities(lease):
            server.singles["tfyard-operator"] = replaced(lease, *change)
            try:
                found = await api.get()
            except Undecodable:
                unread += 1
                continue
            observation = Observation()
            observation.update(found, 0.0)
            assert 0 <= observation.free_in(0.0, 10.0) <= LONGEST_PROMISE
            assert candidate.claim(found, DEFAULT_TIMING, datetime.now(UTC))["spec"]["holderIdentity"] == "me"
    assert 0 < unread < len(oddities(lease))
