"""Kueue: by the job itself, or by groups of pods; never by a queue name alone."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard import formats
from tfyard.model import Amend, Cluster, Job, Manifest
from tfyard.planner import Site

from .builders import begun, chief, created, job, look, manifests, pod, pods, shown, workers

BY_PODS = Site(queues_pods=True)
QUEUED: dict[str, Any] = {"labels": {"kueue.x-k8s.io/queue-name": "research"}}
SERVICE = {"children": frozenset({("Service", "mnist")})}

JOB_FILE = """
name: mnist
image: example/train:1
run: python train.py
worker: 2
queue: research
labels: {team: vision}
"""


def marks(manifest: Manifest) -> dict[str, str]:
    """All that Kueue would read."""
    found = {**manifest["metadata"]["labels"], **manifest["metadata"]["annotations"]}
    return {name: value for name, value in found.items() if "kueue" in name}


def from_job_file() -> Job:
    (document,) = formats.read(JOB_FILE)
    return formats.load(document.data)


def from_tfjob() -> Job:
    return formats.load(formats.dump(from_job_file(), "v1").document)


@pytest.mark.parametrize("read", [from_job_file, from_tfjob])
def test_a_queue_of_the_job_is_no_queue_of_its_pods(read: Any) -> None:
    asked = read()
    assert asked.labels["kueue.x-k8s.io/queue-name"] == "research"
    for manifest in manifests(look(asked)).values():
        assert marks(manifest) == {}


def test_by_flag_pods_of_a_queued_job_have_all_three_marks() -> None:
    plain = manifests(look(job(chief(), workers(2), **QUEUED)))
    made = manifests(look(job(chief(), workers(2), **QUEUED), site=BY_PODS))
    for name, bare in plain.items():
        meta = bare["metadata"]
        own = {"kueue.x-k8s.io/queue-name": "research", "kueue.x-k8s.io/pod-group-name": "mnist"}
        notes = {**meta["annotations"], "kueue.x-k8s.io/pod-group-total-count": "3"}
        assert made[name] == {
            **bare,
            "metadata": {**meta, "labels": {**meta["labels"], **own}, "annotations": notes},
        }


def test_by_flag_pods_of_a_job_without_a_queue_have_none() -> None:
    for manifest in manifests(look(job(workers(2)), site=BY_PODS)).values():
        assert marks(manifest) == {}


def test_a_replacement_names_the_count_that_kueue_was_told_at_first() -> None:
    asked = job(chief(), workers(2, "ExitCode"), **QUEUED)
    status = begun(asked, site=BY_PODS)
    assert status.cluster == Cluster(queued=3)
    here = [pod("chief-0"), pod("worker-0", "Succeeded", exit_code=0)]
    decision = look(asked, *here, status=status, site=Site(), **SERVICE)  # and the flag is gone since
    assert marks(manifests(decision)["mnist-worker-1"])["kueue.x-k8s.io/pod-group-total-count"] == "3"


def test_a_job_that_began_without_marks_goes_on_without() -> None:
    asked = job(workers(2), **QUEUED)
    decision = look(asked, pod("worker-0"), status=begun(asked), site=BY_PODS)
    assert marks(manifests(decision)["mnist-worker-1"]) == {}


def test_a_scaled_job_makes_no_pods_that_kueue_would_delete() -> None:
    status = begun(job(workers(2), **QUEUED), site=BY_PODS)
    decision = look(job(workers(4), **QUEUED), *pods("worker-0", "worker-1"), status=status, site=BY_PODS)
    assert created(decision) == []
    assert "Blocked=True (QueuedWithFewerPods)" in shown(decision.status)


def test_a_resumed_job_queues_for_what_is_left() -> None:
    asked = job(workers(3), success="AllWorkers", **QUEUED)
    here = [pod("worker-0", "Succeeded", exit_code=0), pod("worker-1"), pod("worker-2")]
    status = begun(asked, *here, site=BY_PODS)
    resting = replace(asked, run_policy=replace(asked.run_policy, suspend=True))
    asleep = look(resting, *here, status=status, site=BY_PODS).status
    resumed = look(asked, status=asleep, site=BY_PODS)
    assert created(resumed) == ["mnist-worker-1", "mnist-worker-2"]
    counts = {marks(m)["kueue.x-k8s.io/pod-group-total-count"] for m in manifests(resumed).values()}
    assert counts == {"2"}


def test_a_failed_group_releases_its_quota_by_an_annotation_of_one_pod() -> None:
    asked = job(workers(2), **QUEUED)
    dead = pod("worker-0", "Failed", exit_code=1)
    failed = look(asked, dead, pod("worker-1"), status=begun(asked, site=BY_PODS), site=BY_PODS, **SERVICE)
    word = {"metadata": {"annotations": {"kueue.x-k8s.io/retriable-in-group": "false"}}}
    assert failed.actions == (Amend("Pod", "mnist-worker-0", word),)
    said = replace(dead, final=True)
    assert look(asked, said, pod("worker-1"), status=failed.status, site=BY_PODS, **SERVICE).actions == ()


def test_a_group_that_succeeded_or_is_deleted_needs_no_annotation() -> None:
    done = [pod(f"worker-{i}", "Succeeded", exit_code=0) for i in range(2)]
    for asked in (job(workers(2), **QUEUED), job(workers(2), clean="All", **QUEUED)):
        ended = look(asked, *done, status=begun(asked, site=BY_PODS), site=BY_PODS)
        assert not any(isinstance(action, Amend) for action in ended.actions)


def test_how_many_a_group_has_is_remembered_before_its_pods_are_made() -> None:
    assert look(job(workers(2), **QUEUED), site=BY_PODS).urgency == "now"
    assert look(job(workers(2)), site=BY_PODS).urgency == "later"
