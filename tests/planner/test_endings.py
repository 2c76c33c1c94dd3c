"""What the status keeps of attempts that ended without success."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tfyard.model import Ending, Job, Pod, Status, Wait

from .builders import at, begun, job, look, pod, servers, workers

ONE = job(workers(1, "OnFailure"))
RAN = {"run_started": at(1), "run_ended": at(5)}


def endings(asked: Job, *pods: Pod, seconds: float = 10, **seen: Any) -> tuple[Ending, ...]:
    known = {"status": begun(asked), **seen}
    return look(asked, *pods, now=at(seconds), **known).status.endings


def crashed(name: str, restarts: int, ended: float) -> Pod:
    """In a crash loop: the run after so many restarts has ended."""
    times = {"run_started": at(ended - 1), "run_ended": at(ended)}
    return pod(name, restarts=restarts, restart_due=True, exit_code=1, reason="Error", **times)


def test_a_job_without_failures_has_no_endings() -> None:
    assert endings(ONE, pod("worker-0")) == ()
    assert endings(ONE, pod("worker-0", "Succeeded", exit_code=0, **RAN)) == ()


def test_a_failure_is_kept_with_its_times_its_code_and_its_last_words() -> None:
    failed = pod("worker-0", "Failed", attempt=0, exit_code=1, reason="Error", message="boom\n", **RAN)
    assert endings(job(workers(1)), failed) == (
        Ending(
            task="worker-0",
            attempt=1,
            started=at(1),
            finished=at(5),
            exit_code=1,
            reason="Error",
            message="boom",
        ),
    )


def test_the_init_container_that_failed_is_kept_and_named_in_the_failure() -> None:
    failed = pod("worker-0", "Failed", exit_code=3, failed_init="prepare", message="no data", **RAN)
    decided = look(job(workers(1)), failed, status=begun(job(workers(1))), now=at(10)).status
    assert decided.endings[0].container == "prepare"
    assert decided.failure is not None
    assert "worker-0 (init container prepare) exited with code 3: no data" in decided.failure.message


def test_attempts_count_pods_and_restarts_count_in_place() -> None:
    running = pod(
        "worker-0", restarts=3, exit_code=137, reason="OOMKilled", attempt=1, running_since=at(6), **RAN
    )
    (ending,) = endings(ONE, running)
    assert (ending.attempt, ending.restart, ending.reason) == (2, 2, "OOMKilled")
    (ending,) = endings(ONE, replace(running, restart_due=True, running_since=None))
    assert ending.restart == 3


def test_an_ending_is_not_added_twice() -> None:
    one = crashed("worker-0", 0, ended=5)
    known = look(ONE, one, status=begun(ONE), now=at(6)).status
    again = look(
        ONE, replace(one, restarts=1, restart_due=False, running_since=at(6)), status=known, now=at(7)
    ).status
    assert again.endings == known.endings != ()


def test_a_moment_between_two_states_is_not_a_second_ending() -> None:
    """A kubelet first reports the end, then that it waits for the restart."""
    between = pod("worker-0", restarts=1, exit_code=1, **RAN)
    known = replace(begun(ONE, between), endings=endings(ONE, between))
    assert endings(ONE, replace(between, restart_due=True), status=known) == known.endings


def test_the_ending_of_a_pod_that_was_taken_away_has_the_reason() -> None:
    said = "default-scheduler: preempting to accommodate a higher priority pod"
    fields = {"reason": "PreemptionByScheduler", "message": said, "disrupted": True, "started": at(2)}
    preempted = pod("worker-0", deleting=at(40), asked_to_stop=True, **fields)
    assert endings(ONE, preempted) == (
        Ending(
            task="worker-0",
            attempt=1,
            started=at(2),
            finished=at(10),
            reason="PreemptionByScheduler",
            message=said,
        ),
    )


def test_the_end_of_an_earlier_run_is_not_that_of_a_deleted_pod() -> None:
    """Nor is a program's answer to SIGTERM a failure."""
    deleted = pod("worker-0", deleting=at(40), asked_to_stop=True, restarts=1, exit_code=1, message="old")
    (ending,) = endings(ONE, replace(deleted, running_since=at(7)))
    assert (ending.reason, ending.exit_code, ending.message) == ("Deleted", None, "")
    assert (ending.restart, ending.started, ending.finished) == (1, at(7), at(10))
    stopped = replace(deleted, phase="Failed", exit_code=143, reason="Error")
    (ending,) = endings(ONE, stopped)
    assert (ending.reason, ending.exit_code) == ("Deleted", 143)


