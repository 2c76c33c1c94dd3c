"""Metrics as Prometheus reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Gauge

from tests.controller.prometheus import Samples, parse
from tfyard.controller.metrics import SECONDS, Metrics
from tfyard.model import Create, Delete, DeleteJob, Job, RoleStatus, Status
from tfyard.model.status import Condition


def samples(metrics: Metrics, name: str) -> Samples:
    return parse(metrics.render())[name].samples


def test_a_family_is_help_type_and_samples() -> None:
    metrics = Metrics()
    metrics.api_writes.labels("update", "tfjobs/status").inc(2)
    metrics.api_writes.labels("update", "tfjobs/status").inc()
    metrics.api_writes.labels("create", "pods").inc()
    lines = metrics.render().splitlines()
    first = lines.index("# HELP tfyard_api_writes_total Requests that write")
    assert lines[first + 1 : first + 4] == [
        "# TYPE tfyard_api_writes_total counter",
        'tfyard_api_writes_total{resource="tfjobs/status",verb="update"} 3.0',
        'tfyard_api_writes_total{resource="pods",verb="create"} 1.0',
    ]


def test_a_metric_without_labels_is_there_from_the_start() -> None:
    families = parse(Metrics().render())
    assert families["tfyard_queue_depth"].samples == {("tfyard_queue_depth", ()): 0}
    assert families["created_pods_total"].samples == {("created_pods_total", ()): 0}


def test_a_gauge_goes_down_and_a_counter_does_not() -> None:
    metrics = Metrics()
    metrics.queue_depth.set(3)
    metrics.queue_depth.set(1.5)
    assert samples(metrics, "tfyard_queue_depth") == {("tfyard_queue_depth", ()): 1.5}
    with pytest.raises(ValueError, match="can only be incremented"):
        metrics.pods_created.inc(-1)


def test_a_histogram_counts_all_that_is_not_longer_than_a_bound() -> None:
    metrics, name = Metrics(), "tfyard_reconcile_seconds"
    for value in (0.05, 0.1, 0.5, 30):
        metrics.reconcile_seconds.observe(value)
    found = samples(metrics, name)
    bounds = {float(dict(labels)["le"]): count for (_, labels), count in found.items() if labels}
    assert list(bounds) == [*SECONDS, float("inf")]
    assert (bounds[0.05], bounds[0.1], bounds[0.5], bounds[1], bounds[10]) == (1, 2, 3, 3, 3)
    assert bounds[float("inf")] == found[f"{name}_count", ()] == 4
    assert found[f"{name}_sum", ()] == 30.65


@given(st.dictionaries(st.text(), st.floats(allow_nan=False)), st.text(min_size=1))
def test_every_label_value_number_and_help_is_read_back_as_it_was(
    values: dict[str, float], said: str
) -> None:
    metrics = Metrics()
    gauge = Gauge("g", f"about {said}", ("name",), registry=metrics.registry)
    for name, value in values.items():
        gauge.labels(name).set(value)
    family = parse(metrics.render())["g"]
    assert family.samples == {("g", (("name", name),)): value for name, value in values.items()}
    assert family.help == f"about {said}"


def test_a_sample_with_too_few_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="label"):
        Metrics().api_writes.labels("only one")


def test_two_metrics_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Duplicated"):
        Gauge("tfyard_queue_depth", "again", registry=Metrics().registry)


UPSTREAM = {f"training_operator_jobs_{verb}_total" for verb in ("created", "deleted", "successful")}
UPSTREAM |= {f"training_operator_jobs_{verb}_total" for verb in ("failed", "restarted")}
UPSTREAM |= {"created_pods_total", "deleted_pods_total", "failed_pods_total"}
UPSTREAM |= {"created_pod_groups_total", "deleted_pod_groups_total"}
UPSTREAM |= {"succeeded_service_creation_total", "failed_service_creation_total"}
OURS = {
    "tfyard_queue_depth": "gauge",
    "tfyard_reconcile_seconds": "histogram",
    "tfyard_api_writes_total": "counter",
    "tfyard_watch_restarts_total": "counter",
    "tfyard_is_leader": "gauge",
    "tfyard_missing_permissions": "gauge",
    "tfyard_seconds_without_leader": "gauge",
    "tfyard_unreadable_objects": "gauge",
    "tfyard_refused_statuses": "gauge",
    "tfyard_stalled_jobs": "gauge",
}


def test_the_operator_has_upstreams_metrics_and_its_own() -> None:
    families = parse(Metrics().render())
    types = {name: family.type for name, family in families.items()}
    assert types == dict.fromkeys(UPSTREAM, "counter") | OURS


def test_two_operators_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.pods_created.inc()
    assert samples(other, "created_pods_total") == {("created_pods_total", ()): 0}


def test_jobs_are_counted_by_namespace_as_upstreams_dashboards_expect_it() -> None:
    metrics = Metrics()
    failed = Status(
        conditions=(Condition("Failed", "True"),), replica_statuses={"Worker": RoleStatus(failed=2)}
    )
    metrics.count_status(Job(name="train", namespace="team-a"), Status(), failed)
    metrics.api_writes.labels("create", "pods").inc(64)
    families = parse(metrics.render())
    name = "training_operator_jobs_failed_total"
    assert families[name].samples == {(name, (("framework", "tensorflow"), ("job_namespace", "team-a"))): 1}
    assert families["failed_pods_total"].samples == {("failed_pods_total", ()): 2}
    writes = families["tfyard_api_writes_total"].samples
    assert list(writes.values()) == [64]


def test_what_was_done_is_counted_by_kind() -> None:
    metrics, job = Metrics(), Job(name="train", namespace="team-a")
    made = [
        Create({"kind": kind, "metadata": {"name": "x"}}) for kind in ("Pod", "Pod", "Service", "PodGroup")
    ]
    metrics.count_actions(job, [*made, Delete("Pod", "x"), Delete("Service", "x"), DeleteJob()])
    metrics.count_refused_create("Service")
    metrics.count_refused_create("Pod")
    counted = {name: sum(family.samples.values()) for name, family in parse(metrics.render()).items()}
    assert {name: count for name, count in counted.items() if count} == {
        "created_pods_total": 2,
        "deleted_pods_total": 1,
        "created_pod_groups_total": 1,
        "succeeded_service_creation_total": 1,
        "failed_service_creation_total": 1,
        "training_operator_jobs_deleted_total": 1,
    }
