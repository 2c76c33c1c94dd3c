"""The page of a sweep: how far it is, its best trial, its trials as a picture and as a table."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tfyard.dashboard import buttons, charts, commands, drawing, jobs_page, parallel, trial_table
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.viewer import Viewer
from tfyard.model.sweep import SweepState, short_text, trial_name
from tfyard.overview import sweep_text
from tfyard.sdk.place import Listed

PARTS = ("fresh", "head", "best", "pictures", "trials")


def values(viewer: Viewer, address: Address, row: Listed, missing: Mapping[str, str]) -> dict[str, Any]:
    assert row.sweep
    now, state, gone = datetime.now(UTC), row.sweep, viewer.board.gone.get(address)
    return {
        "address": address,
        "row": jobs_page.row(row, None, now),
        "job": row.job,
        "state": state,
        "sentence": "; ".join(filter(None, (sweep_text.progress(state), state.message))),
        "searched": sweep_text.searched(state.spec),
        "gone": gone,
        "buttons": [] if gone else buttons.buttons(row, missing, {}),
        "best": _best(state, row.job.namespace),
        "up": "../" * address.path.count("/"),
        "best_lines": [_line(viewer, address, "best"), _line(viewer, address, "rerun", "--best")],
        "chart": charts.of_curve(sweep_text.best_so_far(state)),
        "parallel": parallel.drawn(state),
        "trials": trial_table.table(state, row.job.namespace, now),
        "freshness": viewer.board.freshness,
        "now": now,
    }


def parts(viewer: Viewer, address: Address, row: Listed, missing: Mapping[str, str]) -> list[PagePart]:
    known = values(viewer, address, row, missing)
    return [drawing.part(id, "sweep_parts.html", {"v": known}) for id in PARTS]


def _best(state: SweepState, namespace: str) -> dict[str, Any] | None:
    if (trial := state.best) is None:
        return None
    return {
        "name": trial_name(state.spec.name, trial.number),
        "address": Address(namespace, trial.job),
        "objective": sweep_text.objective(state, trial),
        "values": [(name, short_text(value)) for name, value in trial.values.items()],
    }


def _line(viewer: Viewer, address: Address, action: str, *words: str) -> str:
    return commands.line(action, [address], words, viewer.identity.options).replace(" run/", " ", 1)
