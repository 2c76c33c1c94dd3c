"""Durations, sizes, numbers and the ends of tasks, as people read them."""

from tfyard.model.run_events import Ended


def ending(ended: Ended) -> str:
    if ended.stopped:
        return f"stopped: {ended.stopped}"
    return f"ended with code {ended.code}" + (" (OOMKilled)" if ended.reason == "OOMKilled" else "")


def starting_again(start: int) -> str:
    return f"starts again (start {start})"


def skipped(lines: int) -> str:
    return f"… {lines:,} lines not shown; its log has them"


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def size(count: float) -> str:
    """Of so many bytes."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def number(value: float) -> str:
    return f"{value:.4g}"
