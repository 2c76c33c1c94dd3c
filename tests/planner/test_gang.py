"""Gang scheduling: what the group asks for, what pods carry, and when they are made."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import Create, Group, Job, Manifest, SchedulingPolicy
from tfyard.planner import Gang, Site

from .builders import (
    chief,
    created,
    job,
    look,
    manifests,
    role,
    servers,
    told,
    workers,
)
from .test_children import LABELS
from .test_pods import OWNER

CORE = Site(gang=Gang(by="core"))
VOLCANO = Site(gang=Gang(by="volcano", scheduler="volcano"))
PLUGINS = Site(gang=Gang(by="scheduler-plugins", scheduler="scheduler-plugins-scheduler"))
ANY = pytest.mark.parametrize("site", [CORE, VOLCANO, PLUGINS], ids=["core", "volcano", "scheduler-plugins"])
GROUP = ("PodGroup", "mnist")
POLICY = SchedulingPolicy(
    min_available=3, queue="research", priority_class="urgent", timeout=60, min_resources={"cpu": "7"}
)


def group_of(asked: Job, site: Site) -> Manifest:
    return manifests(look(asked, site=site), "PodGroup")["mnist"]


def metadata(**more: Any) -> Manifest:
    return {"name": "mnist", "namespace": "lab", "labels": LABELS, "ownerReferences": [OWNER], **more}


def there(spec: Manifest, phase: str = "", **fields: Any) -> dict[str, Any]:
    """What is observed of a group: `look(..., **there(...))`."""
    return {
        "children": frozenset((GROUP, ("Service", "mnist"))),
        "group": Group(spec=spec, phase=phase, **fields),
    }


def members(count: int) -> Manifest:
    return {"schedulingPolicy": {"gang": {"minCount": count}}}


# --- the group


def test_a_core_group_is_whole() -> None:
    assert group_of(job(chief(), workers(3), scheduling=POLICY), CORE) == {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": metadata(),
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }


def test_a_group_of_volcano_is_whole() -> None:
    notes = {
        "volcano.sh/sla-waiting-time": "1h",
        "kubectl.kubernetes.io/last-applied-configuration": "{…}",
    }
    assert group_of(job(chief(), workers(3), scheduling=POLICY, annotations=notes), VOLCANO) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata(annotations={"volcano.sh/sla-waiting-time": "1h"}),
        "spec": {
            "minMember": 3,
            "queue": "research",
            "priorityClassName": "urgent",
            "minResources": {"cpu": "7"},
        },
    }


def test_a_group_of_scheduler_plugins_is_whole() -> None:
    assert group_of(job(chief(), workers(3), scheduling=POLICY), PLUGINS) == {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": metadata(),
        "spec": {"minMember": 3, "scheduleTimeoutSeconds": 60, "minResources": {"cpu": "7"}},
    }


def test_without_a_policy_all_tasks_are_the_gang_and_their_requests_its_needs() -> None:
    needs = {"requests": {"cpu": "1500m", "memory": "2Gi"}, "limits": {"cpu": 4}}
    asked = job(
        role("PS", 2, resources=needs), role("Worker", 3, resources={"limits": {"nvidia.com/gpu": 2}})
    )
    assert group_of(asked, VOLCANO)["spec"] == {
        "minMember": 5,
        "minResources": {"cpu": "3", "memory": "4294967296", "nvidia.com/gpu": "6"},
    }


def test_a_limit_counts_where_there_is_no_request_of_that_name() -> None:
    """As Kubernetes has it: a job file's GPUs are limits, its cpu and memory both."""
    needs = {"requests": {"cpu": "2"}, "limits": {"cpu": "4", "nvidia.com/gpu": 1}}
    asked = job(role("Worker", 2, resources=needs))
    assert group_of(asked, VOLCANO)["spec"]["minResources"] == {"cpu": "4", "nvidia.com/gpu": "2"}


@pytest.mark.parametrize(
    ("cpu", "least"),
    [("1e99999999999999999999", None), ("1e9999999", f"{2**63 - 1}"), ("1e900000", f"{2**63 - 1}")],
)
def test_a_quantity_beyond_all_numbers_does_not_stop_the_decision(cpu: str, least: str | None) -> None:
    asked = job(role("Worker", 1, resources={"requests": {"cpu": cpu}}))
    assert group_of(asked, VOLCANO)["spec"].get("minResources", {}).get("cpu") == least


def test_needs_are_those_of_the_first_members_in_the_order_of_roles() -> None:
    half, large = {"requests": {"cpu": "0.25"}}, {"requests": {"cpu": "1e1"}}
    asked = job(
        role("Chief", 1, resources=half),
        role("Worker", 4, resources=large),
        scheduling=SchedulingPolicy(min_available=2),
    )
    assert group_of(asked, PLUGINS)["spec"] == {"minMember": 2, "minResources": {"cpu": "10250m"}}


