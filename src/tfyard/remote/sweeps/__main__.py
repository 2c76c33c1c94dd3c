"""The process in the Job that drives a sweep: `python -m tfyard.remote.sweeps NAME`, in the namespace of its pod.

It ends with 0 if there is nothing left to drive, also if the sweep has failed: the Job would start it again."""

import os
import signal
import sys
import time
from datetime import UTC, datetime

from msgspec.structs import replace

from tfyard.errors import NoSuchJob, TfyardError
from tfyard.extras import MissingExtra
from tfyard.kube import kubeconfig
from tfyard.kube.sync import SyncClient
from tfyard.model.sweep import SweepState
from tfyard.overview import sweep_text
from tfyard.sweeps.decide import stopped
from tfyard.sweeps.driver import DrivenElsewhere

from . import store
from .driving import DriveOnCluster, is_heard_of, taken_over
from .saving import SweepStore
from .store import SweepObject
from .trials import stop_all

LOOK_EVERY = 5.0
"""Seconds between two looks of a driver that waits."""


def main(name: str) -> int:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    access = kubeconfig.load(os.environ)
    try:
        with SyncClient(access) as client:
            sweep = store.read(client, access.namespace, name)
            return _drive_or_wait(client, sweep) if sweep else _nothing(f"there is no sweep {name}")
    except NoSuchJob as end:
        return _nothing(str(end))
    except TfyardError as problem:
        _say(str(problem))
        return 1


def _drive_or_wait(client: SyncClient, sweep: SweepObject) -> int:
    """A driver that another one has replaced waits, and goes on when that is silent. It must not end: a Job whose
    first pod ends well ends its other pods, of which one drives the sweep."""
    while True:
        try:
            return _drive(client, sweep)
        except DrivenElsewhere as other:
            _say(f"{other}; this one waits")
        sweep = store.read_again(client, sweep)
        while (state := sweep.stored) and state.phase == "Running" and sweep.is_driven(datetime.now(UTC)):
            time.sleep(LOOK_EVERY)
            sweep = store.read_again(client, sweep)


def _drive(client: SyncClient, sweep: SweepObject) -> int:
    state = sweep.stored
    if state is None:
        return _nothing(f"the ConfigMap {sweep.name} is corrupt")
    if state.phase == "Stopped":
        stop_all(client, sweep)  # its last driver may have been killed before it did
        return _nothing("the sweep was stopped")
    if sweep.kind == "command" and is_heard_of(sweep):
        return _nothing(f"the sweep is driven by {store.driver_text(sweep.driver)}")
    sweep = taken_over(client, sweep, "job")
    try:
        end = DriveOnCluster(client, sweep, _say).run(_DriverReporter(state))
    except MissingExtra as problem:
        why = f"its driver cannot search: {problem}; `sampler: random` or another image of the driver can"
        SweepStore(client, store.read_again(client, sweep)).save(stopped(state, datetime.now(UTC), why))
        return _nothing(why)
    return _nothing("\n".join(sweep_text.summary(end)))


class _DriverReporter:
    """Prints what happens, for the log of the driver."""

    def __init__(self, state: SweepState) -> None:
        self._state = state

    def __call__(self, state: SweepState) -> None:
        before, self._state = self._state, replace(state)
        for text in sweep_text.changes(before, state):
            _say(text)


def _nothing(text: str) -> int:
    """Nothing is left to do."""
    _say(text)
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
