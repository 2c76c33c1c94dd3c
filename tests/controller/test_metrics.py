"""Metrics as Prometheus reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controller.prometheus import parse
from tfyard.controller.counted import Metrics
from tfyard.controller.metrics import Counter, Gauge, Histogram, Metric, Registry


def rendered(*metrics: Metric) -> str:
    registry = Registry()
    registry.add(*metrics)
    return registry.render()


def test_a_family_is_help_type_and_samples() -> None:
    requests = Counter("requests_total", "How many", ("verb", "code"))
    requests.inc("GET", "200", by=2)
    requests.inc("GET", "200")
    requests.inc("DELETE", "404")
    assert rendered(requests).splitlines() == [
        "# HELP requests_total How many",
        "# TYPE requests_total counter",
        'requests_total{verb="DELETE",code="404"} 1',
        'requests_total{verb="GET",code="200"} 3',
    ]


def test_a_metric_without_labels_is_there_from_the_start() -> None:
    assert rendered(Gauge("depth", "d")).splitlines()[-1] == "depth 0"


def test_a_gauge_goes_down_and_a_counter_does_not() -> None:
    depth, made = Gauge("depth", "d"), Counter("made_total", "m")
    depth.set(3)
    depth.set(1.5)
    assert depth.value() == 1.5
    with pytest.raises(ValueError, match="cannot go down"):
        made.inc(by=-1)


def test_a_histogram_counts_all_that_is_not_longer_than_a_bound() -> None:
    seconds = Histogram("seconds", "s", (0.1, 1))
    for value in (0.05, 0.1, 0.5, 30):
        seconds.observe(value)
    assert rendered(seconds).splitlines()[2:] == [
        'seconds_bucket{le="0.1"} 2',
        'seconds_bucket{le="1"} 3',
        'seconds_bucket{le="+Inf"} 4',
        "seconds_sum 30.65",
        "seconds_count 4",
    ]


@given(st.dictionaries(st.text(), st.floats(allow_nan=False)), st.text(min_size=1))
def test_every_label_value_number_and_help_is_read_back_as_it_was(
    values: dict[str, float], said: str
) -> None:
    gauge = Gauge("g", f"about {said}", ("name",))
    for name, value in values.items():
        gauge.set(value, name)
    family = parse(rendered(gauge))["g"]
    assert family.samples == {("g", (("name", name),)): value for name, value in values.items()}
    assert family.help == f"about {said}"


def test_a_sample_with_too_few_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Counter("c_total", "c", ("a", "b")).inc("only one")


def test_two_metrics_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="is there already"):
        rendered(Gauge("depth", "d"), Gauge("depth", "d"))


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
}


def test_the_operator_has_upstreams_metrics_and_its_own() -> None:
    families = parse(Metrics().render())
    types = {name: family.type for name, family in families.items()}
    assert types == dict.fromkeys(UPSTREAM, "counter") | OURS


def test_jobs_are_counted_by_namespace_as_upstreams_dashboards_expect_it() -> None:
    metrics = Metrics()
    metrics.jobs_failed.count("team-a")
    metrics.api_writes.inc("create", "pods", by=64)
    families = parse(metrics.render())
    name = "training_operator_jobs_failed_total"
    assert families[name].samples == {(name, (("job_namespace", "team-a"), ("framework", "tensorflow"))): 1}
    writes = families["tfyard_api_writes_total"].samples
    assert list(writes.values()) == [64]
