"""Progress of the training, by metrics with times."""

import pytest

from tfyard.model import Job, Role
from tfyard.model.run_events import Metric
from tfyard.overview.curves import Curve
from tfyard.overview.progress import KEPT_POINTS, RATE_WINDOW, Progress, total_steps


def progress(*steps: int, total: int | None = None, task: str = "worker-0") -> Progress:
    """Progress with one step each second."""
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


def bar(epoch: int | None, step: int, loss: float, task: str = "worker-0", *, going: bool = False) -> Metric:
    epochs = None if epoch is None else 3
    values = {"loss": loss}
    return Metric(task=task, values=values, step=step, total=10, epoch=epoch, epochs=epochs, unfinished=going)


def test_the_curve_of_a_program_that_counts_epochs_has_a_point_for_each() -> None:
    made = Progress()
    made.note(bar(None, 10, 9.0), 0.0)  # an evaluation before the training
    for epoch in (1, 2, 3):
        made.note(bar(epoch, 5, 7.0, going=True), epoch)
        made.note(bar(epoch, 10, 6.0), epoch + 0.4)
        made.note(bar(epoch, 10, 1 / epoch), epoch + 0.5)  # the same line again, with val_loss
    made.note(bar(None, 10, 8.0), 5.0)  # an evaluation after it
    assert made.loss() == Curve("loss worker-0", "epoch", [(1, 1.0), (2, 1 / 2), (3, 1 / 3)])


def test_a_program_that_counts_only_epochs_has_no_steps() -> None:
    made = Progress()
    made.note(Metric(task="worker-0", values={"loss": 0.5}, epoch=2), 0.0)
    assert made.position() == "epoch 2"
    made.note(Metric(task="worker-0", values={"loss": 0.5}, epoch=3, epochs=10), 1.0)
    assert made.position() == "epoch 3/10"


def test_the_time_left_is_that_of_all_epochs_and_a_bar_counts_before_it_is_finished() -> None:
    made = Progress()
    made.note(bar(1, 2, 1.0, going=True), 0.0)
    made.note(bar(1, 4, 0.5, going=True), 1.0)
    assert made.position() == "epoch 1/3, step 4/10"
    assert made.seconds_left == pytest.approx((6 + 20) / 2)
    assert (made.values, made.loss()) == ({"loss": 0.5}, None)


def test_a_worker_that_is_behind_does_not_turn_back_the_position() -> None:
    made = Progress()
    made.note(bar(2, 3, 1.0, "chief-0"), 0.0)
    made.note(bar(1, 9, 1.0, "worker-0"), 1.0)
    assert made.position() == "epoch 2/3, step 3/10"
    made.note(bar(3, 1, 1.0, "chief-0"), 2.0)
    assert made.position() == "epoch 3/3, step 1/10"


def test_an_epoch_of_unknown_length_has_no_total() -> None:
    made = progress(80, total=80)
    made.note(Metric(task="worker-0", values={}, step=7, epoch=1, epochs=2), 9.0)
    assert made.position() == "epoch 1/2, step 7"


@pytest.mark.parametrize(
    ("steps", "total", "text"),
    [((), None, "step 0"), ((1234,), None, "step 1,234"), ((1234,), 1000, "step 1,000/1,000")],
)
def test_the_position_is_text(steps: tuple[int, ...], total: int | None, text: str) -> None:
    assert progress(*steps, total=total).position() == text


def test_metrics_of_the_chief_take_precedence_over_later_ones_of_other_tasks() -> None:
    made = Progress()
    for at, task in enumerate(("chief-0", "worker-0", "evaluator-0")):
        made.note(Metric(task=task, values={"loss": float(at), task: 7.0}, step=at), float(at))
    assert made.values["loss"] == 0
    assert made.metrics(2) == "loss 0  chief-0 7"
    assert made.loss() == Curve("loss chief-0", "step", [(0, 0.0)])


def test_a_long_curve_is_thinned_and_keeps_its_ends_in_order() -> None:
    curve = progress(*range(3 * KEPT_POINTS)).loss()
    assert curve is not None
    assert curve.name == "loss worker-0"
    points = curve.points
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
