"""When a status is written. Counts: soon when they rest, at intervals while they change, which grow with time."""

from contextlib import suppress
from itertools import pairwise
from typing import Any, cast

import pytest

from tfyard.backends.kubernetes.cache import Cache
from tfyard.backends.kubernetes.resources import Resources
from tfyard.backends.kubernetes.store import (
    CHECK_AGAIN,
    LATER,
    LONGEST_QUIET,
    LONGEST_UNQUIET,
    LONGEST_YIELD,
    QUIET,
    SELDOM,
    SOON,
    ClusterStore,
    StatusDelay,
)
from tfyard.backends.kubernetes.views import StoredJob
from tfyard.backends.kubernetes.writes import Writer
from tfyard.kube import Client, KubeError, Request
from tfyard.kube.errors import ErrorStatus, from_status
from tfyard.kube.requests import TFJOBS
from tfyard.model import API_VERSION, Decision, Job, RoleStatus, Status, Urgency
from tfyard.views.metadata import ObjectMeta

STEP = 0.1


def ready(number: int, urgency: Urgency = "at rest") -> Decision:
    status = Status(replica_statuses={"Worker": RoleStatus(active=number)})
    return Decision(status=status, urgency=urgency)


def writes(delay: StatusDelay, decision: Decision, now: float, *, is_creating_many: bool = False) -> bool:
    """Whether the status is sent now; the server accepts it."""
    if delay.holds("uid", decision, now, is_creating_many=is_creating_many):
        return False
    delay.written("uid", decision, now)
    return True


def written(delay: StatusDelay, changes_every: float, seconds: float) -> list[float]:
    """Times of writes about a job whose counts change at this interval, checked every tenth of a second."""
    moments = [round(number * STEP, 1) for number in range(int(seconds / STEP))]
    return [moment for moment in moments if writes(delay, ready(int(moment / changes_every)), moment)]


def test_counts_that_rest_are_written_soon() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(1), 0.0)
    assert delay.due_in("uid", 0.0) == QUIET
    assert writes(delay, ready(1), QUIET)
    assert delay.due_in("uid", QUIET) is None


def test_a_change_begins_the_rest_anew() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(1), 0.0)
    changed = QUIET / 2
    assert delay.holds("uid", ready(2), changed)
    assert delay.holds("uid", ready(2), QUIET)
    assert not delay.holds("uid", ready(2), changed + QUIET)


def test_counts_that_never_rest_are_written_now_and_then() -> None:
    (moment,) = written(StatusDelay(), changes_every=0.1, seconds=6.0)
    assert moment == pytest.approx(QUIET * LONGEST_UNQUIET, abs=2 * STEP)


def test_a_job_that_goes_on_changing_is_written_about_ever_more_rarely() -> None:
    moments = written(StatusDelay(), changes_every=1.0, seconds=600)
    assert len(moments) < 50
    assert max(b - a for a, b in pairwise(moments)) <= LONGEST_QUIET * LONGEST_UNQUIET + 1


def test_a_job_that_does_not_go_well_is_written_about_at_once_and_then_at_most_every_ten_seconds() -> None:
    delay, moments = StatusDelay(), [round(number * STEP, 1) for number in range(600)]
    times = [now for now in moments if writes(delay, ready(int(now / 0.3), "seldom"), now)]
    assert times[0] <= SOON + STEP
    assert len(times) == 6
    assert min(b - a for a, b in pairwise(times)) >= SELDOM - STEP / 2
    assert delay.due_in("uid", 60.0) is not None
    delay.forget("uid")
    assert delay.holds("uid", ready(1, "seldom"), 60.0)
    assert delay.due_in("uid", 60.0) == pytest.approx(SOON)


def test_an_urgent_status_is_written_with_the_counts() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(1), 0.0)
    assert writes(delay, ready(1, "now"), 0.1)
    assert delay.due_in("uid", 0.1) is None


def test_the_start_of_a_job_does_not_wait_for_its_counts_to_rest() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(1, "soon"), 0.0)
    assert delay.holds("uid", ready(2, "soon"), SOON / 2)
    assert not delay.holds("uid", ready(3, "soon"), SOON)


def test_the_start_of_a_job_is_written_with_counts_that_wait_already() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(1), 0.0)
    assert delay.holds("uid", ready(2, "soon"), QUIET / 2)
    assert not delay.holds("uid", ready(2, "soon"), QUIET)


def test_a_new_job_is_written_once_with_the_start_of_its_pods_or_within_two_seconds() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(0, "later"), 0.0)
    assert delay.holds("uid", ready(1, "soon"), 1.0), "its pods run"
    assert not delay.holds("uid", ready(1, "soon"), 1.0 + SOON)
    assert delay.holds("other", ready(0, "later"), 0.0)
    assert not delay.holds("other", ready(0, "later"), LATER)
    assert delay.holds("crowd", ready(0, "later"), 0.0)
    assert delay.holds("crowd", ready(0, "later"), LATER, is_creating_many=True)
    assert delay.due_in("crowd", LATER) == LATER, "its pods can start now"


def test_a_new_job_goes_on_waiting_while_others_of_a_crowd_start_but_not_for_ever() -> None:
    delay, now, number = StatusDelay(), 0.0, 0
    delay.holds("uid", ready(0, "later"), now)
    while delay.holds("uid", ready(0, "later"), now):
        delay.holds(f"other-{number}", ready(0, "later"), now)
        delay.holds(f"other-{number}", ready(1, "soon"), now)
        now, number = now + STEP, number + 1
    assert LONGEST_YIELD <= now <= LONGEST_YIELD + LATER


