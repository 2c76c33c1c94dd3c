"""Metrics are read from the usual output of programs."""

import json
import math
import re
from unittest.mock import ANY

import pytest

from tests.logs.metric_lines import LOOKALIKES, REPORTS
from tfyard.logs.readings import LONGEST, MOST_LINES, SAMPLE, Reading, read_line, read_lines, storable, stored

CASES = {
    "the tutorial's form": (
        "Step: 2520, loss: 0.0276989098638, accuracy: 0.9521484375, auc: 0.976532936096",
        Reading(step=2520, values={"loss": 0.0276989098638, "accuracy": 0.9521484375, "auc": 0.976532936096}),
    ),
    "the lab's cross entropy": (
        "INFO:tensorflow:2017-11-20 20:57:22.314198: Step 480: Cross entropy = 0.142486",
        Reading(step=480, values={"cross entropy": 0.142486}),
    ),
    "the lab's percentage": (
        "INFO:tensorflow:2017-11-20 20:57:22.370080: Step 480: Validation accuracy = 85.0% (N=100)",
        Reading(step=480, values={"validation accuracy": 0.85}),
    ),
    "the lab's last line": (
        "INFO:tensorflow:Final test accuracy = 88.4% (N=353)",
        Reading(values={"final test accuracy": 0.884}),
    ),
    "a held-out result": (
        "Held-out: accuracy: 0.97, auc: 0.99",
        Reading(values={"accuracy": 0.97, "auc": 0.99}),
    ),
    "an epoch of Keras": ("Epoch 2/5", Reading(epoch=2, epochs=5)),
    "a bar of Keras 3": (
        "120/500 ━━━━━━━━ 1s 2ms/step - accuracy: 0.9100 - loss: 0.3012",
        Reading(step=120, total=500, values={"accuracy": 0.91, "loss": 0.3012}),
    ),
    "a bar of Keras 3 as it comes, colours and all": (
        "\x1b[1m 10/10\x1b[0m \x1b[32m━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m0s\x1b[0m 1ms/step - loss: 0.1 - mae: 0.2",
        Reading(step=10, total=10, values={"loss": 0.1, "mae": 0.2}),
    ),
    "a coloured number": ("Step: 1, loss: \x1b[31m0.5\x1b[0m", Reading(step=1, values={"loss": 0.5})),
    "a bar of Keras 2": (
        "1875/1875 [==============================] - 3s 2ms/step - loss: 0.2946 - accuracy: 0.9146",
        Reading(step=1875, total=1875, values={"loss": 0.2946, "accuracy": 0.9146}),
    ),
    "a bar of Keras over data of unknown length": (
        "     10/Unknown \x1b[1m1s\x1b[0m 18ms/step - loss: 0.0947 - mae: 0.2766",
        Reading(step=10, values={"loss": 0.0947, "mae": 0.2766}),
    ),
    "a bar of Keras 2 that goes on": (
        "  12/1875 [..............................] - ETA: 9s - loss: 2.2946 - accuracy: 0.1146",
        Reading(step=12, total=1875, values={"loss": 2.2946, "accuracy": 0.1146}),
    ),
    "one line per epoch of Keras": (
        "32/32 - 1s - 20ms/step - accuracy: 0.9100 - loss: 0.3012",
        Reading(step=32, total=32, values={"accuracy": 0.91, "loss": 0.3012}),
    ),
    "a download with a bar of Keras": ("11490434/11490434 ━━━━━━━━━━━━━━━━━━━━ 0s 0us/step", None),
    "a bar of tqdm": (
        " 45%|████▌     | 45/100 [00:02<00:02, 20.00it/s, loss=0.3]",
        Reading(step=45, total=100, values={"loss": 0.3}),
    ),
    "a bar of tqdm with an epoch": (
        "Epoch 2/5:   9%|▉         | 9/100 [00:02<1:02:03,  1.50s/batch, loss=0.3, acc=0.9]",
        Reading(step=9, total=100, epoch=2, epochs=5, values={"loss": 0.3, "acc": 0.9}),
    ),
    "a download with a bar of tqdm": ("x.bin:  45%|████▌     | 4.50M/10.0M [00:02<00:02, 2.0MB/s]", None),
    "a step of so many": ("step 5/600 loss: 0.4", Reading(step=5, total=600, values={"loss": 0.4})),
    "a global step": ("global_step: 7, loss = 1e-3", Reading(step=7, values={"loss": 0.001})),
    "a plain sentence": ("Serving as worker 0", None),
    "a number that is no metric": ("listening on port: 2222", None),
    "a step without metrics": ("Step 3 of the recipe", None),
    "a line as long as a file": ("Step: 1, loss: 2" + "x" * LONGEST, None),
}


