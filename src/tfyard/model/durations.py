"""Durations as people write them."""

UNITS = {"w": 7 * 86_400, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""Unit -> seconds."""


def write_duration(seconds: int) -> str:
    """The shortest form, such as 45s, 1h30m or 2d."""
    text = ""
    for unit, size in list(UNITS.items())[1:]:
        count, seconds = divmod(seconds, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"
