"""After the end: which pods stay, how long evaluators may go on, and when the job itself goes."""

import pytest

from tfyard.model import Amend, Decision, DeleteJob, Pod
from tfyard.planner import Site
from tfyard.planner.narrate import narrate

from .builders import at, begun, chief, deleted, evaluator, job, look, pod, role, servers, workers

SERVICE = frozenset(
    {("Service", "mnist"), ("Service", "mnist-tensorboard"), ("Deployment", "mnist-tensorboard")}
)
SEEN = [
    pod("worker-0", "Succeeded"),
    pod("worker-1"),
    pod("worker-2", "Pending"),
    pod("worker-3", "Failed", disrupted=True),
    pod("ps-0", "Unknown"),
]
POLICIES = {
    "None keeps every pod and Service": ("None", [], []),
    "Running deletes what is not over": ("Running", ["worker-1", "worker-2", "ps-0"], ["mnist"]),
    "All deletes every pod": (
        "All",
        ["worker-0", "worker-1", "worker-2", "worker-3", "ps-0"],
        ["mnist"],
    ),
}


def amended(decision: Decision) -> list[str]:
    return [action.name for action in decision.actions if isinstance(action, Amend)]


@pytest.mark.parametrize(("policy", "gone", "services"), POLICIES.values(), ids=POLICIES.keys())
def test_the_clean_up_policy_says_what_goes(policy: str, gone: list[str], services: list[str]) -> None:
    asked = job(workers(4), servers(1), clean=policy)
    decision = look(asked, *SEEN, status=begun(asked), children=SERVICE)
    assert decision.status.has("Succeeded")
    assert deleted(decision) == [f"mnist-{name}" for name in gone]
    assert deleted(decision, "Service") == services, "TensorBoard's charts are read afterwards"
    again = look(asked, *SEEN, status=decision.status, children=SERVICE)
    assert again.actions == decision.actions, "what a crash left undone is done at the next look"


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
@pytest.mark.parametrize("cause", ["TaskFailed", "BackoffLimitExceeded"])
def test_a_failed_job_is_cleaned_up_by_the_same_policy(cause: str, policy: str) -> None:
    asked = job(workers(2, "Never" if cause == "TaskFailed" else "Always"), clean=policy, backoff_limit=0)
    broken = [pod("worker-0", "Failed", exit_code=1), pod("worker-1")]
    decision = look(asked, *broken, status=begun(asked))
    assert decision.status.failure is not None
    assert decision.status.failure.cause == cause
    expected = {"None": [], "Running": ["mnist-worker-1"], "All": ["mnist-worker-0", "mnist-worker-1"]}
    assert deleted(decision) == expected[policy]


# --- pods that are Running, though their programs have ended


@pytest.mark.parametrize("kubeflow", [False, True])
@pytest.mark.parametrize("code", [0, 1])
def test_a_pod_whose_program_has_ended_is_kept_before_its_phase_says_so(code: int, kubeflow: bool) -> None:
    asked, site = job(workers(1), servers(1), clean="Running"), Site(kubeflow=kubeflow)
    ended = pod("worker-0", program="Failed" if code else "Succeeded", exit_code=code)
    decision = look(asked, ended, pod("ps-0"), status=begun(asked), site=site)
    assert decision.status.phase == ("Failed" if code else "Succeeded")
    assert (deleted(decision), amended(decision)) == (["mnist-ps-0"], [])


CRASHED = {"restarts": 1, "restart_due": True, "exit_code": 7}
OUT_OF_RETRIES: dict[str, tuple[str, bool, list[str], list[str]]] = {
    "its pod stays, and is ended in place": ("Running", False, ["mnist-worker-0"], ["mnist-ps-0"]),
    "also where all pods stay": ("None", False, ["mnist-worker-0"], []),
    "where none stays, it is deleted": ("All", False, [], ["mnist-worker-0", "mnist-ps-0"]),
    "upstream deletes it, because its phase is Running": (
        "Running", True, [], ["mnist-worker-0", "mnist-ps-0"],
    ),
    "upstream lets it run again": ("None", True, [], []),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "kubeflow", "ended", "gone"), OUT_OF_RETRIES.values(), ids=OUT_OF_RETRIES)
def test_a_program_that_is_out_of_retries_is_not_started_again(
    policy: str, kubeflow: bool, ended: list[str], gone: list[str]
) -> None:
    asked, site = (
        job(workers(1, "OnFailure"), servers(1), clean=policy, backoff_limit=1),
        Site(kubeflow=kubeflow),
    )
    seen = [pod("worker-0", **CRASHED), pod("ps-0")]
    decision = look(asked, *seen, status=begun(asked, site=site), site=site)
    assert decision.status.failure is not None
    assert decision.status.failure.cause == "BackoffLimitExceeded"
    assert (amended(decision), deleted(decision)) == (ended, gone)


