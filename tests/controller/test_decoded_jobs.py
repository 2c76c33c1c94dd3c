"""Jobs stay decoded only while they are active, and only so many: decoded, they take several times their specs."""

from typing import Any

import msgspec
import pytest

from tests.controller.odd_objects import OddServer
from tests.controller.test_odd_objects import COLLECTIONS, HERE, job, operating, reported
from tests.kube.answers import answering
from tfyard.backends.kubernetes.cache import JobKey
from tfyard.backends.kubernetes.resources import JOBS, Resources
from tfyard.controller import job_reading
from tfyard.controller.job_reading import JobReader
from tfyard.kube import Access, Client
from tfyard.kube.requests import TFJOBS
from tfyard.testing import eventually

Manifest = dict[str, Any]


def changed(number: int, **fields: Any) -> Manifest:
    """A job with other fields."""
    made = job(number)
    metadata, spec = fields.pop("metadata", {}), fields.pop("spec", {})
    return {**made, "metadata": {**made["metadata"], **metadata}, "spec": {**made["spec"], **spec}, **fields}


async def test_a_job_that_is_ignored_deleted_or_not_readable_is_not_kept_decoded() -> None:
    inactive = [
        changed(1, spec={"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}),
        changed(2, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}),
        changed(3, status={"tasks": {"Worker": {"finished": "some of them"}}}),
        changed(4, spec={"runPolicy": {"suspend": True}}),
    ]
    lists: dict[str, list[Manifest]] = {name: [] for name in COLLECTIONS}
    server = OddServer({**lists, "tfjobs": [*inactive, job(5)]}, {})
    async with operating(server) as operator:

        async def reconciled() -> None:
            assert {"job-4", "job-5"} <= reported(server).keys()
            assert operator.queue.is_idle

        await eventually(reconciled)
        assert [key.name for key in operator.reconciler._jobs._jobs] == ["job-5"]


async def test_only_so_many_large_jobs_are_kept_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_reading, "KEPT_BYTES", 30_000)
    server = OddServer({}, {})
    async with answering(server) as cluster, Client(Access(cluster)) as client:
        reader = JobReader(client, Resources.of([TFJOBS]))
        for number in (1, 2, 3, 1, 4):
            manifest = changed(number, spec={"note": "x" * 10_000})
            view = JOBS.one.decode(msgspec.json.encode(manifest))
            async with reader.job(JobKey(TFJOBS.group, HERE, f"job-{number}"), view.keep()) as read:
                assert read.name == f"job-{number}"
        assert [key.name for key in reader._jobs] == ["job-1", "job-4"], "those that were read last"
        for key in [*reader._jobs]:
            reader.forget(key)
        assert reader._kept_bytes == 0
