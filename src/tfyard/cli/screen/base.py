"""The interface of screens, which show the events of a run."""

from abc import ABC, abstractmethod

from msgspec import Struct

from tfyard.model.run_events import RunEvent


class ScreenOptions(Struct, frozen=True, kw_only=True):
    """What a screen shows."""

    tasks: tuple[str, ...]
    asks: bool
    """A task reads what is typed at this terminal, so a line without an end may be a question."""
    quiet: bool
    verbose: bool

    @property
    def width(self) -> int:
        """Columns of the longest name."""
        return max(map(len, self.tasks), default=0)


class Screen(ABC):
    """A context manager: its exit restores the terminal."""

    may_skip = False
    """Whether log lines may be left out if there are more than a person could read."""

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def refresh(self) -> None:
        """Called several times a second, also without events."""
        return

    @abstractmethod
    def show(self, event: RunEvent) -> None: ...
