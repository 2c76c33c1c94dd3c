"""How far the training is, by metrics at given times."""

import pytest

from tfyard.model import Job, Role
from tfyard.model.run_events import Metric
from tfyard.overview.progress import KEPT_POINTS, RATE_WINDOW, Progress, total_steps


def progress(*steps: int, total: int | None = None, task: str = "worker-0") -> Progress:
    """One step each second."""
    made = Progress(total)
    for at, step in enumerate(steps):
        made.note(Metric(task=task, values={"loss": 1 / (step + 1)}, step=step), float(at))
    return made


def test_the_rate_is_that_of_the_last_half_minute() -> None:
    slow_then_fast = [*range(100), *range(100, 1000, 10)]
    made = progress(*slow_then_fast, total=1490)
    assert made.rate == pytest.approx(10)
    assert made.seconds_left == pytest.approx(50)
    assert RATE_WINDOW == 30


def test_one_point_has_no_rate_and_no_end() -> None:
    assert (progress(5, total=10).rate, progress(5, total=10).seconds_left) == (None, None)
    assert progress(5, 6).seconds_left is None


def test_a_new_epoch_starts_a_new_rate() -> None:
    made = progress(100, 200)
    made.note(Metric(task="worker-0", values={}, step=1, total=300), 2.0)
    made.note(Metric(task="worker-0", values={}, step=3, total=300), 3.0)
    assert (made.rate, made.position()) == (2.0, "step 3/300")


@pytest.mark.parametrize(
    ("steps", "total", "text"),
    [((), None, "step 0"), ((1234,), None, "step 1,234"), ((1234,), 1000, "step 1,000/1,000")],
)
def test_the_position_is_text(steps: tuple[int, ...], total: int | None, text: str) -> None:
    assert progress(*steps, total=total).position() == text


def test_the_chief_speaks_for_the_training_whoever_is_last() -> None:
    made = Progress()
    for at, task in enumerate(("chief-0", "worker-0", "evaluator-0")):
        made.note(Metric(task=task, values={"loss": float(at), task: 7.0}, step=at), float(at))
    assert made.values["loss"] == 0
    assert made.metrics(2) == "loss 0  chief-0 7"
    assert made.loss() == ("loss chief-0", [(0, 0.0)])


def test_a_long_curve_is_thinned_and_keeps_its_ends_in_order() -> None:
    name, points = progress(*range(3 * KEPT_POINTS)).loss() or ("", [])
    assert name == "loss worker-0"
    assert len(points) <= KEPT_POINTS
    assert points == sorted(points)
    assert points[-1][0] == 3 * KEPT_POINTS - 1


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        (["python", "train.py", "--steps", "300"], 300),
        (["sh", "-c", "python train.py --max_steps=20"], 20),
        (["python", "train.py", "--epochs", "3"], None),
    ],
)
def test_the_total_is_read_from_the_command_line(command: list[str], steps: int | None) -> None:
    template = {"spec": {"containers": [{"name": "tensorflow", "command": command}]}}
    assert total_steps(Job(name="j", roles=(Role(name="Worker", template=template),))) == steps
