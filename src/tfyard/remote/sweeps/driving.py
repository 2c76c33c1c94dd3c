"""A driver's whole life: it takes the sweep over, drives it to its end, and goes on when the cluster answers
again."""

import random
import time
from datetime import UTC, datetime

from tfyard import formats
from tfyard.errors import NoSuchJob, NotPossible
from tfyard.kube import Conflict, KubeError, Transient
from tfyard.kube.sync import BACKOFF, SyncClient
from tfyard.model import Job
from tfyard.model.callbacks import Say
from tfyard.model.sweep import SweepState
from tfyard.sweeps.decide import resumed
from tfyard.sweeps.driver import CannotGoOn, DrivenElsewhere, Driver, Watch
from tfyard.sweeps.search import Random, search

from . import store
from .saving import SweepStore, unless_taken_over
from .store import STOP, DriverKind, SweepObject
from .trials import PARALLEL, TrialsOnCluster, stop_all


class DriveOnCluster:
    """Ctrl-C, and whatever else ends this process, leaves the trials that run alone."""

    removed: tuple[str, ...] = ()
    stops_trials = False

    def __init__(self, client: SyncClient, sweep: SweepObject, say: Say) -> None:
        """`sweep`: as this process has taken it over."""
        self._client, self._say = client, say
        self._store = SweepStore(client, sweep)
        self.name, self.where = sweep.name, f"in the namespace {sweep.namespace}"
        self.state = sweep.state(datetime.now(UTC))
        self.parallel = self.state.spec.parallel or PARALLEL
        ways = f"`tfyard resume {sweep.name}` goes on, `tfyard stop {sweep.name}` stops them"
        self.left = f"no process drives {sweep.name} any more: trials that run go on to their end; {ways}"

    def run(self, watch: Watch) -> SweepState:
        backoff = BACKOFF
        try:
            while True:
                try:
                    return self._drive(watch)
                except (Transient, CannotGoOn) as problem:
                    if not _is_over_soon(problem):
                        raise
                    backoff = backoff.next()
                    self._say(f"{problem}; trying again")
                    time.sleep(backoff.delay(random.random()))
        finally:
            self._leave()

    def _drive(self, watch: Watch) -> SweepState:
        """Drive on from what is stored, as after a crash: whether the last write was received is unknown."""
        sweep = self._store.look()
        self.state = sweep.stored or self.state
        trials = TrialsOnCluster(self._client, self._store, job_of(sweep), self.state.spec)
        trials.stop_others(self.state)
        trials.wait_for_others(self.state)
        return Driver(self.state, trials, search(self.state.spec), watch).run()

    def _leave(self) -> None:
        self._client.close()  # Ctrl-C may have cut an answer
        try:
            self._store.leave()
        except (KubeError, NoSuchJob, DrivenElsewhere):
            return  # deleted, or driven by another process, or heard of no more


def _is_over_soon(problem: Exception) -> bool:
    """Whether the same may succeed later: the server did not answer, or a quota is used up."""
    cause = problem.__cause__ if isinstance(problem, CannotGoOn) else problem
    return isinstance(cause, Transient) or (isinstance(cause, KubeError) and "exceeded quota" in str(cause))


def taken_over(
    client: SyncClient, sweep: SweepObject, kind: DriverKind, *, is_waited_for: bool = False
) -> SweepObject:
    """The sweep, with this process as its driver, or one that is waited for; one that was stopped goes on. Raises
    DrivenElsewhere."""
    driver = store.driver_name(kind) if is_waited_for else store.here(kind)
    while True:
        now, state = datetime.now(UTC), sweep.stored
        if state is None:
            raise NotPossible(f"the ConfigMap {sweep.name} is corrupt")
        going_on = resumed(state, now) if state.phase == "Stopped" else None
        try:
            return store.patched(client, sweep, {**store.driven(driver, now), STOP: None}, going_on)
        except Conflict:
            sweep = unless_taken_over(client, sweep)


def is_heard_of(sweep: SweepObject) -> bool:
    """Whether a driver is alive that can be asked to stop the sweep."""
    return sweep.is_driven(datetime.now(UTC)) and not sweep.is_waited_for


def stop_now(client: SyncClient, sweep: SweepObject) -> None:
    """Stops the sweep in place of its driver, so that it can be resumed."""
    state = sweep.stored
    if state is not None and state.phase == "Running":
        sweep = taken_over(client, sweep, sweep.kind)  # what drives it stays: a Job, or a command
        kept = SweepStore(client, sweep)
        trials = TrialsOnCluster(client, kept, job_of(sweep), state.spec)
        driver = Driver(sweep.stored or state, trials, Random(state.spec), lambda _: None)
        driver.interrupt("it was stopped by `tfyard stop`")
        kept.leave()
    stop_all(client, sweep)


def job_of(sweep: SweepObject) -> Job:
    return formats.load(store.job_document(sweep))
