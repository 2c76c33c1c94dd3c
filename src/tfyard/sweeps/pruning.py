"""Chooses the trials that are not worth going on with: they are worse than the others were at the same step.

Programs print their metrics at steps of their own, so a trial is compared with what the others had printed last
by that step. Optuna's pruners compare only values of exactly the same step.
"""

from collections.abc import Sequence
from statistics import median

from tfyard.model.sweep import SweepSpec, Trial

FIRST_TRIALS = 4
"""Trials that must have ended well before one is judged by their median."""
WARM_UP = 0.1
"""No trial is judged by the median in this first part of a whole one: some learn slowly and well."""
REDUCTION = 3
"""Number of trials at a rung of which the best one goes on (asha)."""
RUNGS = 4
"""Rungs are at 1/27, 1/9 and 1/3 of the longest trial, which is the last of them."""


def is_worse(spec: SweepSpec, trial: Trial, trials: Sequence[Trial]) -> bool:
    """Whether this running trial should be stopped."""
    others = [other for other in trials if other.curve and other.number != trial.number]
    if not trial.curve or spec.prune == "none":
        return False
    return (_by_median if spec.prune == "median" else _by_rungs)(trial, others, spec.objective.sign)


def _by_median(trial: Trial, others: Sequence[Trial], sign: int) -> bool:
    step = trial.curve[-1][0]
    ended = [other for other in others if other.state == "Succeeded"]
    if step < WARM_UP * max((other.curve[-1][0] for other in ended), default=0):
        return False
    values = [value for other in ended if (value := _best_by(other, step, sign)) is not None]
    own = _best_by(trial, step, sign)
    return len(values) >= FIRST_TRIALS and own is not None and own < median(values)


def _by_rungs(trial: Trial, others: Sequence[Trial], sign: int) -> bool:
    """Asynchronous successive halving: at each rung, the best third of those that have reached it goes on."""
    longest = max((other.curve[-1][0] for other in others if other.state == "Succeeded"), default=0)
    rungs = [longest // REDUCTION**power for power in range(RUNGS - 1, 0, -1)]
    reached = [rung for rung in rungs if 0 < rung <= trial.curve[-1][0]]
    if not reached:
        return False
    own = _best_by(trial, reached[-1], sign)
    there = [_best_by(other, reached[-1], sign) for other in others if other.curve[-1][0] >= reached[-1]]
    values = [value for value in there if value is not None]
    better = sum(own is not None and value > own for value in values)
    return len(values) + 1 >= REDUCTION and better >= (len(values) + 1) // REDUCTION


def _best_by(trial: Trial, step: int, sign: int) -> float | None:
    """The best value by that step, as more is better; None: there was none yet."""
    return max((sign * value for at, value in trial.curve if at <= step), default=None)
