"""The last and the best value of each metric, and at which step."""

import math
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tfyard.overview.metrics import Point

_LEAST = re.compile(
    r"loss|err(or)?s?$|mae$|mse$|mape$|rmse$|nll|perplexity|ppl|entropy|xent|divergence|(^|_)kl(_|$)|(^|_)[wc]er$"
    r"|(^|_)fid$|distance|cost"
)
_MOST = re.compile(
    r"acc(uracy)?(_|$)|auc|(^|_)f1|f_?score|score|precision|recall|(^|_)r2$|m?iou$|(^|_)m?ap$|bleu|rouge|reward|return"
    r"|ndcg|mrr|dice|psnr|ssim|correlation|kappa|(^|_)hits?(_|$)|top_?\d"
)


class BestValue(Struct, frozen=True, kw_only=True):
    """One metric of one task."""

    name: str
    task: str
    last: float
    at: int | None = None
    """Step or epoch of the last value."""
    best: float | None = None
    """The value is None if it is not known whether more or less is better, or if no value is a number."""
    best_at: int | None = None
    unit: str = "step"
    """What `at` and `best_at` count: step or epoch."""


def best_values(points: Iterable[Point]) -> tuple[BestValue, ...]:
    """Metrics in the order in which they first appeared."""
    seen: dict[tuple[str, str], list[tuple[Point, float]]] = {}
    for point in points:
        for name, value in point.values.items():
            seen.setdefault((name, point.task), []).append((point, value))
    return tuple(_best_value(name, task, values) for (name, task), values in seen.items())


def better(name: str) -> int:
    """-1: less of this metric is better; 1: more is; 0: not known."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if _LEAST.search(plain):
        return -1
    return 1 if _MOST.search(plain) else 0


def _best_value(name: str, task: str, values: Sequence[tuple[Point, float]]) -> BestValue:
    """Steps of a task that counts epochs start again in each, so its values are placed by epoch."""
    by_epoch = any(point.epoch is not None for point, _ in values)
    placed = [(point.epoch if by_epoch else point.step, value) for point, value in values]
    at, last = placed[-1]
    sign = better(name)
    finite = [(step, value) for step, value in placed if math.isfinite(value)] if sign else []
    best = max(finite, key=lambda each: sign * each[1], default=None)
    return BestValue(
        name=name,
        task=task,
        last=last,
        at=at,
        best=best[1] if best else None,
        best_at=best[0] if best else None,
        unit="epoch" if by_epoch else "step",
    )
