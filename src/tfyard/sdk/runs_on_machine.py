"""The runs and sweeps of this machine as a list."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfyard.model.callbacks import Contact, Say
from tfyard.sdk import rows
from tfyard.sdk.on_machine import OnMachine, all_runs, has_sweeps, home
from tfyard.sdk.place import Listed, silent

if TYPE_CHECKING:
    from tfyard.backends.local.run_directory import RunDirectory
    from tfyard.model.run_record import RunRecord
    from tfyard.sdk.place import Place
    from tfyard.sdk.sweep_on_machine import SweepOnMachine

LIST_EVERY = 1.0
"""Seconds between two looks at all runs."""


class RunsOnMachine:
    """The runs of this folder."""

    def __init__(self, say: Say = lambda _text: None, *, asks_again: bool = False) -> None:
        """`asks_again`: its places are used for long, maybe from other folders."""
        self._say, self._asks_again = say, asks_again
        self._said = set[str]()

    def rows(self) -> list[Listed]:
        """A sweep is one row, instead of a row for each of its trials."""
        sweeps = _sweep_places(self._say_once)
        of_runs = [
            _row(run, record) for run, record in all_runs(self._say_once) if not _is_in(record, sweeps)
        ]
        return sorted([*(place.row() for place in sweeps.values()), *of_runs], key=lambda row: row.job.name)

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)

    def places(self) -> list[Place]:
        sweeps = _sweep_places()
        runs = [run for run, record in all_runs() if not _is_in(record, sweeps)]
        places: list[Place] = [
            *sweeps.values(),
            *(OnMachine(run, asks_again=self._asks_again) for run in runs),
        ]
        return sorted(places, key=lambda place: place.name)

    def running(self) -> list[Place]:
        return [place for place in self.places() if _is_running(place)]

    def watch(self, contact: Contact = silent) -> Iterator[list[Listed]]:
        known = {row.title: row for row in self.rows()}
        yield list(known.values())
        while True:
            contact("")
            time.sleep(LIST_EVERY)
            now = {row.title: row for row in self.rows()}
            gone = [row.deleted() for title, row in known.items() if title not in now]
            if changed := [*(row for row in now.values() if row != known.get(row.title)), *gone]:
                yield changed
            known = now

    def nothing(self) -> str:
        return "no runs here; start one with `tfyard run FILE`"


def _row(run: RunDirectory, record: RunRecord) -> Listed:
    from tfyard.local import runs  # 30 ms, which folders without runs do not need

    return rows.of_run(runs.summary(run, record), is_over=record.ended is not None)


def _sweep_places(say: Say = lambda _text: None) -> dict[str, SweepOnMachine]:
    """The sweeps of this folder by name."""
    if not has_sweeps():
        return {}
    # 70 ms, which folders without sweeps do not need.
    from tfyard.local import sweeps
    from tfyard.sdk.sweep_on_machine import SweepOnMachine

    return {folder.name: SweepOnMachine(folder) for folder, _ in sweeps.all_sweeps(Path(home()), say)}


def _is_in(record: RunRecord, sweeps: Container[str]) -> bool:
    return record.trial is not None and record.trial.sweep in sweeps


def _is_running(place: Place) -> bool:
    if isinstance(place, OnMachine):
        return place.record.ended is None
    return place.summary().status.phase == "Running"
