"""How a run looks: live on a terminal, as plain lines elsewhere, or as JSON for scripts."""

import os
import sys

from tfyard.overview.progress import Progress, Screen


def choose(output: str, tasks: list[str], progress: Progress, *, quiet: bool) -> Screen:
    """Imports only the chosen one: rich is not needed to print lines."""
    if output == "json":
        from .json import JsonScreen

        return JsonScreen(quiet=quiet)
    if (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
        and not quiet
    ):
        from .live import LiveScreen

        return LiveScreen(tasks, progress)
    from .plain import PlainScreen

    return PlainScreen(tasks, quiet=quiet)


__all__ = ["Screen", "choose"]
