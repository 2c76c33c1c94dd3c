"""The reason of a long wait is reported; a job whose tasks crash again and again does not run."""

from typing import Any

from msgspec.structs import replace

from tfyard.model import Decision, Pod, Status, Wait
from tfyard.planner.waiting import looks_due

from .builders import at, begun, job, look, pod, servers, shown, workers

ONE = job(workers(1, "OnFailure"))
MISSING = 'failed to resolve "train:2": not found'
PULL = Wait("ImagePull", MISSING, at(0))
FULL = Wait("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", at(0))


def waiting(wait: Wait, name: str = "worker-0", **fields: Any) -> Pod:
    return pod(name, "Pending", wait=wait, **fields)


def crashing(restarts: int, ended: float, **fields: Any) -> Pod:
    times = {"run_started": at(ended - 1), "run_ended": at(ended)}
    loop = Wait("CrashLoop", "back-off 10s restarting failed container=tensorflow", at(ended))
    known = {"exit_code": 1, "reason": "Error", "message": "  File x\nKeyError: 'y'\n", **times}
    return pod("worker-0", restarts=restarts, restart_due=True, wait=loop, **(known | fields))


def running(crashed: Pod, since: float) -> Pod:
    """The program that crashed is started again."""
    again = crashed.restarts + 1
    return replace(crashed, restarts=again, restart_due=False, wait=None, running_since=at(since))


def message(decision: Decision) -> str:
    condition = decision.status.condition("Waiting")
    return condition.message if condition else ""


def test_a_short_wait_is_not_reported() -> None:
    found = look(ONE, waiting(PULL), status=begun(ONE), now=at(29))
    assert not found.status.has("Waiting")
    assert found.wake_after == 1


def test_a_program_that_cannot_be_started_is_reported_at_once_and_does_not_count_as_running() -> None:
    broken = Wait("Start", 'exec: "pyhton": executable file not found in $PATH', at(0), failed=True)
    found = look(
        ONE, waiting(broken, restarts=1, restart_due=True, exit_code=128), status=begun(ONE), now=at(1)
    )
    assert shown(found.status) == ["Created=True (TFJobCreated)", "Waiting=True (Start)"]
    assert message(found) == f"worker-0: {broken.message}"
    assert (found.status.phase, found.status.restarts) == ("Waiting", 1)


def test_events_of_a_pod_that_is_being_set_up_are_listed_ever_more_rarely_and_reported_at_once() -> None:
    silent, status = waiting(Wait("Mount", "", at(0))), begun(ONE)
    looks = [look(ONE, silent, status=status, now=at(seconds)) for seconds in (3, 30, 59, 60, 130)]
    assert [found.wake_after for found in looks] == [27, 30, 1, 60, 110]
    assert all(found.status == status for found in looks)
    assert [looks_due(silent.wait, at(seconds)) for seconds in (29, 30, 60, 119, 120, 240)] == [
        0,
        1,
        2,
        2,
        3,
        4,
    ]
    said = Wait("Mount", 'MountVolume.SetUp failed for volume "data" : configmap "x" not found', at(0))
    found = look(ONE, waiting(said), status=status, now=at(30))
    assert shown(found.status)[-1] == "Waiting=True (Mount)"
    assert found.wake_after == 30, "for it may change"


def test_a_pod_that_waits_for_an_unknown_reason_causes_no_pass() -> None:
    found = look(ONE, pod("worker-0", "Pending"), status=begun(ONE), now=at(300))
    assert found.wake_after is None
    assert found.status == begun(ONE)


def test_a_long_wait_is_reported_with_the_kubelets_message() -> None:
    found = look(ONE, waiting(PULL), status=begun(ONE), now=at(30))
    assert shown(found.status)[-1] == "Waiting=True (ImagePull)"
    assert message(found) == f"worker-0: {MISSING}"
    assert found.status.phase == "Waiting"
    assert found.urgency == "seldom"
    assert found.wake_after is None


def test_another_message_is_a_change_and_the_same_message_is_not() -> None:
    told = look(ONE, waiting(FULL), status=begun(ONE), now=at(30)).status
    assert look(ONE, waiting(FULL), status=told, now=at(60)).status == told
    other = Wait("Unschedulable", "0/3 nodes are available: 3 node(s) had untolerated taint(s).", at(0))
    found = look(ONE, waiting(other), status=told, now=at(60))
    assert message(found).endswith("taint(s).")
    assert found.urgency == "seldom"