def test_a_pod_is_told_to_end_once_and_kept_until_its_kubelet_has_done_so() -> None:
    asked = job(workers(1, "OnFailure"), clean="Running", backoff_limit=1)
    first = look(asked, pod("worker-0", **CRASHED), status=begun(asked))
    assert amended(first) == ["mnist-worker-0"]
    (event,) = [event for event in narrate(first.actions) if event.reason == "StoppedRestarts"]
    assert event.message == "The job has ended, so the program is not started again in pod: mnist-worker-0"
    again = look(asked, pod("worker-0", **CRASHED, told_to_end=True), status=first.status)
    assert again.actions == ()


def test_a_crash_loop_beside_the_end_of_the_job_is_ended_but_an_evaluators_may_still_judge() -> None:
    roles = (chief(), workers(1, "OnFailure"), role("Evaluator", 1, "OnFailure"))
    asked = job(*roles, clean="Running", evaluator_grace=300)
    loops = [pod("worker-0", **CRASHED), pod("evaluator-0", **CRASHED)]
    done = look(asked, pod("chief-0", "Succeeded"), *loops, status=begun(asked))
    assert done.status.phase == "Succeeded"
    assert (amended(done), deleted(done), done.wake_after) == (["mnist-worker-0"], [], 300.0)
    loops = [pod("worker-0", "Failed"), pod("evaluator-0", **CRASHED)]
    late = look(asked, pod("chief-0", "Succeeded"), *loops, status=done.status, now=at(300))
    assert (amended(late), deleted(late)) == (["mnist-evaluator-0"], [])


def test_deletes_carry_the_uid_so_that_no_successor_is_hit() -> None:
    asked = job(workers(1), clean="All")
    decision = look(asked, pod("worker-0", "Succeeded", uid="abc"), status=begun(asked))
    assert [action.uid for action in decision.actions] == ["abc"]  # type: ignore[union-attr]


def test_a_pod_that_is_on_its_way_out_is_not_deleted_twice() -> None:
    asked = job(chief(), workers(1), clean="Running")
    seen = [pod("chief-0", "Succeeded"), pod("worker-0", deleting=at(30))]
    decision = look(asked, *seen, status=begun(asked))
    assert (deleted(decision), decision.wake_after) == ([], 60.0)


def evaluating(phase: str = "Running") -> list[Pod]:
    return [pod("chief-0", "Succeeded"), pod("worker-0"), pod("evaluator-0", phase)]


GRACEFUL = job(chief(), workers(1), evaluator(), clean="Running", evaluator_grace=300)


def test_an_evaluator_may_judge_the_last_checkpoint_before_it_goes() -> None:
    first = look(GRACEFUL, *evaluating(), status=begun(GRACEFUL), children=SERVICE)
    assert (deleted(first), deleted(first, "Service"), first.wake_after) == (["mnist-worker-0"], [], 300)
    later = look(GRACEFUL, *evaluating(), status=first.status, children=SERVICE, now=at(301))
    assert "mnist-evaluator-0" in deleted(later)
    assert deleted(later, "Service") == ["mnist"]


def test_an_evaluator_that_is_done_waits_for_nothing() -> None:
    first = look(GRACEFUL, *evaluating("Succeeded"), status=begun(GRACEFUL), children=SERVICE)
    assert (deleted(first, "Service"), first.wake_after) == (["mnist"], None)


def test_without_a_grace_the_evaluator_goes_with_the_others() -> None:
    asked = job(chief(), workers(1), evaluator(), clean="Running")
    decision = look(asked, *evaluating(), status=begun(asked))
    assert deleted(decision) == ["mnist-worker-0", "mnist-evaluator-0"]


def test_a_failed_job_gives_its_evaluator_no_grace() -> None:
    broken = [pod("chief-0", "Failed", exit_code=1), pod("worker-0"), pod("evaluator-0")]
    decision = look(GRACEFUL, *broken, status=begun(GRACEFUL))
    assert deleted(decision) == ["mnist-worker-0", "mnist-evaluator-0"]


TIMES = {
    "a time to live of 0 deletes the job at once": (0, 0, True, None),
    "before its time a job stays, and is looked at when it is over": (60, 20, False, 40.0),
    "when its time is over the job is deleted": (60, 60, True, None),
    "a job without a time to live stays for ever": (None, 10**8, False, None),
}


@pytest.mark.parametrize(("ttl", "age", "goes", "wake"), TIMES.values(), ids=TIMES.keys())
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_job_lives_as_long_as_it_may(
    ttl: int | None, age: int, goes: bool, wake: float | None, phase: str
) -> None:
    asked = job(workers(1), ttl=ttl)
    end = pod("worker-0", phase, exit_code=0 if phase == "Succeeded" else 1)
    done = look(asked, end, status=begun(asked)).status
    decision = look(asked, end, status=done, now=at(age))
    assert decision.actions == ((DeleteJob(),) if goes else ())
    assert decision.wake_after == wake


def test_a_running_job_has_no_time_to_live() -> None:
    asked = job(workers(1), ttl=0)
    assert look(asked, pod("worker-0"), status=begun(asked), now=at(10**6)).actions == ()
