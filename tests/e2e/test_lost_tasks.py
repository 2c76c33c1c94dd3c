"""A task is taken away: each row of docs/operator.md's table with real TensorFlow, in runs on this machine."""

import pytest

from tests.cluster.lost_tasks import ROWS, Row, lost_steps, steps
from tests.e2e.conftest import Event, Yard

pytestmark = [pytest.mark.processes, pytest.mark.tensorflow, pytest.mark.long]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_drain_costs_a_training_time_and_nothing_else(yard: Yard, row: Row) -> None:
    name, evicted = row.write(yard.folder), list[Event]()

    def evict(event: Event) -> None:
        if not evicted and event["event"] == "metric" and event["task"] == row.leader and _is_saved(event, row):
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
    reported = steps(outcome.lines(row.leader))
    assert lost_steps(reported) <= row.saves_every, reported
    assert reported[-1] > reported[0], "it went on"


def _is_saved(event: Event, row: Row) -> bool:
    """Whether there is a checkpoint to lose steps since."""
    at = event["step"] if event["epoch"] is None else event["epoch"]
    return at is not None and at > 2 * row.saves_every
