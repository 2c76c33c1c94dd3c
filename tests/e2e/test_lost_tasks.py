"""A task is taken away: each row of docs/operator.md's table with real TensorFlow, in runs on this machine."""

import pytest

from tests.cluster.lost_tasks import ROWS, Row, check_steps, is_saved, steps
from tests.e2e.conftest import Event, Yard

pytestmark = [pytest.mark.processes, pytest.mark.tensorflow, pytest.mark.long]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_drain_costs_a_training_time_and_nothing_else(yard: Yard, row: Row) -> None:
    name, evicted = row.write(yard.folder), list[Event]()

    def evict(event: Event) -> None:
        is_report = event["event"] == "metric" and event["task"] == row.leader
        if is_report and not evicted and is_saved(event["epoch"] or event["step"] or 0, row):
            evicted.append(event)
            yard.start("restart", name, row.lost, "--local", "--yes", "--no-wait")

    outcome = yard.watch(evict)
    assert outcome.code == 0, outcome.events[-1]
    assert outcome.status.get("restarts", 0) == 0
    assert "retries" not in str(outcome.status["tasks"])
    starts = {task: outcome.starts(task) for task in {each["task"] for each in outcome.of("started")}}
    assert starts[row.lost] > 1, "it is replaced"
    others = {count for task, count in starts.items() if task != row.lost}
    assert others <= ({2} if row.all_again else {1}), starts
    check_steps(row, steps(outcome.lines(row.leader)))
    shown = yard.tfyard("runs", "show", name).stdout
    trained_again = {
        e["task"] for e in outcome.of("metric") if starts[e["task"]] > 1 and "evaluator" not in e["task"]
    }
    assert ("BEGAN AT" in shown) == bool(trained_again), shown
    assert ("that costs no retry" in shown) == row.all_again, shown
