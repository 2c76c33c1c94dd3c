"""The declaration of the sweep file's words, from which reading, the JSON schema, `tfyard explain` and
docs/sweep.md are derived."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tfyard.formats import durations

Duration = Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern=durations.PATTERN)]
NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
Number = int | float | Annotated[str, Meta(pattern=NUMBER)]
"""YAML takes 1e-4, which has no point, for text."""
OBJECTIVE = r"^\s*(max|min)\s+(best\s+)?\S+\s*$"
MOST_TRIALS = 999


class RangeWords(Struct, frozen=True, rename={"from_": "from"}):
    """All numbers between two. If both are whole numbers, so are the values."""

    from_: Annotated[Number, Meta(description="The smallest value.")]
    to: Annotated[Number, Meta(description="The largest value.")]
    log: Annotated[
        bool, Meta(description="Searches orders of magnitude evenly, as is usual for learning rates.")
    ] = False


class SweepFile(Struct, frozen=True, rename="camel", kw_only=True):
    """A sweep: one job that is run many times, with other values each time."""

    name: Annotated[
        Annotated[str, Meta(pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$")] | None,
        Meta(description="Name of the sweep; default: that of the job, and -sweep."),
    ] = None
    job: Annotated[
        str,
        Meta(
            description="The job file, the TFJob or the Python script, relative to this file."
            " `{lr}` in its commands, arguments and env stands for the value of the parameter lr."
        ),
    ]
    over: Annotated[
        dict[str, list[int | float | bool | str] | RangeWords],
        Meta(description="The parameters: a list of values, or {from: 1e-4, to: 1e-1, log: true}."),
    ]
    objective: Annotated[
        str,
        Meta(
            description="The metric that decides which trial is best, as in `max auc` or `min val_loss`."
            " The last value of a trial counts; `max best auc` takes the best one.",
            pattern=OBJECTIVE,
        ),
    ]
    trials: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_TRIALS)] | None,
        Meta(description="Number of trials; default: every combination with the sampler grid, else 20."),
    ] = None
    parallel: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Trials at once; default: as many as fit this machine (cores, memory, GPUs),"
            " and 4 on a cluster."
        ),
    ] = None
    sampler: Annotated[
        Literal["grid", "random", "tpe"] | None,
        Meta(
            description="How values are chosen: every combination (grid), by chance (random), or by what earlier"
            " trials have shown (tpe); default: tpe if there is a range, else grid."
        ),
    ] = None
    prune: Annotated[
        Literal["none", "median", "asha"],
        Meta(
            description="Stops a trial that is worse than the others at the same step: than their median, or"
            " than the best of them at each rung (asha); default none."
        ),
    ] = "none"
    seed: Annotated[
        int | None,
        Meta(description="Chooses the same values again: for grid and random, and for tpe with parallel: 1."),
    ] = None
    deadline: Annotated[
        Duration | None,
        Meta(description="Time for the whole sweep: 90m, 6h. What still runs then is stopped."),
    ] = None
    retry_trials: Annotated[
        Annotated[int, Meta(ge=0)],
        Meta(description="How often a trial that has failed is tried again with the same values; default 0."),
    ] = 0
    service_account: Annotated[
        str,
        Meta(
            description="ServiceAccount of the pod that drives the sweep on a cluster; default tfyard-sweep."
        ),
    ] = ""