@pytest.mark.parametrize(("line", "expected"), CASES.values(), ids=CASES.keys())
def test_a_line_is_read(line: str, expected: Reading | None) -> None:
    assert read_line(line) == expected


@pytest.mark.parametrize(("line", "expected"), REPORTS.items(), ids=REPORTS.keys())
def test_what_programs_print_as_they_are_is_read(line: str, expected: Reading) -> None:
    assert read_line(line) == expected
    assert list(read_lines(f"before\n{line}\nafter")) == [expected], "in a block, too"


@pytest.mark.parametrize("line", LOOKALIKES)
def test_a_line_that_only_looks_like_metrics_is_none(line: str) -> None:
    assert read_line(line) is None


def test_a_regex_of_the_users_goes_first() -> None:
    pattern = re.compile(r"it (?P<step>\d+) of (?P<total>\d+): cost (?P<cost>\S+)")
    assert read_line("it 5 of 10: cost 3.2", pattern) == Reading(step=5, total=10, values={"cost": 3.2})
    assert read_line("it 5 of 10: cost unknown", pattern) == Reading(step=5, total=10)
    assert read_line("Step: 5, loss: 1", pattern) == Reading(step=5, values={"loss": 1.0})


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_block_is_read_as_its_lines_are(case: tuple[str, Reading | None]) -> None:
    line, expected = case
    assert list(read_lines(f"before\n{line}\nafter")) == ([expected] if expected else [])


def test_a_block_is_searched_for_the_regex_of_the_user() -> None:
    pattern = re.compile(r"cost (?P<cost>\S+) in epoch (?P<epoch>\d+)")
    block = "\n".join(["x"] * 5_000 + ["cost 3.2 in epoch 7", "Step: 5, loss: 1"])
    assert list(read_lines(block, pattern)) == [
        Reading(epoch=7, values={"cost": 3.2}),
        Reading(step=5, values={"loss": 1.0}),
    ]


def test_a_flood_of_reports_is_sampled_up_to_the_last() -> None:
    reports = [f"Step: {step}, loss: {step}" for step in range(3 * MOST_LINES)]
    steps = [reading.step for reading in read_lines("\n".join(reports))]
    assert len(steps) <= MOST_LINES
    assert (steps, steps[-1]) == (sorted(steps, key=lambda step: step or 0), 3 * MOST_LINES - 1)
    flood = [reading.step for reading in read_lines("\n".join(reports[:500]), is_flood=True)]
    assert flood == list(range(500))[-len(flood) :]
    assert 0 < len(flood) <= 500 // SAMPLE


def test_a_loss_that_is_not_a_number_any_more_is_still_a_loss() -> None:
    assert read_line("step 9 loss nan accuracy inf") == Reading(
        values={"loss": ANY, "accuracy": math.inf}, step=9
    )
    reading = read_line("Step: 9, loss: nan")
    assert reading is not None
    assert reading.values["loss"] != reading.values["loss"]


@pytest.mark.parametrize("text", ["inf", "-inf", "1e400", "Infinity", "+Inf"])
def test_a_loss_without_bounds_is_still_a_loss(text: str) -> None:
    assert read_line(f"Step: 9, loss: {text}") == Reading(step=9, values={"loss": float(text)})


def test_a_step_that_is_no_number_is_no_step() -> None:
    pattern = re.compile(r"it (?P<step>\S+) of (?P<total>\S+): cost (?P<cost>\S+)")
    assert read_line("it nan of inf: cost 3.2", pattern) == Reading(values={"cost": 3.2})


def test_whatever_is_not_finite_survives_json() -> None:
    values = {"a": float("nan"), "b": float("inf"), "c": float("-inf"), "d": 0.5}
    text = json.dumps(storable(values), allow_nan=False)
    assert repr(stored(json.loads(text))) == repr(values)
    assert stored({"of before": None, "a word": "x"}) == {}
