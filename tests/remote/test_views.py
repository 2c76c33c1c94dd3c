"""What a pod tells of the attempts at its task."""

from datetime import UTC, datetime

import pytest

from tfyard.overview.objects import (
    ContainerStatus,
    Meta,
    Pod,
    PodStatus,
    Running,
    State,
    Terminated,
    Waiting,
)
from tfyard.remote.views import attempts_of

AT = datetime(2026, 1, 31, tzinfo=UTC)
ENDED = State(terminated=Terminated(exit_code=1, started_at=AT, finished_at=AT))


@pytest.mark.parametrize(
    ("count", "state", "restarts"),
    [
        (0, State(running=Running(AT)), [0]),
        (0, State(waiting=Waiting("CrashLoopBackOff")), [0, 1]),
        (1, State(running=Running(AT)), [0, 1]),
        (1, State(waiting=Waiting("CrashLoopBackOff")), [1, 2]),
    ],
)
def test_a_restart_is_counted_when_it_begins(count: int, state: State, restarts: list[int]) -> None:
    last = ENDED if len(restarts) > 1 else State()
    status = PodStatus(
        container_statuses=(
            ContainerStatus(name="tensorflow", restart_count=count, state=state, last_state=last),
        )
    )
    found = attempts_of(Pod(Meta(name="job-worker-0", creation_timestamp=AT), status=status))
    assert [each.restart for each in found] == restarts
