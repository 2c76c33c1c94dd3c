"""What becomes of a pod that failed or was taken away, and how often."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import Pod, RestartPolicy, Task
from tfyard.planner import Site

from .builders import (
    at,
    attempt,
    begun,
    chief,
    created,
    deleted,
    job,
    look,
    manifests,
    pod,
    pods,
    role,
    servers,
    shown,
    workers,
)
from .world import World

POLICIES = {
    "Never fails the job with the program": ("Never", 1, "fails"),
    "Never fails the job though a signal killed the program": ("Never", 137, "fails"),
    "OnFailure runs a failed pod again": ("OnFailure", 1, "restarts"),
    "OnFailure runs a killed pod again": ("OnFailure", 137, "restarts"),
    "OnFailure runs a pod again that failed without a word": ("OnFailure", None, "restarts"),
    "Always runs a failed pod again": ("Always", 1, "restarts"),
    "ExitCode gives up at code 1": ("ExitCode", 1, "fails"),
    "ExitCode gives up at code 127": ("ExitCode", 127, "fails"),
    "ExitCode tries again at code 128": ("ExitCode", 128, "restarts"),
    "ExitCode tries again after SIGINT": ("ExitCode", 130, "restarts"),
    "ExitCode tries again after SIGKILL": ("ExitCode", 137, "restarts"),
    "ExitCode tries again after SIGUSR1": ("ExitCode", 138, "restarts"),
    "ExitCode tries again after SIGTERM": ("ExitCode", 143, "restarts"),
    "ExitCode tries again at code 255": ("ExitCode", 255, "restarts"),
    "ExitCode tries again where no code is known": ("ExitCode", None, "restarts"),
}


@pytest.mark.parametrize("name", ["worker-0", "ps-0"])
@pytest.mark.parametrize(("policy", "code", "effect"), POLICIES.values(), ids=POLICIES.keys())
def test_the_restart_policy_judges_a_programs_own_failure(
    policy: str, code: int | None, effect: str, name: str
) -> None:
    asked = job(workers(2, policy), servers(1, policy))
    others = [p for p in pods("worker-0", "worker-1", "ps-0") if p.name != f"mnist-{name}"]
    decision = look(asked, pod(name, "Failed", exit_code=code), *others, status=begun(asked))
    assert decision.status.has("Failed") == (effect == "fails")
    assert decision.status.has("Restarting") == (effect == "restarts")
    assert deleted(decision) == ([f"mnist-{name}"] if effect == "restarts" else [])


def test_exit_code_gives_up_a_program_that_cannot_be_started_though_the_runtimes_code_is_retryable() -> None:
    asked = job(workers(1, "ExitCode"))
    missing = pod("worker-0", "Failed", exit_code=128, reason="StartError", message='exec: "pyhton"')
    assert look(asked, missing, status=begun(asked)).status.has("Failed")
    upstreams = Site(kubeflow=True)
    assert not look(asked, missing, status=begun(asked), site=upstreams).status.has("Failed")


TAKEN = {
    "a pod that somebody deletes": {"phase": "Running", "deleting": at(30)},
    "a pod that died of being deleted": {
        "phase": "Failed",
        "exit_code": 143,
        "deleting": at(30),
        "asked_to_stop": True,
    },
    "a pod that ended well because it was deleted": {
        "phase": "Succeeded",
        "exit_code": 0,
        "deleting": at(30),
        "asked_to_stop": True,
    },
    "an evicted pod": {"phase": "Failed", "reason": "Evicted", "disrupted": True},
    "a preempted pod": {"phase": "Failed", "exit_code": 137, "disrupted": True},
    "a pod of a lost node": {"phase": "Unknown", "deleting": at(30), "disrupted": True},
}


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always", "ExitCode"])
@pytest.mark.parametrize("fields", TAKEN.values(), ids=TAKEN.keys())
def test_a_pod_that_the_cluster_took_is_replaced_under_every_policy_and_costs_no_retry(
    fields: dict[str, Any], policy: str
) -> None:
    asked = job(workers(2, policy), backoff_limit=0)
    taken = pod("worker-1", **fields)
    first = look(asked, pod("worker-0"), taken, status=begun(asked, *pods("worker-0", "worker-1")))
    assert not first.status.is_finished
    assert shown(first.status) == ["Created=True (TFJobCreated)", "Restarting=True (TFJobRestarting)"]
    assert created(first) == [], "the name is not free yet"
    gone = look(asked, pod("worker-0"), status=first.status)
    assert created(gone) == ["mnist-worker-1"]
    assert gone.status.replica_statuses["Worker"].restarts == 0
    back = look(asked, pod("worker-0"), pod("worker-1", attempt=1), status=gone.status)
    assert back.status.has("Running")
    assert not back.status.has("Restarting")


def test_a_pod_that_vanished_unseen_is_made_again() -> None:
    asked = job(workers(2))
    decision = look(asked, pod("worker-0"), status=begun(asked, *pods("worker-0", "worker-1")))
    assert created(decision) == ["mnist-worker-1"]
    assert not decision.status.is_finished


@pytest.mark.parametrize("phase", ["Running", "Pending"])
def test_a_pod_whose_kubelet_never_answers_is_removed_by_force_when_its_time_is_over(phase: str) -> None:
    asked = job(workers(1))
    status = begun(asked, pod("worker-0"))
    lost = pod("worker-0", phase, deleting=at(30))
    waiting = look(asked, lost, status=status)
    assert (deleted(waiting), waiting.wake_after) == ([], 60.0)
    late = look(asked, lost, status=waiting.status, now=at(60))
    assert [(a.name, a.uid, a.force) for a in late.actions] == [("mnist-worker-0", "worker-0#0", True)]  # type: ignore[union-attr]
    assert late.wake_after is None


def test_a_deleted_pod_that_still_waited_for_a_node_is_no_restart() -> None:
    asked = job(workers(1))
    decision = look(asked, pod("worker-0", "Pending", deleting=at(30)), status=begun(asked))
    assert shown(decision.status) == ["Created=True (TFJobCreated)"]


def test_a_finished_worker_that_vanishes_is_not_run_again() -> None:
    asked = job(chief(), workers(2))
    seen = [pod("chief-0"), pod("worker-0", "Succeeded"), pod("worker-1")]
    done = look(asked, *seen, status=begun(asked)).status
    later = look(asked, pod("chief-0"), pod("worker-1"), status=done)
    assert created(later) == []
    assert later.status.tasks["Worker"].finished == "0"
    assert later.status.replica_statuses["Worker"].succeeded == 1


def test_a_finished_worker_that_is_deleted_is_not_run_again() -> None:
    asked = job(chief(), workers(1))
    seen = [pod("chief-0"), pod("worker-0", "Succeeded", deleting=at(30))]
    done = look(asked, *seen, status=begun(asked)).status
    assert created(look(asked, pod("chief-0"), status=done)) == []


def test_a_restart_is_remembered_before_the_pod_is_deleted_and_made_when_its_name_is_free() -> None:
    asked = job(workers(1, "OnFailure"))
    failed = pod("worker-0", "Failed", exit_code=1)
    first = look(asked, failed, status=begun(asked, pod("worker-0")))
    assert first.status.tasks["Worker"].attempts == {"0": 1}
    assert (deleted(first), created(first), first.urgency) == (["mnist-worker-0"], [], "now")
    crashed = look(asked, failed, status=first.status)
    assert (crashed.status, deleted(crashed)) == (first.status, ["mnist-worker-0"])
    gone = look(asked, status=crashed.status)
    assert (created(gone), attempt(gone, "worker-0")) == (["mnist-worker-0"], "1")


def test_a_pod_knows_its_attempt_better_than_a_status_that_was_lost() -> None:
    asked = job(workers(1, "OnFailure"))
    decision = look(asked, pod("worker-0", attempt=3))
    assert decision.status.tasks["Worker"].attempts == {"0": 3}
    assert decision.actions == ()


def test_a_pod_of_another_operator_is_attempt_0_and_its_failure_counts() -> None:
    asked = job(workers(1, "OnFailure"))
    decision = look(asked, pod("worker-0", "Failed", exit_code=1))
    assert decision.status.replica_statuses["Worker"].restarts == 1
    assert deleted(decision) == ["mnist-worker-0"]
    assert decision.urgency == "now", "a restart must be remembered first"


LIMITS = {
    "no limit allows any number of restarts": (None, [], 99, False),
    "limit 0 allows no restart": (0, ["OnFailure"], 0, True),
    "limit 0 allows no restart in place": (0, [], 1, True),
    "limit 1 allows one restart": (1, ["OnFailure"], 0, False),
    "limit 1 allows one restart in place": (1, [], 1, False),
    "limit 1 is broken by the second": (1, ["OnFailure", "OnFailure"], 0, True),
    "limit 1 is broken by the second restart in place": (1, [], 2, True),
    "limit 2 counts both kinds together": (2, ["OnFailure", "ExitCode"], 1, True),
    "limit 3 counts both kinds together": (3, ["OnFailure", "ExitCode"], 1, False),
    "ExitCode restarts are counted": (1, ["ExitCode", "ExitCode"], 0, True),
    "Always restarts are counted": (1, ["Always", "Always"], 0, True),
}


@pytest.mark.parametrize(("limit", "failing", "in_place", "fails"), LIMITS.values(), ids=LIMITS.keys())
def test_the_backoff_limit_counts_every_restart(
    limit: int | None, failing: list[str], in_place: int, fails: bool
) -> None:
    roles = [
        role("Worker", 1, "OnFailure"),
        *(role(n, 1, p) for n, p in zip(("PS", "Evaluator"), failing, strict=False)),
    ]
    asked = job(*roles, backoff_limit=limit)
    names = [f"{r.name.lower()}-0" for r in roles[1:]]
    seen = [pod("worker-0", restarts=in_place), *(pod(name, "Failed", exit_code=137) for name in names)]
    status = look(asked, *seen, status=begun(asked, pod("worker-0"))).status
    assert status.has("Failed") == fails
    assert not fails or status.failure is not None
    assert not fails or status.failure.cause == "BackoffLimitExceeded"  # type: ignore[union-attr]


@pytest.mark.parametrize("phase", ["Running", "Pending"])
def test_the_job_fails_before_a_restart_in_place_that_the_limit_forbids(phase: str) -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=2)
    status = begun(asked, *pods("worker-0", "worker-1"))
    ended = pod("worker-0", phase, restarts=1, restart_due=True, exit_code=7)
    assert not look(asked, ended, pod("worker-1"), status=status).status.is_finished
    ended = pod("worker-0", phase, restarts=2, restart_due=True, exit_code=7)
    after = look(asked, ended, pod("worker-1"), status=status).status
    assert after.failure is not None
    assert after.failure.message.endswith(
        "(2 restarts allowed): worker-0 exited with code 7 after 2 restarts"
    )
    counts = after.replica_statuses["Worker"]
    assert (counts.failed, counts.active, counts.restarts) == (1, 1, 2)


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_where_no_restart_is_allowed_the_kubelet_makes_none(policy: RestartPolicy) -> None:
    for limit, expected in ((0, "Never"), (1, policy), (None, policy)):
        (made,) = manifests(look(job(workers(1, policy), backoff_limit=limit))).values()
        assert made["spec"]["restartPolicy"] == expected


def test_restarts_one_after_the_other_add_up_to_the_limit() -> None:
    world = World(job(workers(1, "ExitCode"), backoff_limit=2))
    for _ in range(2):
        world.settle()
        world.change("mnist-worker-0", phase="Failed", exit_code=137)
    world.settle()
    assert world.status.replica_statuses["Worker"].restarts == 2
    assert world.status.has("Running")
    world.change("mnist-worker-0", phase="Failed", exit_code=137)
    world.settle()
    assert world.status.has("Failed")


def test_restarts_in_place_still_count_when_their_pod_is_gone() -> None:
    world = World(job(workers(1, "OnFailure"), backoff_limit=5))
    world.settle()
    world.change("mnist-worker-0", restarts=2)
    world.settle()
    world.delete("mnist-worker-0")
    world.step()
    world.settle()
    world.change("mnist-worker-0", restarts=1)
    world.settle()
    assert world.status.replica_statuses["Worker"].restarts == 3


def test_an_evicted_pod_keeps_the_count_of_its_restarts_in_place() -> None:
    asked = job(workers(1, "OnFailure"), backoff_limit=2)
    evicted = pod("worker-0", "Failed", disrupted=True, restarts=2)
    status = look(asked, evicted, status=begun(asked)).status
    assert status.replica_statuses["Worker"].restarts == 2
    assert not status.is_finished


def test_a_permanent_failure_is_not_masked_by_a_restart_elsewhere() -> None:
    asked = job(workers(2, "ExitCode"))
    broken = [pod("worker-0", "Failed", exit_code=137), pod("worker-1", "Failed", exit_code=1)]
    status = look(asked, *broken, status=begun(asked, *pods("worker-0", "worker-1"))).status
    assert status.has("Failed")
    assert not status.has("Restarting")
    assert status.completion_time is not None


def test_a_permanent_failure_after_a_restart_fails_the_job_with_its_time() -> None:
    world = World(job(workers(2, "ExitCode"), ttl=60))
    world.settle()
    world.change("mnist-worker-0", phase="Failed", exit_code=137)
    world.step()
    world.change("mnist-worker-1", phase="Failed", exit_code=2)
    world.step()
    assert world.status.has("Failed")
    assert world.status.completion_time == world.now


def test_only_the_failed_pod_is_run_again() -> None:
    asked = job(chief(), workers(2, "ExitCode"))
    seen = [*pods("chief-0", "worker-0"), pod("worker-1", "Failed", exit_code=137)]
    assert deleted(look(asked, *seen, status=begun(asked))) == ["mnist-worker-1"]


def test_restarting_lasts_until_all_tasks_are_back() -> None:
    asked = job(workers(2, "OnFailure"))
    seen = [pod("worker-0"), pod("worker-1", "Failed", exit_code=1)]
    status = look(asked, *seen, status=begun(asked, *pods("worker-0", "worker-1"))).status
    status = look(asked, pod("worker-0"), status=status).status
    assert status.phase == "Restarting"
    status = look(asked, pod("worker-0"), pod("worker-1", "Pending", attempt=1), status=status).status
    assert status.phase == "Restarting"
    status = look(asked, pod("worker-0"), pod("worker-1", attempt=1), status=status).status
    assert shown(status) == ["Created=True (TFJobCreated)", "Running=True (TFJobRunning)"]


def words(failed: Pod, **policy: Any) -> str:
    asked = job(workers(2, "Never" if not policy else "OnFailure"), **policy)
    status = look(asked, failed, pod("worker-0"), status=begun(asked)).status
    failure = status.failure
    assert failure is not None
    condition = status.condition("Failed")
    assert condition is not None
    assert condition.message == failure.message
    assert (failure.task, failure.exit_code) == ("worker-1", failed.exit_code)
    return failure.message


BROKEN = pod("worker-1", "Failed", exit_code=1, message="Traceback:\n  line 3\nValueError: no data\n")


def test_the_failure_names_the_task_its_code_and_the_end_of_its_traceback() -> None:
    assert words(BROKEN) == (
        "TFJob lab/mnist has failed because 1 Worker replica(s) failed: "
        "worker-1 exited with code 1: Traceback:\n  line 3\nValueError: no data"
    )


def test_the_failure_says_what_the_kubelet_knows_of_the_reason() -> None:
    killed = replace(BROKEN, exit_code=137, reason="OOMKilled", message="")
    assert words(killed).endswith("failed: worker-1 exited with code 137 (OOMKilled)")


def test_the_failure_does_not_repeat_the_reason_error() -> None:
    assert "(Error)" not in words(replace(BROKEN, reason="Error"))


def test_the_failure_of_a_pod_without_a_code_says_that_it_failed() -> None:
    assert words(replace(BROKEN, exit_code=None, message="")).endswith("worker-1 failed")


def test_only_the_last_lines_of_a_long_message_are_reported() -> None:
    told = words(replace(BROKEN, message="\n".join(f"line {i}" for i in range(500))))
    assert told.splitlines()[-1] == "line 499"
    assert len(told.splitlines()) == 12


def test_only_the_end_of_a_long_line_is_reported() -> None:
    told = words(replace(BROKEN, message="x" * 9000 + "end"))
    assert told.endswith("xend")
    assert len(told) < 1200


def test_the_failure_at_the_limit_names_the_limit_and_the_task_that_exceeded_it() -> None:
    assert words(BROKEN, backoff_limit=0) == (
        "Job mnist has failed because it has reached the specified backoff limit (0 restarts allowed): "
        "worker-1 exited with code 1: Traceback:\n  line 3\nValueError: no data"
    )


def test_the_failure_at_the_limit_names_the_pod_that_restarted_most_in_place() -> None:
    restless = pod("worker-1", restarts=3, exit_code=1, message="ValueError: no data")
    assert words(restless, backoff_limit=2).endswith(
        "worker-1 exited with code 1 after 3 restarts: ValueError: no data"
    )


def test_restarts_in_place_still_count_when_their_pod_has_finished() -> None:
    asked = job(chief(), workers(1, "OnFailure"), backoff_limit=2)
    seen = [pod("chief-0"), pod("worker-0", "Succeeded", restarts=2)]
    first = look(asked, *seen, status=begun(asked)).status
    again = look(asked, *seen, status=first).status
    assert [s.replica_statuses["Worker"].restarts for s in (first, again)] == [2, 2]


def test_restarts_in_place_still_count_when_their_pod_vanished_unseen() -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=3)
    status = begun(asked, pod("worker-0", restarts=2), pod("worker-1"))
    status = look(asked, pod("worker-1"), status=status).status
    status = look(asked, pod("worker-0"), pod("worker-1"), status=status).status
    assert status.replica_statuses["Worker"].restarts == 2


def test_restarts_in_place_still_count_when_their_pod_was_scaled_away() -> None:
    status = begun(job(workers(2, "OnFailure")), pod("worker-0"), pod("worker-1", restarts=2))
    scaled = look(job(workers(1, "OnFailure")), pod("worker-0"), status=status).status
    assert scaled.replica_statuses["Worker"].restarts == 2


def test_a_pod_that_ends_well_because_it_was_sent_away_has_not_finished() -> None:
    """Programs that save and exit 0 on SIGTERM would else end a job half-trained."""
    asked = job(workers(1))
    leaving = pod("worker-0", deleting=at(30), asked_to_stop=True)
    status = look(asked, leaving, status=begun(asked, pod("worker-0"))).status
    ended = look(asked, replace(leaving, phase="Succeeded"), status=status).status
    assert not ended.is_finished
    assert created(look(asked, status=ended)) == ["mnist-worker-0"]


def test_failures_that_end_the_job_are_shown_as_failures_not_as_restarts() -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=1)
    broken = [pod(name, "Failed", exit_code=1, attempt=0) for name in ("worker-0", "worker-1")]
    status = look(asked, *broken, status=begun(asked, *pods("worker-0", "worker-1"))).status
    counts = status.replica_statuses["Worker"]
    assert (status.phase, counts.failed, counts.restarts) == ("Failed", 2, 0)
    assert status.tasks == {}


def test_a_pod_with_an_impossible_index_is_deleted() -> None:
    asked = job(workers(1))
    stray = replace(pod("worker-0"), name="mnist-worker--1", task=Task("Worker", -1), uid="stray")
    decision = look(asked, pod("worker-0"), stray, status=begun(asked))
    assert deleted(decision) == ["mnist-worker--1"]


# --- a node that is rebooted restarts programs in place


def test_a_reboot_costs_no_retry_while_its_programs_are_down_nor_when_they_are_back() -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=0)
    status = begun(asked, *pods("worker-0", "worker-1"))
    down = pod("worker-1", exit_code=255, reason="Unknown", restart_due=True, disrupted=True)
    decision = look(asked, pod("worker-0"), down, status=status)
    assert not decision.status.is_finished
    back = pod("worker-1", restarts=1, excused=("tensorflow/1",), running_since=at(5))
    decision = look(asked, pod("worker-0"), back, status=decision.status)
    assert not decision.status.is_finished
    assert decision.status.restarts == 0
    assert deleted(decision) == []


def test_restarts_that_a_node_caused_are_remembered_until_the_pod_is_gone() -> None:
    """A pod shows only the last end of each container."""
    asked = job(workers(1, "OnFailure"), backoff_limit=2)
    status = begun(asked, pod("worker-0"))
    rebooted = pod("worker-0", restarts=2, excused=("fetch/1", "tensorflow/1"), running_since=at(1))
    status = look(asked, rebooted, status=status).status
    assert status.restarts == 0
    crashed = pod("worker-0", restarts=3, exit_code=1, running_since=at(2))
    status = look(asked, crashed, status=status).status
    assert status.restarts == 1
    again = pod("worker-0", restarts=4, excused=("tensorflow/3",), running_since=at(3))
    status = look(asked, again, status=status).status
    assert status.restarts == 1
    drained = look(asked, replace(again, deleting=at(30), disrupted=True), status=status)
    assert drained.status.restarts == 1
    assert drained.status.tasks["Worker"].excused == {}
    fresh = pod("worker-0", attempt=1, restarts=1, exit_code=1, running_since=at(40))
    assert look(asked, fresh, status=drained.status).status.restarts == 2
    last = replace(fresh, restarts=2, restart_due=True, running_since=None)
    assert look(asked, last, status=drained.status).status.failure.cause == "BackoffLimitExceeded"


def test_a_task_that_finishes_after_a_reboot_has_cost_no_retry() -> None:
    asked = job(workers(2, "OnFailure"), success="AllWorkers")
    status = begun(asked, *pods("worker-0", "worker-1"))
    rebooted = pod("worker-1", restarts=1, excused=("tensorflow/1",), running_since=at(1))
    status = look(asked, pod("worker-0"), rebooted, status=status).status
    done = pod("worker-1", "Succeeded", restarts=1, exit_code=0)
    status = look(asked, pod("worker-0"), done, status=status).status
    assert (status.restarts, status.tasks["Worker"].excused) == (0, {})
