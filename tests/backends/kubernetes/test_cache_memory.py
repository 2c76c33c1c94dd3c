"""What the operator's memory holds of a job, so that thousands are little, and hundreds with large specs, too."""

import json
import tracemalloc
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tfyard.backends.kubernetes.cache import Cache
from tfyard.backends.kubernetes.resources import JOBS, PODS, child_kind
from tfyard.kube.requests import TFJOBS
from tfyard.model.names import CONTROLLER, JOB_NAME, OPERATOR_NAME, REPLICA_INDEX, REPLICA_TYPE

PAGE = 100
WHEN = "2026-01-01T00:00:00Z"
ENDED = {"type": "Succeeded", "status": "True", "lastTransitionTime": WHEN, "lastUpdateTime": WHEN}
STATUS = {"conditions": [ENDED], "startTime": WHEN, "completionTime": WHEN}


def page(first: int, padding: str) -> bytes:
    """A page of a list of finished jobs, as the API server answers."""
    return json.dumps({"metadata": {}, "items": [stored(first + n, padding) for n in range(PAGE)]}).encode()


def stored(number: int, padding: str) -> dict[str, Any]:
    job = tfjob(f"done-{number}", {"cleanPodPolicy": "None"}, Worker=4)
    meta = {
        "namespace": "here",
        "uid": f"uid-of-{number}",
        "resourceVersion": str(number + 1),
        "generation": 1,
    }
    job["spec"]["unknown"] = padding
    return {**job, "metadata": {**job["metadata"], **meta}, "status": STATUS}


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def held(pages: int, padding: str = "") -> int:
    """Bytes that stay after all pages were read, as the informer reads them."""
    cache = Cache()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(pages):
        put(cache, page(number * PAGE, padding))
    assert len(cache.jobs) == pages * PAGE
    return tracemalloc.get_traced_memory()[0] - before


def put(cache: Cache, answer: bytes) -> None:
    for view in JOBS.page.decode(answer).items:
        cache.put_job(TFJOBS, JOBS.keep(view))


def test_an_ordinary_finished_job_takes_two_kilobytes(traced: None) -> None:
    assert held(pages=5) / (5 * PAGE) < 2_000


def test_what_users_write_into_the_metadata_of_a_job_takes_no_more_than_an_ordinary_one(traced: None) -> None:
    """60,000 labels of 700 kB took 5 MB."""
    names = {f"label-{number}": "" for number in range(5_000)}
    metas: list[dict[str, Any]] = [{"labels": names}, {"annotations": names}, {"finalizers": [*names]}]
    metas += [{"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 250_000}}]
    cache, before = Cache(), 0
    for number in range(-len(metas), PAGE):
        if number == 0:  # the first ones fill a cache of keys
            before = tracemalloc.get_traced_memory()[0]
        job = stored(number, "")
        job["metadata"] |= metas[number % len(metas)]
        put(cache, json.dumps({"metadata": {}, "items": [job]}).encode())
    assert (tracemalloc.get_traced_memory()[0] - before) / PAGE < 2_000


@pytest.mark.parametrize("kind", ["Pod", "Service"])
def test_what_users_write_into_the_metadata_of_a_jobs_object_is_not_kept(kind: str, traced: None) -> None:
    names = {f"label-{number}": "" for number in range(1_000)}
    cache, before = Cache(), tracemalloc.get_traced_memory()[0]
    for number in range(PAGE):
        put_object(cache, kind, number, {"annotations": names, "finalizers": [*names]}, names)
    assert len(cache.pods if kind == "Pod" else cache.children) == PAGE
    assert (tracemalloc.get_traced_memory()[0] - before) / PAGE < 4_000


def put_object(cache: Cache, kind: str, number: int, meta: dict[str, Any], labels: dict[str, str]) -> None:
    name, owner = f"done-{number}", {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "controller": True}
    own = {OPERATOR_NAME: CONTROLLER, JOB_NAME: name, REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
    meta = {
        "name": f"{name}-worker-0" if kind == "Pod" else name,
        "namespace": "here",
        "uid": f"{kind}-{number}",
        "resourceVersion": str(number + 1),
        "ownerReferences": [{**owner, "name": name, "uid": f"uid-of-{number}"}],
        "labels": {**labels, **own},
        **meta,
    }
    data = json.dumps({"metadata": meta}).encode()
    if kind == "Pod":
        cache.pods.put(PODS.keep(PODS.one.decode(data)))
    else:
        cache.children.put(kind, child_kind(kind).keep(child_kind(kind).one.decode(data)))


def test_a_spec_that_cannot_be_compressed_takes_no_more_than_an_ordinary_one(traced: None) -> None:
    """8,000 jobs of 60 kB were 480 MB."""
    assert held(pages=1, padding=Random(1).randbytes(30_000).hex()) / PAGE < 2_000


def test_a_job_that_is_kept_compressed_is_read_as_it_was_written() -> None:
    whole = stored(1, "some words, " * 2_000)
    whole["metadata"] |= {"labels": {"a": "b"}, "annotations": {"note": "c"}}
    view = JOBS.keep(JOBS.one.decode(json.dumps(whole).encode()))
    assert view.has_spec
    assert memoryview(view.spec).nbytes < 1_000
    document = view.unpacked().document()
    assert document["spec"] == whole["spec"]
    assert (document["metadata"]["labels"], document["metadata"]["annotations"]) == (
        {"a": "b"},
        {"note": "c"},
    )
    whole["metadata"]["annotations"] = {"note": "d"}
    assert not view.is_same_job(JOBS.keep(JOBS.one.decode(json.dumps(whole).encode())))


def test_a_job_with_a_spec_of_a_megabyte_takes_no_more_than_an_ordinary_one(traced: None) -> None:
    assert held(pages=1, padding="x" * 1_000_000) / PAGE < 2_000
