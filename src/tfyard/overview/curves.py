"""Curves as points of a picture: in `metrics --plot`, on the card of a notebook, on the page."""

import math
from collections.abc import Sequence

from msgspec import Struct

Points = Sequence[tuple[float, float]]


class Curve(Struct, frozen=True):
    name: str
    unit: str
    """Unit of the x axis, as in `step`."""
    points: list[tuple[int, float]]


class CurveBox(Struct, frozen=True):
    """The part of a picture that a curve fills."""

    left: float
    top: float
    width: float
    height: float


def finite(points: Points) -> list[tuple[float, float]]:
    """The points without nan and inf, which have no place in a picture."""
    return [(x, y) for x, y in points if math.isfinite(y)]


def share(value: float, low: float, high: float, *, flat: float = 0.5) -> float:
    """Position between low and high, from 0 to 1; `flat`: if these are the same. Values are halved, because the
    difference of two floats may overflow."""
    span = high / 2 - low / 2
    return (value / 2 - low / 2) / span if span else flat


def scaled(points: Points, box: CurveBox) -> list[tuple[float, float]]:
    """The points in the picture; the curve fills the box. Values are halved before subtraction: the difference of
    two floats may overflow."""
    xs, ys = [x for x, _ in points], [y / 2 for _, y in points]
    wide, tall = max(1, max(xs) - min(xs)), (max(ys) - min(ys)) or 1.0
    return [
        (box.left + (x - min(xs)) / wide * box.width, box.top + (1 - (y - min(ys)) / tall) * box.height)
        for x, y in zip(xs, ys, strict=True)
    ]


def polyline(points: Points, box: CurveBox) -> str:
    """The `points` of SVG's polyline."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in scaled(points, box))
