"""Turns templates into HTML. Everything that comes from jobs, logs and messages is escaped by the templates; what
is drawn by `charts.py` and `log_lines.py` is escaped there."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape
from msgspec import Struct

from tfyard import __version__
from tfyard.dashboard import times
from tfyard.overview.wording import age, duration, harmless, number, size

STATIC = {"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}

FIGURES = {
    "Running": "running",
    "Succeeded": "succeeded",
    "Failed": "failed",
    "Killed": "failed",
    "Stopped": "stopped",
    "Interrupted": "stopped",
    "Suspended": "stopped",
    "Pruned": "stopped",
    "Pruning": "running",
}
"""State -> its colour; all others wait."""


class PagePart(Struct, frozen=True):
    """A piece of a page that is sent again when it has changed. Its element has the same id."""

    id: str
    html: str

    @property
    def version(self) -> str:
        return hashlib.blake2s(self.html.encode(), digest_size=8).hexdigest()


@cache
def static(name: str) -> bytes:
    return resources.files("tfyard.dashboard").joinpath("static", name).read_bytes()


@cache
def version_of(name: str) -> str:
    """A part of a file's address, so that browsers may keep it."""
    return hashlib.blake2s(static(name), digest_size=6).hexdigest()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tfyard.dashboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": ago,
        "harmless": harmless,
        "size": size,
        "number": number,
    }
    environment.filters |= {"duration": duration, "quoted": quoted, "fix": fix}
    environment.filters |= {"moment": times.moment, "clock": times.clock, "dated": times.dated}
    environment.globals |= {"version": __version__, "version_of": version_of, "zone": times.zone}
    return environment


def figure(state: str) -> str:
    return FIGURES.get(state, "waiting")


def page(template: str, values: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(values)


def part(id: str, template: str, values: Mapping[str, Any]) -> PagePart:
    """A part by the macro of its name in `template`."""
    module = _environment().get_template(template).make_module({})
    macro: Callable[..., Markup] = getattr(module, id.partition("-")[0])
    return PagePart(id, str(macro(**values)))


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> dict[str, Any]:
    """A table without the columns that nothing is in."""
    used = [at for at in range(len(columns)) if at == 0 or any(row[at] for row in rows)]
    return {
        "columns": [titled(columns[at]) for at in used],
        "rows": [[harmless(row[at]) for at in used] for row in rows],
    }


def titled(column: str) -> str:
    return column if column in ("CPU", "ETA", "GPU") else column.capitalize()


def ago(at: datetime | None, now: datetime) -> str:
    return age((now - at).total_seconds()) if at else ""


def quoted(text: str) -> Markup:
    """The text with what stands between backticks as code."""
    parts = harmless(text).split("`")
    if len(parts) % 2 == 0:
        return escape(harmless(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if turn % 2 else escape(part)
        for turn, part in enumerate(parts)
    )


def fix(text: str) -> Markup:
    """A fix is a command or a line of a file, unless backticks in it say which part is."""
    return quoted(text if "`" in text else f"`{text}`")