def test_after_a_rush_a_new_job_waits_for_its_pods_as_long_again_as_the_rush_took() -> None:
    delay, rush = StatusDelay(), 8
    for moment in range(rush + 1):
        delay.holds("uid", ready(0, "later"), float(moment), is_creating_many=True)
    moments = (rush + STEP * number for number in range(200))
    written = next(now for now in moments if not delay.holds("uid", ready(0, "later"), now))
    assert written == pytest.approx(2 * rush, abs=LATER)
    delay.holds("next", ready(0, "later"), 30.0)
    assert not delay.holds("next", ready(0, "later"), 30.0 + LATER), "the rush is over"


def test_while_many_pods_are_created_the_start_of_a_job_waits_but_not_for_ever() -> None:
    delay, now = StatusDelay(), 0.0
    while not writes(delay, ready(1, "soon"), now, is_creating_many=True):
        assert delay.due_in("uid", now)
        now += STEP
    assert LONGEST_YIELD <= now <= LONGEST_YIELD + CHECK_AGAIN
    assert delay.due_in("uid", now) is None


def test_once_many_pods_were_created_the_start_of_a_job_is_written_at_the_next_check() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(1, "soon"), 0.0)
    assert delay.holds("uid", ready(1, "soon"), SOON, is_creating_many=True)
    left = delay.due_in("uid", SOON)
    assert left is not None
    assert not delay.holds("uid", ready(1, "soon"), SOON + left)


def test_many_creates_delay_no_counts_and_no_urgent_status() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(1), 0.0, is_creating_many=True)
    assert not delay.holds("uid", ready(1), QUIET, is_creating_many=True)
    assert not delay.holds("uid", ready(2, "now"), QUIET, is_creating_many=True)


def test_a_status_that_was_refused_stays_due() -> None:
    delay = StatusDelay()
    assert delay.holds("uid", ready(1), 0.0)
    assert not delay.holds("uid", ready(1), QUIET)
    assert not delay.holds("uid", ready(1), 2 * QUIET), "the queue's back-off decides, not a new rest"
    assert delay.due_in("uid", 2 * QUIET) == 0.0


def test_jobs_do_not_wait_for_each_other() -> None:
    delay = StatusDelay()
    delay.holds("one", ready(1), 0.0)
    assert delay.holds("other", ready(1), QUIET)
    assert not delay.holds("one", ready(1), QUIET)


class Refusing:
    """A client of a server that refuses every status."""

    def __init__(self, problem: KubeError) -> None:
        self.problem, self.times = problem, list[float]()
        self.seconds = 0.0

    async def send(self, request: Request, into: Any) -> Any:  # noqa: ARG002
        self.times.append(self.seconds)
        raise self.problem


async def flap(problem: KubeError, urgency: Urgency, minutes: int) -> Refusing:
    """Passes of a job each 0.4 s, as its pod becomes ready and unready."""
    client = Refusing(problem)
    writer, cache = Writer(cast("Client", client), lambda: True, lambda *_: None), Cache()
    store = ClusterStore(
        writer, cache, Resources.of([TFJOBS]), lambda _: False, lambda *_: None, lambda: client.seconds
    )
    meta = ObjectMeta("train", "lab", "uid", "1")
    cache.put_job(TFJOBS, StoredJob(metadata=meta, api_version=API_VERSION, kind="TFJob"))
    job = Job(name="train", namespace="lab", uid="uid", api_version=API_VERSION)
    for number in range(minutes * 150):
        with suppress(KubeError):
            await store.report(job, Status(), ready(number % 2, urgency))
        client.seconds += 0.4
    return client


@pytest.mark.parametrize("urgency", ["now", "soon"])
async def test_a_refused_status_is_sent_ever_more_rarely_however_often_its_job_changes(
    urgency: Urgency,
) -> None:
    """It was sent 150 times a minute, because each change of a pod overtook the back-off of the queue."""
    client = await flap(from_status(ErrorStatus(code=400, message="no")), urgency, 10)
    assert 10 <= len(client.times) <= 20
    assert min(later - before for before, later in pairwise(client.times[-4:])) > 40


async def test_a_status_that_the_server_postpones_is_not_sent_before() -> None:
    client = await flap(from_status(ErrorStatus(code=429), 30.0), "now", 2)
    assert min(later - before for before, later in pairwise(client.times)) >= 30
    assert len(client.times) == 4


class Accepting:
    """A client of a server that stores every status."""

    def __init__(self) -> None:
        self.written: list[str] = []

    async def send(self, request: Request, into: Any) -> Any:
        self.written.append(request.path.split("/")[-2])
        return into.decode(request.body)


async def test_a_tenant_that_creates_many_pods_delays_no_status_of_another() -> None:
    """It delayed Created and Running of everybody by up to half a minute."""
    client, cache, seconds = Accepting(), Cache(), 0.0
    writer = Writer(cast("Client", client), lambda: True, lambda *_: None)
    store = ClusterStore(
        writer, cache, Resources.of([TFJOBS]), "busy".__eq__, lambda *_: None, lambda: seconds
    )
    jobs = [Job(name=f"in-{ns}", namespace=ns, uid=ns, api_version=API_VERSION) for ns in ("busy", "other")]
    for job in jobs:
        meta = ObjectMeta(job.name, job.namespace, job.uid, "1")
        cache.put_job(TFJOBS, StoredJob(metadata=meta, api_version=API_VERSION, kind="TFJob"))
    while seconds < LATER + STEP:
        for job in jobs:
            await store.report(job, Status(), ready(0, "later"))
        seconds += STEP
    assert set(client.written) == {"in-other"}
    for job in jobs:
        store.forget(job.namespace, job.uid)
    assert store._delays == {}
