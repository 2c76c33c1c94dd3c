"""What a driver writes into the ConfigMap of its sweep, always with the resourceVersion that it has read: of two
drivers, only one can go on."""

from datetime import UTC, datetime

from tfyard.kube import Conflict
from tfyard.kube.sync import SyncClient
from tfyard.model.sweep import SweepState
from tfyard.sweeps.driver import DrivenElsewhere

from . import store
from .store import SweepObject


class SweepStore:
    """The state of a sweep as its one driver writes it."""

    def __init__(self, client: SyncClient, sweep: SweepObject) -> None:
        self._client, self.sweep = client, sweep

    def save(self, state: SweepState) -> None:
        """Raises DrivenElsewhere if another driver has taken the sweep over."""
        self._patch({}, state)

    def look(self) -> SweepObject:
        """The sweep as it is now, after it was told that its driver is alive."""
        self._refresh()
        now = datetime.now(UTC)
        if not self.sweep.is_driven(now + store.SILENCE[self.sweep.kind] / 2):
            self._patch({})
        return self.sweep

    def leave(self) -> None:
        """Another driver may go on at once."""
        self._patch({store.DRIVEN_UNTIL: None})

    def _patch(self, annotations: dict[str, str | None], state: SweepState | None = None) -> None:
        while True:
            alive = store.driven(self.sweep.driver, datetime.now(UTC))
            try:
                self.sweep = store.patched(self._client, self.sweep, {**alive, **annotations}, state)
            except Conflict:  # it was asked to stop, or another driver has written
                self._refresh()
            else:
                return

    def _refresh(self) -> None:
        self.sweep = unless_taken_over(self._client, self.sweep)


def unless_taken_over(client: SyncClient, sweep: SweepObject) -> SweepObject:
    """The sweep as it is now. Raises DrivenElsewhere if another driver has taken it over since it was read."""
    now = store.read_again(client, sweep)
    if now.driver != sweep.driver:
        raise DrivenElsewhere(f"{now.name} is driven by another process now: {store.driver_text(now.driver)}")
    return now
