"""What MLflow is sent, in the forms that its server accepts."""

import json
import math

import pytest

from tfyard.logs.readings import Reading
from tfyard.overview.metrics import row
from tfyard.tracking import payloads
from tfyard.tracking.metrics import MetricRows


@pytest.mark.parametrize(
    ("phase", "status"),
    [
        ("Succeeded", "FINISHED"),
        ("Failed", "FAILED"),
        ("Killed", "KILLED"),
        ("Interrupted", "KILLED"),
        ("Stopped", "KILLED"),
        ("Deleted", "KILLED"),
    ],
)
def test_the_end_is_told_as_it_was(phase: str, status: str) -> None:
    assert payloads.end(phase) == status


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("loss", "loss"),
        ("top 5%", "top 5_"),
        ("/a//b/", "a/b"),
        ("../up", "_/up"),
        ("a/./b", "a/_/b"),
        ("é", "é"),
        ("", "_"),
        ("x" * 300, "x" * 250),
    ],
)
def test_names_are_those_that_a_server_accepts(name: str, key: str) -> None:
    assert payloads.key(name) == key


def test_long_values_are_cut_and_many_parameters_are_several_requests() -> None:
    many = {f"p{number}": "x" * 600 for number in range(250)}
    parts = list(payloads.parameters(many))
    assert [len(part) for part in parts] == [100, 100, 50]
    assert {len(each["value"]) for part in parts for each in part} == {500}


def test_of_too_many_rows_some_are_sent_evenly_and_always_the_last() -> None:
    assert payloads.thinned([1, 2, 3], 3) == [1, 2, 3]
    assert payloads.thinned(range(10), 4) == range(0, 10, 3)
    assert all(
        (kept := payloads.thinned(range(size), 7))[-1] == size - 1 and len(kept) <= 7 for size in range(1, 99)
    )


def test_metrics_of_the_deciding_task_keep_their_names_and_others_begin_with_their_task() -> None:
    rows = [
        row(task, Reading(values={"loss": 0.5}, step=20), 12.5)
        for task in ("chief-0", "worker-1", "evaluator-0")
    ]
    sent = MetricRows("chief-0").metrics(rows)
    assert [each["key"] for each in sent] == ["loss", "worker-1/loss", "evaluator/loss"]
    assert sent[0] == {"key": "loss", "value": 0.5, "timestamp": 12500, "step": 20}


def test_what_is_no_number_is_sent_as_protocol_buffers_spell_it_in_json() -> None:
    values = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.0}
    stored = json.loads(json.dumps(row("worker-0", Reading(values=values), 0.0)))
    sent = {each["key"]: each["value"] for each in MetricRows("worker-0").metrics([stored])}
    assert sent == {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1.0}


def test_steps_are_epochs_where_a_program_counts_them_and_a_final_result_has_the_last_one() -> None:
    readings = [Reading(values={"loss": 1.0}, step=40, total=100, epoch=3), Reading(values={"auc": 0.9})]
    sent = MetricRows("worker-0").metrics([row("worker-0", reading, 0.0) for reading in readings])
    assert [(each["key"], each["step"]) for each in sent] == [("loss", 3), ("auc", 3)]
