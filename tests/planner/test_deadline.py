"""activeDeadlineSeconds: it fires on a quiet job, and not on one that has finished."""

from .builders import at, begun, deleted, job, look, pod, pods, servers, workers

LIMITED = job(workers(1), servers(1), deadline=60)
SEEN = pods("worker-0", "ps-0")


def test_the_first_pass_says_when_to_look_again() -> None:
    assert look(LIMITED).wake_after == 61


def test_a_quiet_job_is_looked_at_again_when_its_time_is_over() -> None:
    decision = look(LIMITED, *SEEN, status=begun(LIMITED, *SEEN), now=at(45.5))
    assert (decision.status.is_finished, decision.wake_after) == (False, 15.5)


def test_a_job_that_began_late_in_its_second_has_all_its_time() -> None:
    first = look(LIMITED, now=at(0.9))
    assert first.status.start_time == at(0)
    assert not look(LIMITED, *SEEN, status=first.status, now=at(60.8)).status.is_finished
    assert look(LIMITED, *SEEN, status=first.status, now=at(61)).status.is_finished


def test_a_job_without_a_deadline_needs_no_waking() -> None:
    assert look(job(workers(1))).wake_after is None


def test_a_job_that_ran_as_long_as_allowed_fails_and_stops_though_pods_are_kept() -> None:
    decision = look(LIMITED, *SEEN, status=begun(LIMITED, *SEEN), now=at(61))
    failure = decision.status.failure
    assert failure is not None
    assert failure.cause == "DeadlineExceeded"
    assert failure.message == (
        "Job mnist has failed because it was active longer than specified deadline (60 s)"
    )
    assert decision.status.completion_time == at(61)
    assert deleted(decision) == ["mnist-worker-0", "mnist-ps-0"]


def test_pods_that_ended_before_the_deadline_stay_for_their_logs() -> None:
    seen = [pod("worker-0"), pod("ps-0", "Succeeded")]
    decision = look(LIMITED, *seen, status=begun(LIMITED, *seen), now=at(61))
    assert deleted(decision) == ["mnist-worker-0"]


def test_success_in_the_last_second_is_success() -> None:
    decision = look(LIMITED, pod("worker-0", "Succeeded"), status=begun(LIMITED), now=at(61))
    assert (decision.status.has("Succeeded"), decision.status.has("Failed")) == (True, False)


def test_a_programs_own_failure_is_reported_rather_than_the_deadline() -> None:
    broken = [pod("worker-0", "Failed", exit_code=3), pod("ps-0")]
    failure = look(LIMITED, *broken, status=begun(LIMITED), now=at(61)).status.failure
    assert failure is not None
    assert (failure.cause, failure.exit_code) == ("TaskFailed", 3)


def test_a_deadline_added_later_counts_from_the_start() -> None:
    begun_without = begun(job(workers(1)), pod("worker-0"))
    decision = look(job(workers(1), deadline=60), pod("worker-0"), status=begun_without, now=at(20))
    assert decision.wake_after == 41
