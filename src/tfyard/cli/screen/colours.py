"""The colours of tasks: by their place in the job, so that a task has the same one in every command."""

from collections.abc import Sequence

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")


def of_tasks(tasks: Sequence[str]) -> dict[str, str]:
    """Names that both rich and click know."""
    return {task: COLOURS[at % len(COLOURS)] for at, task in enumerate(tasks)}
