"""The cache: watch events and answers to our own writes, in whatever order they come."""

from datetime import UTC, datetime
from typing import Any

from tfyard.backends.kubernetes import TFJOBS, Cache
from tfyard.backends.kubernetes.views import Child, JobView, Meta, Owner, PodStatus, PodView
from tfyard.model.names import REPLICA_INDEX, REPLICA_TYPE

JOB, NAME = "uid-of-job", "train-worker-0"
LABELS = {REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}


def meta(name: str, version: int, **fields: Any) -> Meta:
    owner = (Owner(JOB, controller=True),)
    given = {"uid": f"uid-of-{name}", "owner_references": owner, "labels": LABELS, **fields}
    return Meta(name, "here", resource_version=str(version), **given)


def pod(version: int, phase: str = "Running", **fields: Any) -> PodView:
    return PodView(meta(NAME, version, **fields), status=PodStatus(phase=phase))


def cache_with_job() -> Cache:
    cache = Cache()
    cache.put_job(TFJOBS, JobView(metadata=Meta("train", "here", uid=JOB, resource_version="1")))
    return cache


def phases(cache: Cache) -> list[str]:
    return [each.phase for each in cache.pods.of(JOB)]


def test_only_a_change_that_decisions_depend_on_names_the_owner() -> None:
    cache = cache_with_job()
    assert cache.pods.put(pod(2, "Pending")) == JOB
    assert cache.pods.put(pod(3, "Pending")) == ""
    assert cache.pods.put(pod(4, "Running")) == JOB


def test_a_watch_event_older_than_an_answer_is_ignored() -> None:
    cache = cache_with_job()
    cache.apply_response("Pod", pod(5, "Running"))
    assert cache.pods.put(pod(4, "Pending")) == ""
    assert phases(cache) == ["Running"]


def test_an_answer_that_the_watch_is_past_brings_nothing_back() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5))
    cache.drop_pod(pod(6))
    cache.apply_response("Pod", pod(5))
    assert phases(cache) == []
    cache.children.put("Service", Child(meta("train", 7)))
    cache.children.drop("Service", Child(meta("train", 8)))
    cache.apply_response("Service", Child(meta("train", 7)))
    assert cache.children.of(JOB) == {}


def test_a_pod_that_succeeded_stays_for_one_more_reconcile() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5, "Succeeded"))
    assert cache.drop_pod(pod(6, "Succeeded")) == JOB
    assert (phases(cache), cache.pods.gone(JOB)) == (["Succeeded"], [NAME])
    cache.pods.prune(JOB, [NAME])
    assert len(cache.pods) == 0


def test_a_pod_that_we_deleted_is_not_deleted_again() -> None:
    cache, until = cache_with_job(), datetime(2026, 1, 1, tzinfo=UTC)
    cache.pods.put(pod(5))
    cache.pods.mark_deleted(JOB, NAME, "uid-of-another", None)
    assert phases(cache) == ["Running"]
    cache.pods.mark_deleted(JOB, NAME, f"uid-of-{NAME}", until)
    assert [each.deleting for each in cache.pods.of(JOB)] == [until]


def test_a_list_replaces_what_was_known_in_its_namespace_only() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5))
    cache.children.put("Service", Child(meta("train", 5)))
    assert cache.pods.replace([], "elsewhere") == {JOB}
    assert phases(cache) == ["Running"]
    assert cache.pods.replace([], "here") == {JOB}
    assert len(cache.pods) == 0
    assert cache.children.replace("ConfigMap", []) == {JOB}
    assert set(cache.children.of(JOB)) == {("Service", "train")}


def test_nothing_is_kept_of_a_deleted_job_and_a_new_one_of_its_name_stays() -> None:
    cache = cache_with_job()
    old = next(iter(cache.jobs.values()))
    cache.pods.put(pod(5))
    new = JobView(metadata=Meta("train", "here", uid="uid-of-successor", resource_version="9"))
    key = cache.put_job(TFJOBS, new)
    assert (len(cache.pods), cache.key_of(JOB)) == (0, None)
    cache.drop_job(TFJOBS, old)
    assert cache.jobs[key].metadata.uid == "uid-of-successor"


def test_a_pod_that_loses_its_labels_is_no_task_any_more() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5))
    assert cache.pods.put(pod(6, labels={})) == JOB
    assert len(cache.pods) == 0
