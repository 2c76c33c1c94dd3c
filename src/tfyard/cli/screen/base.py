"""What every screen can do: show the events of a run."""

from abc import ABC, abstractmethod

from tfyard.model.run_events import RunEvent


class Screen(ABC):
    """Also a context: on leaving, the terminal is as it was."""

    may_skip = False
    """Whether log lines may be left out if there are more than a person could read."""

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def refresh(self) -> None:
        """Called several times a second, whether something happens or not."""
        return

    @abstractmethod
    def show(self, event: RunEvent) -> None: ...
