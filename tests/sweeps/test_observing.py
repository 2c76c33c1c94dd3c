"""The curve of the objective, by which trials are judged and pruned."""

from typing import Any

import pytest

from tfyard.model.sweep import Objective
from tfyard.overview.metrics import Point
from tfyard.sweeps.observing import CURVE, curve, judged, thinned


def points(*words: dict[str, Any]) -> list[Point]:
    return [
        Point(
            at=0.0,
            task=each.pop("task", "worker-0"),
            step=each.pop("step", None),
            epoch=each.pop("epoch", None),
            values=each,
        )
        for each in words
    ]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ([{"step": 100, "auc": 0.5}, {"step": 200, "auc": 0.6}], ((100, 0.5), (200, 0.6))),
        ([{"auc": 0.5}, {"auc": 0.6}], ((1, 0.5), (2, 0.6))),
        ([{"step": 100, "auc": 0.5}, {"auc": 0.7}], ((100, 0.7),)),
        ([{"auc": 0.1}, {"step": 100, "auc": 0.5}], ((0, 0.1), (100, 0.5))),
        (
            [
                {"epoch": 1, "step": 90, "auc": 0.4},
                {"epoch": 2, "step": 10, "auc": 0.5},
                {"epoch": 2, "step": 90, "auc": 0.6},
            ],
            ((1, 0.4), (2, 0.6)),
        ),
        ([{"step": 1, "auc": float("nan")}, {"step": 2, "auc": 0.5}], ((2, 0.5),)),
        ([{"step": 1, "auc": 0.5, "task": "chief-0"}, {"step": 1, "auc": 0.9}], ((1, 0.5),)),
        ([{"step": 1, "loss": 0.5}], ()),
    ],
    ids=["steps", "lines", "last-evaluation", "first-evaluation", "epochs", "nan", "first-task", "other"],
)
def test_a_curve_is_by_epoch_else_by_step_else_by_line(
    printed: list[dict[str, Any]], expected: tuple[tuple[int, float], ...]
) -> None:
    assert curve(points(*printed), "auc") == expected


def test_the_last_value_counts_or_the_best_one() -> None:
    shape = ((1, 0.5), (2, 0.9), (3, 0.7))
    assert judged(shape, Objective("auc", is_max=True)) == (3, 0.7)
    assert judged(shape, Objective("auc", is_max=True, is_best=True)) == (2, 0.9)
    assert judged(shape, Objective("auc", is_max=False, is_best=True)) == (1, 0.5)
    assert judged((), Objective("auc", is_max=True)) is None


def test_a_long_curve_keeps_its_first_and_its_last_point() -> None:
    long = tuple((step, step / 1000) for step in range(1000))
    short = thinned(long)
    assert (len(short), short[0], short[-1]) == (CURVE, long[0], long[-1])
    assert thinned(short) == short
