"""The page of one job: its parts, from what the board knows of it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tfyard.dashboard import buttons, charts, commands, drawing, jobs_page, times
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.drawing import PagePart
from tfyard.dashboard.viewer import Viewer
from tfyard.overview import attempts, job_table, job_view, top
from tfyard.overview.attempts import Attempt
from tfyard.overview.job_view import JobView, ToldEvent
from tfyard.overview.wording import harmless
from tfyard.sdk.place import Listed

PARTS = ("fresh", "head", "why", "metrics", "timeline", "uses", "events")
ROWS = 200
"""Rows of a table; a job of a thousand tasks has more attempts than anybody reads."""


def values(viewer: Viewer, address: Address, row: Listed, missing: Mapping[str, str]) -> dict[str, Any]:
    now, details = datetime.now(UTC), viewer.board.details.get(address)
    view = details.view if details else None
    gone = viewer.board.gone.get(address)
    tried = view.attempts if view else ()
    opens, lines = viewer.identity.opens_pages, _lines(viewer, address)
    return {
        "address": address,
        "row": jobs_page.row(row, details, now),
        "job": row.job,
        "details": details,
        "sentence": _sentence(view, now) if view else "",
        "kind": view.title if view else "",
        "gone": gone,
        "buttons": [] if gone else buttons.buttons(row, missing, {} if opens else lines),
        "lines": lines,
        "opened": viewer.opened.of(address),
        "answer": details.answer if details else None,
        "charts": charts.charts(details.progress) if details else [],
        "timeline": charts.timeline(_shown(tried), now),
        "attempts": drawing.table(attempts.COLUMNS, [attempts.row(each, now) for each in _shown(tried)]),
        "left_out": len(tried) - len(_shown(tried)),
        "uses": drawing.table(
            top.COLUMNS, [top.row(each) for each in details.uses[:ROWS]] if details else []
        ),
        "events": _events(view.events[-ROWS:] if view else (), now),
        "last_words": _last_words(tried),
        "freshness": viewer.board.freshness,
        "now": now,
    }


def _lines(viewer: Viewer, address: Address) -> dict[str, str]:
    """Commands of the pages that are opened; where this page does not run on the user's machine, instead of
    buttons."""
    return {action: commands.line(action, [address], (), viewer.identity.options) for action in buttons.PAGES}


def parts(viewer: Viewer, address: Address, row: Listed, missing: Mapping[str, str]) -> list[PagePart]:
    known = values(viewer, address, row, missing)
    return [drawing.part(id, "job_parts.html", {"v": known}) for id in PARTS]


def row_of(viewer: Viewer, address: Address) -> Listed | None:
    """The row of a job that is there, or was deleted while its page was open. A job that is not in the list is
    known by its details."""
    board = viewer.board
    if row := board.rows.get(address):
        return row
    known = board.gone.get(address) or board.details.get(address)
    return known.row if known else None


def _sentence(view: JobView, now: datetime) -> str:
    """The sentence of `tfyard describe`; its first word stands beside it, in colour."""
    name = job_table.state(view.summary)
    return job_view.sentence(view, now).removeprefix(name).strip()


def _events(told: Sequence[ToldEvent], now: datetime) -> dict[str, Any]:
    """The events as a table; the pointer shows the times of their ages."""
    known = drawing.table(job_view.EVENT_COLUMNS, job_view.event_rows(told, now))
    for row, each in zip(known["rows"], told, strict=True):
        row[0] = times.dated(row[0], each.event.at)
    return known


def _shown(tried: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """The attempts that the page has room for; those that failed are preferred."""
    if len(tried) <= ROWS:
        return tried
    failed = [each for each in tried if each.state == "Failed"]
    chosen = {id(each) for each in [*failed, *tried][:ROWS]}
    return tuple(each for each in tried if id(each) in chosen)


def _last_words(tried: tuple[Attempt, ...]) -> list[tuple[str, str]]:
    """The last lines of the last two attempts that failed."""
    told = [each for each in tried if each.message and each.state == "Failed"][-2:]
    return [(f"{each.task}, attempt {each.number}", harmless(each.message.strip())) for each in told]
