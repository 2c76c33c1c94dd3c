"""The trials of a sweep as a table: on its page, and below its row in the list of jobs."""

from datetime import datetime

from msgspec import Struct

from tfyard.dashboard import drawing
from tfyard.dashboard.addresses import Address
from tfyard.model.sweep import SweepState
from tfyard.overview import sweep_text
from tfyard.overview.wording import harmless


class TrialLine(Struct, frozen=True, kw_only=True):
    """A row of the table of trials."""

    name: str
    address: Address | None
    """None: the trial has no job yet."""
    figure: str
    cells: tuple[str, ...]


class TrialTable(Struct, frozen=True):
    columns: tuple[str, ...]
    """Names of the columns, without that of the trial's name."""
    rows: tuple[TrialLine, ...]
    left_out: int


def table(state: SweepState, namespace: str, now: datetime, most: int = 1000) -> TrialTable:
    """The table of the trials, the best first, as of `tfyard get --trials`; empty columns are left out."""
    header, *rows = sweep_text.trial_rows(state, now)
    used = [at for at in range(1, len(header)) if any(row[at] for row in rows)]
    names = {name.upper(): name for name in (*state.spec.over, state.spec.objective.metric)}
    lines = [
        TrialLine(
            name=row[0],
            address=Address(namespace, trial.job) if trial.job else None,
            figure=drawing.figure(trial.state),
            cells=tuple(harmless(row[at]) for at in used),
        )
        for trial, row in zip(sweep_text.ranked(state)[:most], rows[:most], strict=True)
    ]
    columns = tuple(names.get(header[at]) or drawing.titled(header[at]) for at in used)
    return TrialTable(columns, tuple(lines), len(rows) - len(lines))