@ANY
def test_the_group_is_made_before_anything_else(site: Site) -> None:
    first = next(a for a in look(job(chief(), workers(3)), site=site).actions if isinstance(a, Create))
    assert first.kind == "PodGroup"


def test_when_not_asked_there_is_no_group() -> None:
    asked = job(chief(), workers(3), scheduling=POLICY)
    assert created(look(asked), "PodGroup") == []
    assert "schedulerName" not in manifests(look(asked))["mnist-worker-0"]["spec"]


def test_a_scheduling_policy_without_effect_is_reported_once() -> None:
    asked = job(workers(2), scheduling=SchedulingPolicy())
    text = "schedulingPolicy has no effect: the operator runs without --gang-scheduler"
    first = look(asked)
    assert told(first) == [("Warning", "NoGangScheduler", text)]
    assert told(look(asked, status=first.status)) == []
    here = Site(services="none", ports={task: 4000 + i for i, task in enumerate(asked.tasks())})
    assert told(look(asked, site=here)) == [], "one machine starts all tasks or none"


def test_auto_is_for_jobs_that_ask_and_a_named_scheduler_for_all() -> None:
    auto = Site(gang=Gang(by="volcano", scheduler="volcano", every=False))
    assert created(look(job(workers(2)), site=auto), "PodGroup") == []
    assert created(look(job(workers(2), scheduling=SchedulingPolicy()), site=auto), "PodGroup") == ["mnist"]
    assert created(look(job(workers(2)), site=VOLCANO), "PodGroup") == ["mnist"]


def test_one_task_is_no_gang_but_may_want_another_schedulers_queue() -> None:
    assert created(look(job(workers(1)), site=CORE), "PodGroup") == []
    assert created(look(job(workers(1)), site=VOLCANO), "PodGroup") == ["mnist"]


@ANY
def test_that_a_job_has_a_group_is_remembered_before_its_pods_are_made(site: Site) -> None:
    """Found with pods and without that memory, it would be another operator's, and have none."""
    assert look(job(workers(2)), site=site).urgency == "now"


# --- its members


def test_pods_name_a_core_group_in_their_spec() -> None:
    plain, made = manifests(look(job(workers(2)))), manifests(look(job(workers(2)), site=CORE))
    for name, bare in plain.items():
        spec = {**bare["spec"], "schedulingGroup": {"podGroupName": "mnist"}}
        assert made[name] == {**bare, "spec": spec}


def test_pods_name_a_group_of_scheduler_plugins_by_label() -> None:
    plain, made = manifests(look(job(workers(2)))), manifests(look(job(workers(2)), site=PLUGINS))
    for name, bare in plain.items():
        labels = {**bare["metadata"]["labels"], "scheduling.x-k8s.io/pod-group": "mnist"}
        spec = {**bare["spec"], "schedulerName": "scheduler-plugins-scheduler"}
        assert made[name] == {**bare, "metadata": {**bare["metadata"], "labels": labels}, "spec": spec}


def test_pods_name_a_group_of_volcano_and_their_role_by_annotation() -> None:
    asked = job(servers(1), workers(2))
    plain, made = (
        manifests(look(asked)),
        manifests(look(asked, site=VOLCANO, **there({"minMember": 3}, "Inqueue"))),
    )
    for name, bare in plain.items():
        kind = "ps" if "-ps-" in name else "worker"
        own = {"scheduling.k8s.io/group-name": "mnist", "volcano.sh/task-spec": kind}
        notes = {**bare["metadata"]["annotations"], **own}
        spec = {**bare["spec"], "schedulerName": "volcano"}
        assert made[name] == {**bare, "metadata": {**bare["metadata"], "annotations": notes}, "spec": spec}


def test_another_scheduler_of_the_template_stays_and_is_reported_once() -> None:
    other = replace(
        workers(2), template={"spec": {"schedulerName": "mine", "containers": [{"name": "tensorflow"}]}}
    )
    asked = job(chief(), other)
    first = look(asked, site=PLUGINS)
    text = "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten (Worker)"
    assert ("Warning", "SetPodTemplateSchedulerName", text) in told(first)
    assert manifests(first)["mnist-worker-0"]["spec"]["schedulerName"] == "mine"
    assert manifests(first)["mnist-chief-0"]["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    again = look(asked, status=first.status, site=PLUGINS, **there({"minMember": 3}))
    assert told(again) == []
    assert "SetPodTemplateSchedulerName" not in {reason for _, reason, _ in told(look(asked))}
