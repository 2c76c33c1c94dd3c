"""The cache: watch events and answers to our own writes, in whatever order they come."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tfyard.backends.kubernetes.cache import Cache
from tfyard.backends.kubernetes.resources import child_kind
from tfyard.backends.kubernetes.views import Child, StoredJob
from tfyard.kube.decoding import decode
from tfyard.kube.requests import TFJOBS
from tfyard.model.names import REPLICA_INDEX, REPLICA_TYPE
from tfyard.views.metadata import ObjectMeta, OwnerReference
from tfyard.views.pods import PodCondition, PodStatus, PodView

JOB, NAME = "here/TFJob.kubeflow.org/train/uid-of-job", "train-worker-0"
LABELS = {REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}


def owner(uid: str) -> OwnerReference:
    return OwnerReference(uid, controller=True, api_version="kubeflow.org/v1", kind="TFJob", name="train")


def key_of(references: tuple[OwnerReference, ...]) -> str:
    return JOB.replace("uid-of-job", references[0].uid) if references else ""


def job(version: int, uid: str = "uid-of-job") -> StoredJob:
    meta = ObjectMeta("train", "here", uid=uid, resource_version=str(version))
    return StoredJob(metadata=meta, api_version="kubeflow.org/v1", kind="TFJob")


def meta(name: str, version: int, **fields: Any) -> ObjectMeta:
    references = (owner("uid-of-job"),)
    values = {"uid": f"uid-of-{name}", "owner_references": references, "labels": LABELS, **fields}
    return ObjectMeta(name, "here", resource_version=str(version), **values)


def pod(version: int, phase: str = "Running", **fields: Any) -> PodView:
    return PodView(meta(NAME, version, **fields), status=PodStatus(phase=phase))


def cache_with_job() -> Cache:
    cache = Cache()
    cache.put_job(TFJOBS, job(1))
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
    disruption = PodCondition("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")
    cache.drop_pod(PodView(meta(NAME, 6), status=PodStatus(phase="Failed", conditions=(disruption,))))
    (gone,) = cache.pods.of(JOB)
    assert (gone.reason, gone.message, cache.pods.gone(JOB)) == (
        disruption.reason,
        disruption.message,
        [NAME],
    )


def test_a_pod_that_succeeded_stays_for_one_more_reconcile_if_a_list_is_the_first_to_say_that_it_is_gone() -> (
    None
):
    cache = cache_with_job()
    cache.pods.put(pod(5, "Succeeded"))
    cache.pods.replace([], "here")
    cache.pods.replace([], "here")
    assert (phases(cache), cache.pods.gone(JOB)) == (["Succeeded"], [NAME])
    assert cache.pods.of(JOB)[0].deleting, "so that it is written at once"


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_pod_that_we_deleted_leaves_its_name_at_once_and_one_that_others_deleted_after_a_reconcile(
    is_ours: bool,
) -> None:
    until = datetime(2026, 1, 1, tzinfo=UTC)
    cache, asked = cache_with_job(), {"deletion_timestamp": until}
    cache.pods.put(pod(5))
    if is_ours:
        cache.pods.mark_deleted(JOB, NAME, f"uid-of-{NAME}", until)
    cache.pods.put(pod(6, **asked))
    cache.pods.put(pod(7, "Succeeded", **asked))
    assert [each.asked_to_stop for each in cache.pods.of(JOB)] == [True]
    cache.pods.drop(pod(8, "Succeeded", **asked))
    assert cache.pods.gone(JOB) == ([] if is_ours else [NAME])
    cache.pods.prune(JOB, [NAME])
    assert len(cache.pods) == 0


def test_a_pod_that_was_taken_back_is_none_of_the_job_whatever_the_watch_reports_of_it_later() -> None:
    """A kubelet may start it before the delete arrives. It then looked like a task that somebody stopped."""
    cache, asked = cache_with_job(), {"deletion_timestamp": datetime(2026, 1, 1, tzinfo=UTC)}
    cache.apply_response("Pod", pod(5, "Pending"))
    cache.pods.take_back(JOB, NAME, f"uid-of-{NAME}")
    for view in (pod(5, "Pending"), pod(6), pod(7, **asked)):
        assert cache.pods.put(view) == ""
    cache.drop_pod(pod(8, **asked))
    assert phases(cache) == []
    assert cache.pods.put(pod(9, uid="of-the-next")) == JOB


def test_a_list_does_not_forget_that_a_pod_was_asked_to_stop_before_its_end() -> None:
    cache, asked = cache_with_job(), {"deletion_timestamp": datetime(2026, 1, 1, tzinfo=UTC)}
    cache.pods.put(pod(5, "Succeeded"))
    cache.pods.replace([pod(6, "Succeeded", **asked)], "here")
    assert [each.asked_to_stop for each in cache.pods.of(JOB)] == [False]


def test_our_own_delete_does_not_say_which_came_first() -> None:
    """The program may have ended before the server accepted the request."""
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


def test_nothing_is_kept_of_a_job_whose_objects_are_gone_and_a_new_one_of_its_name_stays() -> None:
    cache = cache_with_job()
    old = next(iter(cache.jobs.values()))
    cache.pods.put(pod(5))
    key = cache.put_job(TFJOBS, job(9, "uid-of-successor"))
    assert cache.key_of(JOB) is None
    cache.drop_job(TFJOBS, old)
    assert cache.leftovers("here") == {("Pod", NAME)}
    cache.drop_pod(pod(6))
    assert len(cache.pods) == 0
    assert cache.jobs[key].metadata.uid == "uid-of-successor"


def test_a_pod_that_loses_its_labels_is_no_task_any_more() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5))
    assert cache.pods.put(pod(6, labels={})) == JOB
    assert len(cache.pods) == 0


@pytest.mark.parametrize("owners", [(), (owner("uid-of-another"),)])
def test_an_object_with_another_owner_or_none_is_no_longer_the_jobs(
    owners: tuple[OwnerReference, ...],
) -> None:
    cache = cache_with_job()
    cache.pods.put(pod(5))
    cache.children.put("Service", Child(meta("train", 5)))
    taken = pod(6, owner_references=owners)
    assert (cache.pods.disown(taken), cache.pods.put(taken)) == (JOB, key_of(owners))
    service = Child(meta("train", 6, owner_references=owners))
    assert cache.children.disown("Service", service) == JOB
    assert (phases(cache), cache.children.of(JOB)) == ([], {})
    assert cache.pods.disown(pod(7)) == key_of(owners)
    assert cache.pods.put(pod(7)) == JOB


KINDS = {"Service": "train", "ConfigMap": "train-cluster-0a1b", "Deployment": "train-tensorboard"}
KINDS |= {"PodGroup": "train"}


@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_not_in_the_jobs_namespace_is_not_the_jobs_whichever_comes_first(is_known: bool) -> None:
    cache = cache_with_job() if is_known else Cache()
    for kind, name in KINDS.items():
        cache.children.put(kind, Child(meta(name, 2)))
        cache.children.put(kind, Child(replace(meta(name, 3), namespace="elsewhere", uid="forged")))
    cache.pods.put(pod(4))
    cache.pods.put(PodView(replace(meta(NAME, 5), namespace="elsewhere", uid="forged")))
    cache.put_job(TFJOBS, job(1))
    assert {(kind, each.uid) for (kind, _), each in cache.children.of(JOB).items()} == {
        (kind, f"uid-of-{name}") for kind, name in KINDS.items()
    }
    assert [each.uid for each in cache.pods.of(JOB)] == [f"uid-of-{NAME}"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_with_a_name_that_no_object_of_the_job_has_is_not_the_jobs(kind: str) -> None:
    cache = cache_with_job()
    for name in ("other", "train-worker", "train-worker-0-x", "train-", "retrain"):
        assert cache.children.put(kind, Child(meta(name, 2))) == ""
    assert cache.pods.put(PodView(meta("train-worker-1", 2))) == "", "its label says that it is worker-0"
    assert cache.children.put(kind, Child(meta(KINDS[kind], 3))) == JOB


def test_an_owner_that_was_taken_before_our_last_answer_is_old_news() -> None:
    cache = cache_with_job()
    cache.apply_response("Pod", pod(8))
    assert cache.pods.disown(pod(7, owner_references=())) == ""
    assert phases(cache) == ["Running"]


def test_a_job_that_waits_for_names_is_woken_when_the_last_of_them_is_free() -> None:
    cache = cache_with_job()
    for name in ("train-worker-0", "train-worker-1"):
        cache.taken_names.add(JOB, ("Pod", "here", name))
    before = (owner("uid-of-predecessor"),)
    assert cache.drop_pod(pod(5, owner_references=before)) == [key_of(before)]
    service = Child(meta("train-worker-1", 6, owner_references=before))
    assert cache.drop_child("Service", service) == [key_of(before)]
    assert cache.taken_names.waiting_for("Pod", "elsewhere") == []
    assert cache.taken_names.waiting_for("Pod", "here") == [JOB]
    assert cache.drop_pod(PodView(meta("train-worker-1", 7, owner_references=()))) == ["", JOB]


def test_objects_of_a_deleted_job_have_their_names_until_they_are_gone() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(2))
    cache.children.put("Service", Child(meta("train", 3)))
    assert cache.leftovers("here") == set()
    cache.drop_job(TFJOBS, job(4))
    assert cache.leftovers("here") == {("Pod", NAME), ("Service", "train")}
    assert cache.leftovers("elsewhere") == set()
    cache.drop_pod(pod(5))
    cache.drop_child("Service", Child(meta("train", 6)))
    assert cache.leftovers("here") == set()
    assert (len(cache.pods), len(cache.children)) == (0, 0)


def test_a_pod_that_had_only_its_end_to_report_goes_with_its_job() -> None:
    cache = cache_with_job()
    cache.pods.put(pod(2, "Succeeded"))
    cache.drop_pod(pod(3, "Succeeded"))
    cache.drop_job(TFJOBS, job(4))
    assert (cache.leftovers("here"), len(cache.pods)) == (set(), 0)


def test_a_pod_group_whose_spec_is_nested_deeper_than_python_can_compare_is_stored() -> None:
    cache, job_of = Cache(), {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "j", "uid": "u"}
    for version in ("1", "2"):
        names = {"name": "j", "namespace": "n", "uid": "x", "resourceVersion": version}
        head = msgspec.json.encode({**names, "ownerReferences": [{**job_of, "controller": True}]})
        spec = b'{"a":' * 3000 + version.encode() + b"}" * 3000
        view = decode(child_kind("PodGroup").one, b'{"metadata":%s,"spec":%s}' % (head, spec))
        assert cache.children.put("PodGroup", view) == "n/TFJob.kubeflow.org/j/u"