def test_the_last_words_are_the_end_of_a_long_text() -> None:
    long = "x" * 2048 + "\nValueError: shapes differ"
    (ending,) = endings(job(workers(1)), pod("worker-0", "Failed", exit_code=1, message=long, **RAN))
    assert len(ending.message) == 512
    assert ending.message.startswith("…x")
    assert ending.message.endswith("x\nValueError: shapes differ")


def test_three_endings_of_a_task_are_kept() -> None:
    status = begun(ONE)
    for number in range(5):
        one = crashed("worker-0", number, ended=10.0 * number)
        status = look(ONE, one, status=status, now=at(10 * number + 1)).status
    assert [ending.restart for ending in status.endings] == [2, 3, 4]


def test_twenty_endings_of_a_job_are_kept_and_dropped_ones_do_not_come_back() -> None:
    many = job(workers(30, "OnFailure"))
    found = [crashed(f"worker-{number}", 1, ended=number) for number in range(30)]
    known = look(many, *found, status=begun(many), now=at(31)).status
    assert [ending.task for ending in known.endings] == [f"worker-{number}" for number in range(10, 30)]
    assert look(many, *reversed(found), status=known, now=at(35)).status == known


def test_endings_stay_through_success_failure_and_suspension() -> None:
    known = (Ending(task="worker-0", attempt=1, exit_code=1),)
    for phase in ("Succeeded", "Failed"):
        asked = job(workers(1), servers(1))
        status = replace(begun(asked), endings=known)
        after = look(asked, pod("worker-0", phase, attempt=0), status=status).status
        assert after.phase == phase
        assert after.endings[:1] == known
    asleep = look(job(workers(1), suspend=True), status=Status(endings=known)).status
    assert (asleep.phase, asleep.endings) == ("Suspended", known)


def test_a_suspension_is_not_an_ending_but_a_failure_just_before_it_is() -> None:
    asleep = job(workers(2), suspend=True)
    failed = pod("worker-1", "Failed", exit_code=1, **RAN)
    leaving = pod("worker-0", deleting=at(30), asked_to_stop=True)
    status = begun(job(workers(2)), pod("worker-0"))
    (ending,) = look(asleep, leaving, failed, status=status, now=at(9)).status.endings
    assert ending.task == "worker-1"


def any_pod(index: int, phase: Any, restarts: int, ended: int | None, state: str) -> Pod:
    code = None if ended is None else 1
    times = {"run_ended": at(ended) if ended is not None else None, "exit_code": code}
    more: dict[str, Any] = {
        "": {},
        "due": {"restart_due": True, "wait": Wait("CrashLoop", "back-off", times["run_ended"])},
        "again": {"running_since": at(50)},
        "pull": {"wait": Wait("ImagePull", "not found", at(0))},
    }[state]
    return pod(f"worker-{index}", phase, restarts=restarts, **times, **more)


FACTS = st.tuples(
    st.sampled_from(["Pending", "Running", "Failed"]),
    st.integers(0, 4),
    st.none() | st.integers(0, 40),
    st.sampled_from(["", "due", "again", "pull"]),
)


@settings(max_examples=50)
@given(st.lists(FACTS, min_size=1, max_size=30))
def test_pods_that_stay_as_they_are_change_nothing_more(
    facts: list[tuple[Any, int, int | None, str]],
) -> None:
    """Elastic workers whose failures are kept: nothing is replaced, so a second look must find the same."""
    asked = job(workers(len(facts)), dynamic_workers=True)
    found = [any_pod(index, *each) for index, each in enumerate(facts)]
    first = look(asked, *found, status=begun(asked), now=at(60)).status
    second = look(asked, *reversed(found), status=first, now=at(60)).status
    assert second == first
    assert look(asked, *found, status=second, now=at(65)).status.endings == first.endings
