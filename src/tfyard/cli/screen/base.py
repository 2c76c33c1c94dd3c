"""The interface of screens, which show the events of a run."""

from abc import ABC, abstractmethod

from tfyard.model.run_events import RunEvent


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
