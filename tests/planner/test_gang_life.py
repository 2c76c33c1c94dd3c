"""A gang over its life: when its pods are made, how its group follows, and how both end."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import Amend, Cluster, Manifest, Observed
from tfyard.planner import Site
from tfyard.planner.gang import PATIENCE

from .builders import (
    NOTHING,
    at,
    begun,
    chief,
    created,
    deleted,
    job,
    look,
    manifests,
    pod,
    pods,
    role,
    shown,
    told,
    workers,
)
from .test_gang import ANY, CORE, PLUGINS, VOLCANO, group_of, members, there

# --- Volcano lets pods be made when there is room


@pytest.mark.parametrize("phase", ["", "Pending"])
def test_pods_wait_until_volcano_has_room(phase: str) -> None:
    asked = job(workers(2))
    status = begun(asked, site=VOLCANO)
    waiting = look(asked, status=status, site=VOLCANO, now=at(10), **there({"minMember": 2}, phase))
    assert (created(waiting), waiting.status) == ([], status), "a short wait is not worth a write"
    assert waiting.wake_after == PATIENCE - 10
    ready = look(asked, status=status, site=VOLCANO, now=at(11), **there({"minMember": 2}, "Inqueue"))
    assert created(ready) == ["mnist-worker-0", "mnist-worker-1"]


def test_a_long_wait_says_what_for() -> None:
    asked = job(workers(2))
    status = begun(asked, site=VOLCANO)
    unseen = look(asked, status=status, site=VOLCANO, now=at(PATIENCE), **there({"minMember": 2}))
    assert shown(unseen.status)[-1] == "Blocked=True (PodGroupNotSeen)"
    text = "Volcano has not processed PodGroup mnist yet: is its scheduler running?"
    assert told(unseen) == [("Warning", "PodGroupNotSeen", text)]
    queued = there({"minMember": 2, "queue": "research"}, "Pending")
    pending = look(asked, status=unseen.status, site=VOLCANO, now=at(60), **queued)
    assert [message for _, _, message in told(pending)] == [
        "PodGroup mnist is Pending: waiting for capacity in Volcano's queue research"
    ]
    again = look(asked, status=pending.status, site=VOLCANO, now=at(90), **queued)
    assert (again.status, again.events, again.wake_after) == (pending.status, (), None)
    ready = look(asked, status=again.status, site=VOLCANO, now=at(99), **there({"minMember": 2}, "Inqueue"))
    assert shown(ready.status)[-1] == "Blocked=False (Unblocked)"
    assert created(ready) == ["mnist-worker-0", "mnist-worker-1"]


def test_a_gang_that_has_begun_replaces_its_members_whatever_volcano_says() -> None:
    asked = job(workers(2, "ExitCode"))
    seen = there({"minMember": 2}, "Pending")
    status = begun(asked, site=VOLCANO)
    assert created(look(asked, pod("worker-0"), status=status, site=VOLCANO, **seen)) == ["mnist-worker-1"]


# --- groups follow their job


@pytest.mark.parametrize("site", [VOLCANO, PLUGINS])
def test_a_scaled_job_amends_its_group_once(site: Site) -> None:
    needs = {"requests": {"cpu": 1, "nvidia.com/gpu": 1}}
    small, large = job(role("Worker", 2, resources=needs)), job(role("Worker", 4, resources=needs))
    status = begun(small, site=site)
    spec = group_of(small, site)["spec"]
    decision = look(large, *pods("worker-0", "worker-1"), status=status, site=site, **there(spec, "Running"))
    wanted = {"cpu": "4", "nvidia.com/gpu": "4"}
    assert [a for a in decision.actions if isinstance(a, Amend)] == [
        Amend("PodGroup", "mnist", {"spec": {"minMember": 4, "minResources": wanted}})
    ]
    spec = {**spec, "minMember": 4, "minResources": wanted}
    after = look(large, *pods("worker-0", "worker-1"), status=status, site=site, **there(spec, "Running"))
    assert not any(isinstance(action, Amend) for action in after.actions)


def test_a_resource_that_is_no_longer_needed_is_removed_and_fields_that_the_job_does_not_set_stay() -> None:
    asked = job(role("Worker", 2, resources={"requests": {"cpu": 1}}))
    spec = {
        "minMember": 2,
        "queue": "default",
        "minResources": {"cpu": "2", "memory": "1"},
        "minTaskMember": {},
    }
    decision = look(asked, status=begun(asked, site=VOLCANO), site=VOLCANO, **there(spec))
    patch = {"spec": {"minResources": {"cpu": "2", "memory": None}}}
    assert decision.actions == (Amend("PodGroup", "mnist", patch),)


def test_a_core_group_cannot_change_so_pods_that_cannot_fill_it_go_alone() -> None:
    status = begun(job(workers(4)), site=CORE)
    scaled = look(
        job(workers(3)),
        *(pod(f"worker-{i}", member=True) for i in range(2)),
        status=status,
        site=CORE,
        **there(members(4)),
    )
    assert not any(isinstance(action, Amend) for action in scaled.actions)
    assert "schedulingGroup" not in manifests(scaled)["mnist-worker-2"]["spec"]


@pytest.mark.parametrize("site", [CORE, PLUGINS])
def test_a_replacement_joins_while_the_group_can_be_filled_and_goes_alone_after(site: Site) -> None:
    """Neither counts finished pods: the replacement would wait for members that never come."""

    def is_member(manifest: Manifest) -> bool:
        labels = manifest["metadata"]["labels"]
        return "schedulingGroup" in manifest["spec"] or "scheduling.x-k8s.io/pod-group" in labels

    asked = job(chief(), workers(3, "ExitCode"))
    seen = there(group_of(asked, site)["spec"])
    status = begun(asked, site=site)
    most = [pod(name, member=True) for name in ("chief-0", "worker-0", "worker-1")]
    assert is_member(manifests(look(asked, *most, status=status, site=site, **seen))["mnist-worker-2"])
    most[1] = pod("worker-0", "Succeeded", exit_code=0)
    alone = manifests(look(asked, *most, status=status, site=site, **seen))["mnist-worker-2"]
    assert not is_member(alone)
    assert alone["spec"].get("schedulerName", "") == (site.gang.scheduler if site.gang else "")


def test_a_pod_that_waits_in_a_group_that_can_no_longer_be_filled_is_created_again_outside_of_it() -> None:
    asked = job(chief(), workers(3, "ExitCode"))
    status = begun(asked, site=CORE)
    waiting = pod("worker-2", "Pending", member=True, waits=True)
    here = [
        pod("chief-0", member=True),
        pod("worker-0", member=True),
        pod("worker-1", "Succeeded", exit_code=0),
    ]
    decision = look(asked, *here, waiting, status=status, site=CORE, **there(members(4)))
    assert deleted(decision) == ["mnist-worker-2"]
    assert decision.status.replica_statuses["Worker"].restarts == 0
    again = look(asked, *here, status=decision.status, site=CORE, **there(members(4)))
    assert "schedulingGroup" not in manifests(again)["mnist-worker-2"]["spec"]
    starting = replace(waiting, waits=False)  # it has a node, and pulls its image
    assert deleted(look(asked, *here, starting, status=status, site=CORE, **there(members(4)))) == []


def test_volcano_counts_finished_members_so_a_replacement_always_joins() -> None:
    asked = job(chief(), workers(3, "ExitCode"))
    here = [pod("chief-0"), pod("worker-0", "Succeeded", exit_code=0), pod("worker-1")]
    seen = there({"minMember": 4}, "Running")
    made = manifests(look(asked, *here, status=begun(asked, site=VOLCANO), site=VOLCANO, **seen))
    assert made["mnist-worker-2"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "mnist"


def test_volcano_does_not_wait_for_a_finished_member_whose_pod_was_deleted() -> None:
    asked = job(chief(), workers(3, "ExitCode"))
    done, seen = pod("worker-0", "Succeeded", exit_code=0), there({"minMember": 4}, "Running")
    others = pods("chief-0", "worker-1", "worker-2")
    status = look(asked, done, *others, status=begun(asked, site=VOLCANO), site=VOLCANO, **seen).status
    assert look(asked, done, *others, status=status, site=VOLCANO, **seen).actions == ()
    amended = look(asked, *others, status=status, site=VOLCANO, **seen).actions
    assert amended == (Amend("PodGroup", "mnist", {"spec": {"minMember": 3}}),)


# --- the end, and rest


@ANY
@pytest.mark.parametrize("clean", ["None", "Running", "All"])
def test_the_group_goes_when_the_job_has_ended_whatever_becomes_of_pods(site: Site, clean: Any) -> None:
    asked = job(workers(2), clean=clean)
    spec = group_of(asked, site)["spec"]
    done = [pod(f"worker-{i}", "Succeeded", exit_code=0) for i in range(2)]
    ended = look(asked, *done, status=begun(asked, site=site), site=site, **there(spec, "Running"))
    assert deleted(ended, "PodGroup") == ["mnist"]
    leaving = look(asked, *done, status=ended.status, site=site, **there(spec, deleting=True))
    assert deleted(leaving, "PodGroup") == [], "asked once is enough"


@ANY
def test_the_group_rests_with_the_job_and_comes_back_with_it(site: Site) -> None:
    asked, resting = job(workers(2)), job(workers(2), suspend=True)
    spec = group_of(asked, site)["spec"]
    status = begun(asked, site=site)
    asleep = look(resting, *pods("worker-0"), status=status, site=site, **there(spec, "Running"))
    assert deleted(asleep, "PodGroup") == ["mnist"]
    still = there(spec, deleting=True)
    early = look(asked, status=asleep.status, site=site, **still)
    assert (created(early), created(early, "PodGroup")) == ([], []), "the old group must be gone first"
    late = look(asked, status=early.status, site=site, now=at(PATIENCE), **still)
    assert shown(late.status)[-1] == "Blocked=True (PodGroupDeleting)"
    assert created(look(asked, status=early.status, site=site), "PodGroup") == ["mnist"]


def test_a_core_group_that_is_deleted_while_pods_run_serves_them_until_they_end() -> None:
    """Kubernetes keeps it as long as one of its pods runs; a replacement must not wait for that."""
    asked = job(workers(2, "ExitCode"))
    seen = there(members(2), deleting=True)
    decision = look(asked, pod("worker-0"), status=begun(asked, site=CORE), site=CORE, **seen)
    assert created(decision) == ["mnist-worker-1"]


def test_tasks_that_had_finished_before_a_resume_are_not_waited_for() -> None:
    asked = job(chief(), workers(3))
    here = [
        pod("chief-0"),
        *(pod(f"worker-{i}", "Succeeded", exit_code=0) for i in range(2)),
        pod("worker-2"),
    ]
    status = begun(asked, *here, site=VOLCANO)
    resting = replace(asked, run_policy=replace(asked.run_policy, suspend=True))
    asleep = look(resting, *here, status=status, site=VOLCANO).status
    resumed = look(asked, status=asleep, site=VOLCANO)
    assert manifests(resumed, "PodGroup")["mnist"]["spec"]["minMember"] == 2
    assert resumed.status.cluster == Cluster(gang="volcano")
    seen = there({"minMember": 2}, "Inqueue")
    made = created(look(asked, status=resumed.status, site=VOLCANO, **seen))
    assert made == ["mnist-chief-0", "mnist-worker-2"]


# --- decided once, kept


def test_a_job_that_began_without_a_gang_goes_on_without() -> None:
    asked = job(workers(3, "ExitCode"))
    for status in (begun(asked), NOTHING):  # ours before the flag, or another operator's
        decision = look(asked, *pods("worker-0", "worker-1"), status=status, site=CORE)
        assert created(decision, "PodGroup") == []
        assert "schedulingGroup" not in manifests(decision)["mnist-worker-2"]["spec"]
        assert decision.status.cluster is not None
        assert decision.status.cluster.gang is None


@pytest.mark.parametrize("site", [Site(), CORE])
def test_a_job_that_began_in_a_gang_that_is_no_more_goes_on_without(site: Site) -> None:
    """Whoever turned Volcano off may have removed it, too: nothing would ever schedule for it."""
    asked = job(workers(2, "ExitCode"))
    decision = look(asked, pod("worker-0"), status=begun(asked, site=VOLCANO), site=site)
    made = manifests(decision)["mnist-worker-1"]
    assert created(decision, "PodGroup") == []
    assert "schedulerName" not in made["spec"]
    assert "schedulingGroup" not in made["spec"]


def test_a_pod_that_waits_for_a_gang_scheduler_that_is_gone_is_created_again_without_it() -> None:
    asked = job(workers(3))
    here = [pod("worker-0", member=True), pod("worker-1", "Pending", member=True, waits=True)]
    left = look(asked, *here, status=begun(asked, site=VOLCANO), site=Site())
    assert deleted(left) == ["mnist-worker-1"]
    assert "schedulerName" not in manifests(left)["mnist-worker-2"]["spec"]
    taken_over = look(asked, *here, site=Site())  # from another operator, whose group is still there
    assert deleted(taken_over) == []


def test_a_resumed_job_begins_anew_with_what_is_there_now() -> None:
    resting = look(job(workers(2), suspend=True), status=begun(job(workers(2)))).status
    decision = look(job(workers(2)), status=resting, site=CORE)
    assert created(decision, "PodGroup") == ["mnist"]
    assert decision.status.cluster == Cluster(gang="core")


def test_a_first_pass_whose_status_was_lost_knows_its_gang_by_the_group() -> None:
    asked = job(workers(3))
    decision = look(asked, pod("worker-0", member=True), site=CORE, **there(members(3)))
    assert "schedulingGroup" in manifests(decision)["mnist-worker-1"]["spec"]


def test_nothing_is_remembered_of_a_gang_where_there_is_none() -> None:
    assert look(job(workers(2))).status.cluster == Cluster()


@ANY
def test_a_gang_comes_to_rest(site: Site) -> None:
    """What was decided and done is not decided again."""
    asked = job(chief(), workers(3))
    spec = group_of(asked, site)["spec"]
    first = look(asked, site=site)
    everybody = pods("chief-0", "worker-0", "worker-1", "worker-2")
    running = look(asked, *everybody, status=first.status, site=site, **there(spec, "Running"))
    assert running.actions == ()
    seen = Observed(status=running.status, pods=tuple(everybody), **there(spec, "Running"))
    assert (
        look(asked, *seen.pods, status=seen.status, site=site, **there(spec, "Running")).status == seen.status
    )
