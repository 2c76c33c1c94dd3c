"""The cache: watch events and answers to our own writes, in whatever order they come."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tfyard.backends.kubernetes.cache import Cache
from tfyard.backends.kubernetes.resources import TFJOBS
from tfyard.backends.kubernetes.views import Child, JobView, Meta, Owner, PodCondition, PodStatus, PodView
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
    cache.pods.drop(pod(6))
    cache.apply_response("Pod", pod(5))
    assert phases(cache) == []
    cache.children.put("Service", Child(meta("train", 7)))
    cache.children.drop("Service", Child(meta("train", 8)))
    cache.apply_response("Service", Child(meta("train", 7)))
    assert cache.children.of(JOB) == {}


def test_a_pod_that_succeeded_stays_for_one_more_reconcile() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5, "Succeeded"))
    assert cache.drop_pod(pod(6, "Succeeded")) == [JOB]
    assert (phases(cache), cache.pods.gone(JOB)) == (["Succeeded"], [NAME])
    cache.pods.prune(JOB, [NAME])
    assert len(cache.pods) == 0


def test_a_pod_that_was_taken_away_stays_for_one_more_reconcile() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5))
    said = PodCondition("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")
    cache.drop_pod(PodView(meta(NAME, 6), status=PodStatus(phase="Failed", conditions=(said,))))
    (gone,) = cache.pods.of(JOB)
    assert (gone.reason, gone.message, cache.pods.gone(JOB)) == (said.reason, said.message, [NAME])


def test_a_pod_that_succeeded_stays_for_one_more_reconcile_if_a_list_is_the_first_to_say_that_it_is_gone() -> (
    None
):
    cache = cache_with_job()
    cache.pods.put(pod(5, "Succeeded"))
    cache.pods.replace([], "here")
    cache.pods.replace([], "here")
    assert (phases(cache), cache.pods.gone(JOB)) == (["Succeeded"], [NAME])
    assert cache.pods.of(JOB)[0].deleting, "so that it is written at once"


def test_a_pod_that_was_asked_to_go_leaves_its_name_at_once_however_it_ended() -> None:
    cache, asked = cache_with_job(), {"deletion_timestamp": datetime(2026, 1, 1, tzinfo=UTC)}
    cache.pods.put(pod(5))
    cache.pods.put(pod(6, **asked))
    cache.pods.put(pod(7, "Succeeded", **asked))
    assert [each.asked_to_stop for each in cache.pods.of(JOB)] == [True]
    cache.pods.drop(pod(8, "Succeeded", **asked))
    assert len(cache.pods) == 0


def test_a_list_does_not_forget_who_was_asked_first() -> None:
    cache, asked = cache_with_job(), {"deletion_timestamp": datetime(2026, 1, 1, tzinfo=UTC)}
    cache.pods.put(pod(5, "Succeeded"))
    cache.pods.replace([pod(6, "Succeeded", **asked)], "here")
    assert [each.asked_to_stop for each in cache.pods.of(JOB)] == [False]


def test_our_own_delete_does_not_say_which_came_first() -> None:
    """The program may have ended before the server took the request."""
    cache, until = cache_with_job(), datetime(2026, 1, 1, tzinfo=UTC)
    cache.pods.put(pod(5))
    cache.pods.mark_deleted(JOB, NAME, f"uid-of-{NAME}", until)
    cache.pods.put(pod(6, "Succeeded"))
    cache.pods.put(pod(7, "Succeeded", deletion_timestamp=until))
    assert [each.asked_to_stop for each in cache.pods.of(JOB)] == [False]


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


@pytest.mark.parametrize("owners", [(), (Owner("uid-of-another", controller=True),)])
def test_what_is_given_another_owner_or_none_is_no_longer_the_jobs(owners: tuple[Owner, ...]) -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5))
    cache.children.put("Service", Child(meta("train", 5)))
    taken = pod(6, owner_references=owners)
    assert (cache.pods.disown(taken), cache.pods.put(taken)) == (JOB, owners[0].uid if owners else "")
    service = Child(meta("train", 6, owner_references=owners))
    assert cache.children.disown("Service", service) == JOB
    assert (phases(cache), cache.children.of(JOB)) == ([], {})
    assert cache.pods.disown(pod(7)) == (owners[0].uid if owners else "")
    assert cache.pods.put(pod(7)) == JOB


def test_an_owner_that_was_taken_before_our_last_answer_is_old_news() -> None:
    cache = cache_with_job()
    cache.apply_response("Pod", pod(8))
    assert cache.pods.disown(pod(7, owner_references=())) == ""
    assert phases(cache) == ["Running"]


def test_who_waits_for_names_is_told_when_the_last_of_them_is_free() -> None:
    cache = cache_with_job()
    for name in ("train-worker-0", "train-worker-1"):
        cache.taken_names.add(JOB, ("Pod", "here", name))
    stranger = {"owner_references": (Owner("uid-of-predecessor", controller=True),)}
    assert cache.drop_pod(pod(5, **stranger)) == ["uid-of-predecessor"]
    assert cache.drop_child("Service", Child(meta("train-worker-1", 6, **stranger))) == ["uid-of-predecessor"]
    assert cache.taken_names.waiting_for("Pod", "elsewhere") == []
    assert cache.taken_names.waiting_for("Pod", "here") == [JOB]
    assert cache.drop_pod(PodView(meta("train-worker-1", 7, owner_references=()))) == ["", JOB]
