"""The card of a run or a sweep in a notebook: HTML that is updated while it lasts.

A thread updates it through IPython's display handle, without an event loop and without a script in the page. All
text of users and programs is escaped.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfyard.errors import TfyardError
from tfyard.kube import KubeError
from tfyard.model.summary import JobSummary
from tfyard.model.sweep import SweepState
from tfyard.overview import job_table, metrics, sweep_text, waiting
from tfyard.overview.curves import Curve, CurveBox, finite, polyline
from tfyard.overview.wording import duration
from tfyard.sdk.why import why

if TYPE_CHECKING:
    from tfyard.sdk.place import Place

UPDATE_EVERY = 1.0
WIDTH, HEIGHT = 240, 48
BEST_TRIALS = 10
CELL = "text-align:left;padding:.1em 1em .1em 0;white-space:nowrap"
COLOURS = {"Succeeded": "#2e7d32", "Failed": "#c62828", "Killed": "#c62828", "Running": "#1565c0"}
OTHER = "#8a6d00"
BOX = "border:1px solid #8884;border-radius:6px;padding:.6em .9em;font-family:sans-serif"


def html(place: "Place") -> str:
    """The card of the current state; an error is shown in the card."""
    try:
        state = place.sweep()
        body = "".join(_body(place) if state is None else _sweep_body(place, state))
    except TfyardError as problem:
        body = f"<b>{escape(place.name)}</b>{_text(str(problem))}"
    return f'<div style="{BOX};max-width:46em">{body}</div>'


def _body(place: "Place") -> Iterator[str]:
    job = place.summary()
    state = job_table.state(job)
    colour = COLOURS.get(state, OTHER)
    yield f'<b>{escape(place.name)}</b> <span style="opacity:.7">{escape(place.where)}</span><br>'
    yield f'<b style="color:{colour}">{escape(state)}</b> {escape(_since(job))}'
    roles = [
        f"{name.lower()} {role.ready}" for name, role in job.status.replica_statuses.items() if role.ready
    ]
    yield escape(f" · {', '.join(roles)}") if roles else ""
    progress = metrics.progress(place.points(()))
    if progress.values:
        yield f"<br>{escape(f'{progress.position()}  {progress.metrics(4)}')}"
        yield _curve(progress.loss())
    if state not in ("Succeeded", "Running"):
        yield _text(str(why(place.evidence())))


def _sweep_body(place: "Place", state: SweepState) -> Iterator[str]:
    """The progress, the best trials with their values, and the best value so far."""
    job = place.summary()
    yield f'<b>{escape(place.name)}</b> <span style="opacity:.7">sweep {escape(place.where)}</span><br>'
    yield f'<b style="color:{COLOURS.get(state.phase, OTHER)}">{escape(state.phase)}</b> {escape(_since(job))}'
    yield escape(f" · {sweep_text.progress(state)}")
    if state.message:
        yield _text(state.message)
    head, *rows = sweep_text.trial_rows(state, datetime.now(UTC))
    if rows:
        body = "".join(map(table_row, rows[:BEST_TRIALS]))
        yield f'<table style="margin-top:.5em">{table_row(head, "th")}{body}</table>'
        yield f"<i>and {len(rows) - BEST_TRIALS} more</i>" if len(rows) > BEST_TRIALS else ""
    yield _curve(sweep_text.best_so_far(state))


def table_row(cells: Sequence[str], tag: str = "td") -> str:
    shown = (f'<{tag} style="{CELL}">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{''.join(shown)}</tr>"


def _since(job: JobSummary) -> str:
    start, end = job.status.start_time or job.created, job.status.completion_time
    passed = duration(max(0.0, ((end or datetime.now(UTC)) - start).total_seconds()))
    return f"after {passed}" if end else f"for {passed}"


def _text(text: str) -> str:
    return f'<pre style="white-space:pre-wrap;margin:.5em 0 0">{escape(text)}</pre>'


def _curve(curve: Curve | None) -> str:
    points = finite(curve.points) if curve else []
    if curve is None or len(points) < 2:
        return ""
    drawn = polyline(points, CurveBox(0, 2, WIDTH, HEIGHT - 4))
    line = f'<polyline fill="none" stroke="#1565c0" stroke-width="1.5" points="{drawn}"/>'
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<br><svg {size} role="img" aria-label="{escape(_label(curve))}">{line}</svg>'


def _label(curve: Curve) -> str:
    return f"{curve.name} over {curve.unit}"


# --- live


def show(place: "Place", text: str) -> None:
    """Display a run in IPython: as a live card in a notebook, as `text` in a terminal."""
    ipython = import_module("IPython")

    def bundle() -> dict[str, str]:
        return {"text/html": html(place), "text/plain": text}

    is_live = hasattr(ipython.get_ipython(), "kernel") and not _is_over(place)
    handle = ipython.display.display(bundle(), raw=True, display_id=True)
    if is_live:
        threading.Thread(target=_follow, args=(place, handle, bundle), daemon=True).start()


def _follow(place: "Place", handle: Any, bundle: Any) -> None:
    """Update the card until the run has ended. At most a tenth of the time is spent on updates."""
    took = 0.0
    while not _is_over(place):
        time.sleep(max(UPDATE_EVERY, 9 * took))
        began = time.monotonic()
        handle.update(bundle(), raw=True)
        took = time.monotonic() - began


def _is_over(place: "Place") -> bool:
    try:
        return waiting.verdict(place.summary(), "succeeded") is not None
    except KubeError:
        return False  # the cluster may answer again
    except TfyardError:
        return True  # the job was deleted
