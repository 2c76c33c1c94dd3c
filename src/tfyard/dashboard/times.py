"""Times as HTML: in UTC, until the script shows all of them in the zone that the reader has chosen."""

from datetime import UTC, datetime

from markupsafe import Markup

DAY_AND_CLOCK, CLOCK = "%Y-%m-%d %H:%M:%S", "%H:%M:%S"
IN_SVG = "tspan"
"""The element for times in pictures, where `time` and `span` would end the picture."""


def moment(at: datetime | None, element: str = "time") -> Markup:
    return _time(element, at, "", f"{at.astimezone(UTC):{DAY_AND_CLOCK}}") if at else Markup()


def clock(at: datetime | None) -> Markup:
    return _time("time", at, "short", f"{at.astimezone(UTC):{CLOCK}}") if at else Markup()


def dated(words: str, at: datetime | None) -> Markup:
    """Words that stand for a time, such as an age: the pointer shows the time."""
    return _time("time", at, "words", words) if at else Markup("{}").format(words)


def zone(element: str = "span") -> Markup:
    """The name of the zone that times are in."""
    return Markup('<{0} data-zone="">UTC</{0}>').format(element)


def _time(element: str, at: datetime, shows: str, text: str) -> Markup:
    stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    html = Markup('<{0} datetime="{1}" data-shows="{2}">{3}</{0}>')
    return html.format(element, stamp, shows, text)
