"""Functions that are passed down, so that what works can report to the user who waits for it."""

from collections.abc import Callable

Say = Callable[[str], None]
"""Shows a line to the user: on standard error of a command, by the logger `tfyard` of a program."""
Contact = Callable[[str], None]
"""Called with the reason when a watch is lost, and with an empty text whenever it has begun again."""
