"""Sweeps on a cluster as places: driven by a Job of the cluster or by a command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import NoSuchJob, NotPossible
from tfyard.formats.sweepfile.filling import filled
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model.callbacks import Say
from tfyard.model.sweep import SweepState, Trial
from tfyard.overview import sweep_text
from tfyard.overview.wording import duration
from tfyard.remote.reading import jobs
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.reading.refusals import EDIT, explained
from tfyard.remote.sweeps import store
from tfyard.remote.sweeps.store import SweepObject
from tfyard.sdk.on_cluster import OnCluster
from tfyard.sdk.place import Done, Intent, Place, RerunOptions
from tfyard.sdk.sweep_place import SweepPlace, required_best

# Each method imports what only it needs: 80 ms for what drives a sweep (with asyncio), 40 ms for what lists its
# trials. `tfyard get` and `wait` need neither.

if TYPE_CHECKING:
    from tfyard.kube import Access
    from tfyard.remote.sweeps.driving import DriveOnCluster

ANSWERS_WITHIN = 30.0
"""Seconds in which a driver notices that it is asked to stop."""


class SweepOnCluster(SweepPlace):
    look_every = 2.0

    def __init__(self, access: Access, sweep: SweepObject, say: Say) -> None:
        """Each question opens a connection: those who follow a sweep ask in several threads."""
        self._access, self._sweep, self._say = access, sweep, say
        self._read_at = time.monotonic()
        self.name, self.title, self.namespace = sweep.name, f"sweep/{sweep.name}", sweep.namespace
        self.where = f"in the namespace {self.namespace}"

    @contextmanager
    def _asking(self) -> Iterator[tuple[SyncClient, SweepObject]]:
        with explained(self.namespace, EDIT), SyncClient(self._access) as client:
            yield client, store.read_again(client, self._sweep)

    def sweep(self) -> SweepState:
        """The state; questions that follow each other quickly are answered by one request."""
        if time.monotonic() > self._read_at + self.look_every / 2:
            with self._asking() as (_, self._sweep):
                self._read_at = time.monotonic()
        return self._state_of(self._sweep)

    def _state_of(self, sweep: SweepObject) -> SweepState:
        """The state, with what keeps the Job from driving it."""
        from tfyard.remote.sweeps import driver_state

        now, stored = datetime.now(UTC), sweep.stored
        is_alone = stored is not None and stored.phase == "Running" and not sweep.is_driven(now)
        state = sweep.state(now)
        if sweep.kind != "job" or not (is_alone or sweep.is_waited_for):
            return state
        with SyncClient(self._access) as client:
            trouble = driver_state.trouble(client, sweep)
        return replace(state, message="; ".join(filter(None, (state.message, trouble))))

    def trial_place(self, trial: Trial) -> Place:
        if not trial.job:
            raise NoSuchJob(f"trial {trial.number} of {self.name} has no job yet")
        with SyncClient(self._access) as client:
            return OnCluster(self._access, jobs.find(client, self.namespace, trial.job), self._say)

    def trials(self) -> list[Place]:
        from tfyard.remote.sweeps.trials import listed  # 40 ms with formats/, which a list does not need

        with self._asking() as (client, sweep):
            found = {job.name: job for job in listed(client, sweep)}
        ranked = sweep_text.ranked(sweep.state(datetime.now(UTC)))
        return [OnCluster(self._access, found[t.job], self._say) for t in ranked if t.job in found]

    def job_file(self) -> str:
        return self._sweep.data[store.JOB]

    # --- actions

    def stop(self) -> Intent:
        from tfyard.remote.sweeps.trials import running

        with self._asking() as (client, sweep):
            trials = running(client, sweep)
        state = sweep.state(datetime.now(UTC))
        if state.phase != "Running" and not trials:
            raise NotPossible(f"{self.name} is not running ({state.phase})")
        goes = f"{len(trials)} running trial{'s'[: len(trials) != 1]}, which run again after `tfyard resume`"
        stays = ("all trials that have ended, and all logs",)
        return self._intent("stop", (goes,), stays, self._stop)

    def _stop(self) -> Done:
        """The driver stops the sweep if it is alive, else this process."""
        from tfyard.remote.sweeps import driving

        with self._asking() as (client, sweep):
            if driving.is_heard_of(sweep):
                client.send(requests.patch(sweep.path, {"metadata": {"annotations": {store.STOP: "true"}}}))
                text = f"{self.title} is asked to stop"
                return Done(text=text, wait=self._stopped, goes_on="its driver stops its trials")
            driving.stop_now(client, sweep)
        return Done(text=f"{self.title} stopped")

    def _stopped(self, say: Say, timeout: float) -> Iterator[str]:
        from tfyard.remote.sweeps import driving

        begun = time.monotonic()
        for state in self.states(begun + min(timeout or ANSWERS_WITHIN, ANSWERS_WITHIN)):
            if state is None or state.status.phase != "Running":
                break
        else:
            say("its driver does not answer")
        with self._asking() as (client, sweep):
            driving.stop_now(client, sweep)
        yield f"{self.title} stopped"

    def resume(self) -> Intent:
        with self._asking() as (_, sweep):
            now = datetime.now(UTC)
            state = sweep.state(now)
        if state.phase == "Running":
            if sweep.is_asked_to_stop:
                raise NotPossible(
                    f"{self.name} is about to stop; `tfyard resume` goes on when it has stopped"
                )
            left = duration((sweep.driven_until - now).total_seconds())
            gone = f"if that is gone, `tfyard resume {self.name}` goes on in {left}"
            raise NotPossible(f"{self.name} is running, driven by {store.driver_text(sweep.driver)}; {gone}")
        if state.phase != "Stopped":
            raise NotPossible(f"{self.name} has ended ({state.phase}), so there is nothing to resume")
        intent = self._intent("resume", (), (), self._resume)
        if sweep.kind != "command":
            return intent
        return replace(intent, foreground=lambda terminal: terminal.drive(self._continued))

    def _continued(self) -> DriveOnCluster:
        """Take the sweep over, so that this process drives it."""
        from tfyard.remote.sweeps.driving import DriveOnCluster, taken_over

        with self._asking() as (_, sweep):
            client = SyncClient(self._access)
            return DriveOnCluster(client, taken_over(client, sweep, "command"), self._say)

    def _resume(self) -> Done:
        """A Job of the cluster drives the sweep from here on."""
        from tfyard.remote.sweeps import driver_job, driving

        with self._asking() as (client, sweep):
            driver = driver_job.checked_again(client, sweep)
            sweep = driving.taken_over(client, sweep, "job", is_waited_for=True)
            driver_job.create(client, sweep, driver, self._say)
        return Done(text=f"{self.title} resumed")

    def delete(self) -> Intent:
        from tfyard.remote.sweeps.trials import listed

        with self._asking() as (client, sweep):
            count = len([*listed(client, sweep)])
        goes = f"the sweep, and its {count} trial{'s'[: count != 1]} with their pods and logs"
        return self._intent("delete", (goes,), ("the claims with the data of the trials",), self._delete)

    def _delete(self) -> Done:
        with self._asking() as (client, sweep):
            uid = sweep.metadata.uid
            client.send(requests.delete(sweep.path, uid=uid, propagation="Background"))
        return Done(text=f"{self.title} deleted", wait=self._deleted, goes_on="its trials are deleted")

    def _deleted(self, say: Say, timeout: float) -> Iterator[str]:
        """Kubernetes deletes the trials a moment after their owner."""
        from tfyard.remote.acting.actions import TimeOver
        from tfyard.remote.sweeps.trials import listed

        begun, shown = time.monotonic(), -1
        while True:
            with SyncClient(self._access) as client:
                left = len([*listed(client, self._sweep)])
            if not left:
                return
            if left != shown:
                say(f"waiting: {left} trial{'s'[: left != 1]} to be gone")
                shown = left
            if timeout and time.monotonic() - begun > timeout:
                raise TimeOver(f"{self.name}: timed out, {left} of its trials are still there")
            time.sleep(self.look_every / 4)
            yield from ()

    def rerun(self, changes: RerunOptions) -> Intent:
        """The best trial as a job of its own, in the job's own folders instead of those of the trial."""
        if not changes.is_best or changes.is_exact:
            return super().rerun(changes)
        from tfyard.remote.sweeps.driving import job_of

        state = self.sweep()
        best = required_best(self.name, state)
        with self._asking() as (client, sweep):
            trial = jobs.find(client, self.namespace, best.job)
        spec = formats.dump(filled(job_of(sweep), best.values), "v1").document["spec"]
        own = StoredTFJob(TFJOBS, {**trial.manifest, "spec": spec})
        options = replace(changes, is_best=False, name=changes.name or f"{state.spec.name}-best")
        return OnCluster(self._access, own, self._say, SyncClient(self._access)).rerun(options)

    def _intent(
        self, verb: str, goes: tuple[str, ...], stays: tuple[str, ...], perform: Callable[[], Done]
    ) -> Intent:
        return Intent(
            name=self.name,
            title=self.title,
            heading=f"{verb} the sweep {self.name} {self.where}",
            goes=goes,
            stays=stays,
            perform=partial(self._performed, perform),
        )

    def _performed(self, perform: Callable[[], Done]) -> Done:
        done = perform()
        self._read_at = 0.0
        return done
