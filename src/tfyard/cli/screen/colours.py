"""Colours of tasks, by their position in the job: a task has the same colour in every command."""

from collections.abc import Sequence

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")


def of_tasks(tasks: Sequence[str]) -> dict[str, str]:
    """Task -> colour, by a name that both rich and click know."""
    return {task: COLOURS[at % len(COLOURS)] for at, task in enumerate(tasks)}
