"""The JobStore of this machine: status in memory for the next pass, and in the run's directory for later."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from tfyard.backends.base import JobStore
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.model import Create, Decision, Delete, Event, Job, Status


class LocalStore(JobStore):
    """The status of a run; `memory`: the status of the earlier run that it continues."""

    def __init__(
        self, directory: RunDirectory, on_event: Callable[[Event], None], memory: Status | None = None
    ) -> None:
        self.status = memory or Status()
        self._directory, self._on_event = directory, on_event

    async def report(self, job: Job, before: Status, decision: Decision) -> None:  # noqa: ARG002
        self.status = status = decision.status
        if status != before or status.is_finished:
            self.save()
        if status != before or decision.actions:
            self._directory.append("decisions.jsonl", _summary(decision))
        for event in decision.events:
            self._on_event(event)

    def save(self) -> None:
        self._directory.write_status(self.status)


def _summary(decision: Decision) -> dict[str, Any]:
    actions = [
        f"{type(action).__name__} {action.kind} {action.name}"
        if isinstance(action, Create | Delete)
        else "DeleteJob"
        for action in decision.actions
    ]
    events = msgspec.to_builtins(decision.events)
    at = datetime.now(UTC).isoformat()
    return {"at": at, "phase": decision.status.phase, "actions": actions, "events": events}
