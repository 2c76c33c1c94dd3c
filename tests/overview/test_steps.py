"""Where the starts of a task began, and what was lost from one to the next."""

import pytest

from tfyard.model import Status
from tfyard.model.run_events import Log, Metric, Started
from tfyard.model.run_record import StartSteps
from tfyard.overview.steps import Steps, rows
from tfyard.overview.summary import start_rows

from .test_record import recorder

TASK = "worker-0"


def steps(*starts: list[str | int | tuple[int, int]]) -> tuple[StartSteps, ...]:
    """Each start is its lines, reported steps, and reported (epoch, step)."""
    known = Steps()
    for number, events in enumerate(starts, start=1):
        known.note(Started(TASK, number, "log"))
        for event in events:
            if isinstance(event, str):
                known.note(Log(TASK, event))
            else:
                epoch, step = event if isinstance(event, tuple) else (None, event)
                known.note(Metric(task=TASK, values={"loss": 1.0}, step=step, epoch=epoch))
    return known.of(TASK)


def lost(*starts: list[str | int | tuple[int, int]]) -> str:
    return rows(TASK, steps(*starts))[-1][-1]


@pytest.mark.parametrize(
    "line",
    [
        "Begins at step 150",
        "Resumed from the checkpoint of step 150",
        "INFO:tensorflow:Restoring parameters from /out/model.ckpt-150",
        "Restored /out/ckpt-150",
        "a first line\nstarting with step: 150\nloss: 2",
        "continues: global_step=150",
    ],
)
def test_a_program_says_where_it_begins(line: str) -> None:
    assert lost([50, 150, 181], [line, 200]) == "31 steps"
    assert lost([50, 150], [line, 200]) == "0 steps"


@pytest.mark.parametrize("line", ["Training for 600 steps", "Loaded 150 images", "step 150: loss 2"])
def test_other_lines_say_nothing(line: str) -> None:
    assert not steps([50], [line, 100])[1].is_told


def test_a_program_that_only_reports_has_lost_at_most_what_it_reports_again() -> None:
    assert lost([50, 100, 150], [100, 150]) == "up to 100 steps"
    assert lost([50, 100, 150], [200, 250]) == "0 steps"
    assert lost([1], [1, 2]) == "up to 1 step"


def test_epochs_are_counted_where_the_program_counts_them() -> None:
    assert lost([(1, 10), (2, 10)], [(3, 10)]) == "0 epochs"
    assert lost([(1, 10), (2, 5)], [(2, 1)]) == "up to 1 epoch"


def test_rows_tell_of_each_start_and_only_of_tasks_that_started_again() -> None:
    assert rows(TASK, steps(["Begins at step 0", 50], ["Begins at step 69", 1600])) == [
        (TASK, "1", "step 0", "step 50", ""),
        (TASK, "2", "step 69", "step 1,600", "0 steps"),
    ]
    assert steps([50]) == ()
    assert steps([], []) == ()
    assert rows(TASK, steps(["up"], ["Begins at step 7"])) == [
        (TASK, "1", "", "", ""),
        (TASK, "2", "step 7", "", ""),
    ]


def test_a_record_has_the_steps_of_its_tasks() -> None:
    made = recorder(2)
    for start in (1, 2):
        made.note(Started(TASK, start, "log"))
        made.note(Log(TASK, f"Begins at step {start}"))
    (first, other) = made.record(Status()).tasks
    assert ([each.began for each in first.steps], other.steps) == ([1, 2], ())
    assert [row[:3] for row in start_rows(made.record(Status()))] == [
        (TASK, "1", "step 1"),
        (TASK, "2", "step 2"),
    ]
