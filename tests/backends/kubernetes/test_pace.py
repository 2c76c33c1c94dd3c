"""When counts are written: at rest, soon; while they change, now and then; for ever, ever more rarely."""

from itertools import pairwise

import pytest

from tfyard.backends.kubernetes.pace import LONGEST_QUIET, QUIET, RESTLESS, Pace
from tfyard.model import RoleStatus, Status

STEP = 0.1


def ready(number: int) -> Status:
    return Status(replica_statuses={"Worker": RoleStatus(active=number)})


def written(pace: Pace, changes_every: float, seconds: float) -> list[float]:
    """When a job whose counts change as often is written about, looked at every tenth of a second."""
    moments = [round(number * STEP, 1) for number in range(int(seconds / STEP))]
    return [moment for moment in moments if not pace.hold("uid", ready(int(moment / changes_every)), moment)]


def test_counts_that_rest_are_written_soon() -> None:
    pace = Pace()
    assert pace.hold("uid", ready(1), 0.0)
    assert pace.left("uid", 0.0) == QUIET
    assert not pace.hold("uid", ready(1), QUIET)
    assert pace.left("uid", QUIET) is None


def test_a_change_begins_the_rest_anew() -> None:
    pace = Pace()
    assert pace.hold("uid", ready(1), 0.0)
    changed = QUIET / 2
    assert pace.hold("uid", ready(2), changed)
    assert pace.hold("uid", ready(2), QUIET)
    assert not pace.hold("uid", ready(2), changed + QUIET)


def test_counts_that_never_rest_are_written_now_and_then() -> None:
    (moment,) = written(Pace(), changes_every=0.1, seconds=6.0)
    assert moment == pytest.approx(QUIET * RESTLESS, abs=2 * STEP)


def test_a_job_that_goes_on_changing_is_written_about_ever_more_rarely() -> None:
    moments = written(Pace(), changes_every=1.0, seconds=600)
    assert len(moments) < 50
    assert max(b - a for a, b in pairwise(moments)) <= LONGEST_QUIET * RESTLESS + 1


def test_what_is_more_than_counts_takes_the_counts_with_it() -> None:
    pace = Pace()
    pace.hold("uid", ready(1), 0.0)
    pace.release("uid")
    assert pace.left("uid", 0.1) is None


def test_jobs_do_not_wait_for_each_other() -> None:
    pace = Pace()
    pace.hold("one", ready(1), 0.0)
    assert pace.hold("other", ready(1), QUIET)
    assert not pace.hold("one", ready(1), QUIET)
