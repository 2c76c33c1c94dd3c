"""What every screen can do: show the events of a run."""

from abc import ABC, abstractmethod

from tfyard.model.run_events import RunEvent


class Screen(ABC):
    """Also a context: on leaving, the terminal is as it was."""

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        return

    @abstractmethod
    def show(self, event: RunEvent) -> None: ...
