"""Durations, sizes, numbers and the ends of tasks, as people read them.

No line of a program looks like a message of tfyard: each one has its task and PROGRAM in front.
"""

import re

from tfyard.model.run_events import Ended

PROGRAM, TOOL = "│", "──"
"""Separators after the name of a task: before a line of its program, and before a message of tfyard."""
NAMED_TASKS = 4
"""Most tasks that are named; more are counted."""


def ending(ended: Ended) -> str:
    if ended.stopped:
        return f"stopped: {ended.stopped}"
    return f"ended with code {ended.code}" + (" (OOMKilled)" if ended.reason == "OOMKilled" else "")


def starting_again(start: int) -> str:
    return f"starts again (start {start})"


def skipped(lines: int) -> str:
    return f"… {lines:,} {_lines(lines)} not shown; see its log"


def folded(lines: int) -> str:
    return f"… {lines:,} {_lines(lines)} of TensorFlow's runtime; --verbose shows them"


def _lines(count: int) -> str:
    return "line" if count == 1 else "lines"


def waiting(tasks: list[str], seconds: float) -> str:
    """Message about tasks that were asked to stop."""
    more = f" and {len(tasks) - NAMED_TASKS} more" if len(tasks) > NAMED_TASKS else ""
    named = ", ".join(tasks[:NAMED_TASKS])
    return f"waiting for {named}{more} to stop; SIGKILL follows in {seconds:.0f} s"


def duration(seconds: float) -> str:
    """A duration in words. One since a time of the server may be negative: the clock here may be behind."""
    minutes, left = divmod(max(0, int(seconds)), 60)
    whole_hours, minutes = divmod(minutes, 60)
    if whole_hours:
        return f"{whole_hours}h{minutes:02}m"
    return f"{minutes}m{left:02}s" if minutes else f"{left}s"


def size(count: float) -> str:
    """A number of bytes in words, such as 1.5 GB."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def hours(value: float) -> str:
    """CPU-hours or GPU-hours, without an exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.001 or value == 0 else "under 0.001"


def number(value: float) -> str:
    return f"{value:.4g}"


def on_this_machine(text: str) -> str:
    """A message of the planner in the words of a run: it has no TFJob and no namespace."""
    return re.sub(r"\bTFJob (?:[\w.-]+/)?", "job ", text)


def harmless(text: str) -> str:
    """Text without control characters: messages and logs come from outside. As in kubectl, ESC becomes ^[."""
    if text.isprintable():
        return text
    return "".join(_harmless(letter) for letter in text)


def _harmless(letter: str) -> str:
    if letter.isprintable() or letter in "\t\n":
        return letter
    return "^[" if letter == "\x1b" else ""


def age(seconds: float) -> str:
    """A duration as kubectl writes ages: 90s, 5m30s, 150m, 3h20m, 30h, 3d4h, 400d, 3y."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    for limit, text in (
        (120, f"{whole}s"),
        (600, _pair(minutes, "m", whole % 60, "s")),
        (3 * 3600, f"{minutes}m"),
        (8 * 3600, _pair(hours, "h", minutes % 60, "m")),
        (48 * 3600, f"{hours}h"),
        (8 * 86400, _pair(days, "d", hours % 24, "h")),
        (2 * 365 * 86400, f"{days}d"),
        (8 * 365 * 86400, _pair(days // 365, "y", days % 365, "d")),
    ):
        if whole < limit:
            return text
    return f"{days // 365}y"


def _pair(first: int, unit: str, second: int, small: str) -> str:
    return f"{first}{unit}{second}{small}" if second else f"{first}{unit}"
