"""What the operator's memory holds of a job, so that thousands are little, and hundreds with large specs, too."""

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tfyard.backends.kubernetes.cache import Cache
from tfyard.backends.kubernetes.resources import JOBS
from tfyard.kube.requests import TFJOBS

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


def test_a_job_with_a_spec_of_a_megabyte_takes_no_more_than_an_ordinary_one(traced: None) -> None:
    assert held(pages=1, padding="x" * 1_000_000) / PAGE < 2_000