def test_a_message_is_one_line_and_has_an_end() -> None:
    long = Wait("Config", "secret\nmissing " + "x" * 600, at(0))
    text = message(look(ONE, waiting(long), status=begun(ONE), now=at(30)))
    assert text.startswith("worker-0: secret missing xxx")
    assert (len(text), text[-1]) == (512, "…")


def test_a_wait_that_is_over_keeps_its_message_and_is_not_the_phase_of_the_job() -> None:
    told = look(ONE, waiting(PULL), status=begun(ONE), now=at(30)).status
    found = look(ONE, pod("worker-0"), status=told, now=at(50))
    assert shown(found.status) == [
        "Waiting=False (ImagePull)",
        "Created=True (TFJobCreated)",
        "Running=True (TFJobRunning)",
    ]
    assert (message(found), found.status.phase) == (f"worker-0: {MISSING}", "Running")


def test_a_job_that_runs_and_waits_shows_both() -> None:
    two = job(workers(2))
    found = look(two, pod("worker-0"), waiting(FULL, "worker-1"), status=begun(two), now=at(40))
    assert found.status.phase == "Running"
    assert message(found).startswith("worker-1: 0/3 nodes")
    assert shown(found.status)[-1] == "Waiting=True (Unschedulable)", "in the column MESSAGE"


def test_the_end_of_a_job_ends_the_wait_and_so_does_a_suspension() -> None:
    told = look(ONE, waiting(PULL), status=begun(ONE), now=at(30)).status
    late = job(workers(1), deadline=60)
    failed = look(late, waiting(PULL), status=told, now=at(99)).status
    assert (failed.phase, failed.has("Waiting")) == ("Failed", False)
    asleep = look(job(workers(1), suspend=True), waiting(PULL), status=told, now=at(50)).status
    assert (asleep.phase, asleep.has("Waiting")) == ("Suspended", False)


# --- crash loops


def looped(seconds: float = 41) -> Status:
    """A job whose only task has crashed at 5, 20 and 40 s."""
    status = begun(ONE, pod("worker-0"))
    for number, ended in enumerate((5, 20, 40)):
        found = crashing(number, ended)
        status = look(ONE, found, status=status, now=at(min(ended + 1, seconds))).status
    return status


def test_one_crash_is_no_loop() -> None:
    status = begun(ONE, pod("worker-0"))
    found = look(ONE, crashing(1, ended=5), status=status, now=at(9))
    assert (found.status.phase, found.status.has("Waiting")) == ("Running", False)
    assert found.wake_after == 26


def test_a_job_all_of_whose_tasks_crash_does_not_run() -> None:
    status = looped()
    assert status.phase == "Waiting"
    assert shown(status) == [
        "Created=True (TFJobCreated)",
        "Running=False (CrashLoop)",
        "Waiting=True (CrashLoop)",
    ]
    assert message(Decision(status=status)) == "worker-0: exits with code 1 again and again: KeyError: 'y'"


def test_it_does_not_run_again_at_each_try() -> None:
    """The next run of a program that crashes changes counts, not conditions."""
    status, again = looped(), running(crashing(2, 40), since=80)
    found = look(ONE, again, status=status, now=at(82))
    assert found.status.conditions == status.conditions
    assert found.urgency == "seldom"
    assert found.wake_after == 28
    crashed = look(ONE, crashing(3, ended=84), status=found.status, now=at(85))
    assert crashed.status.conditions == status.conditions
    assert [ending.restart for ending in crashed.status.endings] == [1, 2, 3]
    assert crashed.urgency == "seldom"


def test_a_program_that_runs_on_is_running() -> None:
    found = look(ONE, running(crashing(2, 40), since=80), status=looped(), now=at(110))
    assert found.status.phase == "Running"
    assert not found.status.has("Waiting")


def test_a_job_runs_while_one_of_its_leaders_does() -> None:
    two = job(workers(2, "OnFailure"))
    status = replace(looped(), cluster=begun(two).cluster)
    found = look(two, crashing(3, ended=60), pod("worker-1"), status=status, now=at(99))
    assert (found.status.phase, found.status.has("Waiting")) == ("Running", True)


def test_a_task_that_is_not_there_explains_more_than_one_that_crashes() -> None:
    both = job(workers(1, "OnFailure"), servers(1))
    status = replace(looped(), cluster=begun(both).cluster)
    found = look(both, crashing(3, ended=60), waiting(FULL, "ps-0"), status=status, now=at(99))
    assert message(found).startswith("ps-0: 0/3 nodes")
    assert found.status.phase == "Waiting"
    again = running(crashing(3, ended=60), since=110)
    tried = look(both, again, waiting(FULL, "ps-0"), status=found.status, now=at(111))
    assert tried.status.conditions == found.status.conditions, "it still does not run"
