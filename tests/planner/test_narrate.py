"""Events: upstream's reasons, told once, and counted instead of listed where there are many."""

import pytest
from msgspec.structs import replace

from tfyard.model import Create, Delete, DeleteJob, Event, Role
from tfyard.planner import narrate

from .builders import at, begun, chief, job, look, pod, pods, role, servers, told, workers

SUCCESS = ("Normal", "TFJobSucceeded", "TFJob lab/mnist successfully completed.")


def test_the_first_pass_of_a_plain_job_is_silent() -> None:
    assert told(look(job(workers(2)))) == []


def test_a_job_that_begins_to_run_is_silent() -> None:
    asked = job(workers(1))
    assert told(look(asked, pod("worker-0"), status=begun(asked))) == []


def test_success_is_one_event_and_not_one_per_pod() -> None:
    asked = job(workers(1))
    decision = look(asked, pod("worker-0", "Succeeded", exit_code=0), status=begun(asked))
    assert told(decision) == [SUCCESS]


def test_failure_is_a_warning_with_the_message_of_its_condition() -> None:
    asked = job(workers(1))
    decision = look(asked, pod("worker-0", "Failed", exit_code=2), status=begun(asked))
    failed = decision.status.condition("Failed")
    assert failed is not None
    assert told(decision) == [
        ("Normal", "ExitedWithCode", "Pod: lab.mnist-worker-0 exited with code 2"),
        ("Warning", "TFJobFailed", failed.message),
    ]


def test_a_restart_is_a_warning_that_names_the_role() -> None:
    asked = job(workers(1, "OnFailure"))
    decision = look(asked, pod("worker-0", "Failed", exit_code=2), status=begun(asked, pod("worker-0")))
    assert told(decision)[-1] == (
        "Warning",
        "TFJobRestarting",
        "job mnist is restarting because Worker replica(s) failed.",
    )


def test_the_event_of_a_pod_that_was_taken_away_says_so() -> None:
    asked = job(workers(1))
    decision = look(asked, pod("worker-0", deleting=at(9)), status=begun(asked, pod("worker-0")))
    text = "job mnist is restarting because Worker replica(s) were evicted or deleted."
    assert told(decision) == [("Warning", "TFJobRestarting", text)]


def test_each_restart_is_an_event_though_the_job_is_restarting_already() -> None:
    asked = job(workers(1, "OnFailure"), servers(1, "OnFailure"))
    status = look(asked, pod("worker-0", "Failed"), pod("ps-0"), status=begun(asked)).status
    second = look(asked, pod("ps-0", "Failed"), status=status)
    text = "job mnist is restarting because PS replica(s) failed."
    assert told(second) == [("Warning", "TFJobRestarting", text)]
    assert told(look(asked, pod("ps-0", "Failed"), status=second.status)) == []


def test_a_few_exits_are_reported_by_name() -> None:
    asked = job(chief(), workers(3, "ExitCode"))
    seen = [pod(f"worker-{i}", "Failed", exit_code=137) for i in range(3)]
    text = ", ".join(f"Pod: lab.mnist-worker-{i} exited with code 137" for i in range(3))
    assert told(look(asked, *seen, status=begun(asked)))[0] == ("Normal", "ExitedWithCode", text)


def test_many_exits_are_counted_by_code() -> None:
    asked = job(chief(), workers(8, "ExitCode"))
    seen = [pod(f"worker-{i}", "Failed", exit_code=137 + i // 4) for i in range(8)]
    exits = [event for event in told(look(asked, *seen, status=begun(asked))) if event[1] == "ExitedWithCode"]
    assert [message for _, _, message in exits] == [
        "4 pods exited with code 137: mnist-worker-0 … mnist-worker-3",
        "4 pods exited with code 138: mnist-worker-4 … mnist-worker-7",
    ]


def test_a_failed_exit_is_one_event() -> None:
    asked = job(chief(), workers(1, "OnFailure"))
    seen = [pod("chief-0"), pod("worker-0", "Failed", exit_code=2)]
    first = look(asked, *seen, status=begun(asked))
    assert [event[1] for event in told(first)] == ["ExitedWithCode", "TFJobRestarting"]
    assert told(look(asked, *seen, status=first.status)) == []


def test_a_finished_task_is_no_event() -> None:
    asked = job(chief(), workers(1))
    assert (
        told(look(asked, pod("chief-0"), pod("worker-0", "Succeeded", exit_code=0), status=begun(asked)))
        == []
    )


def own_policy(policy: str) -> Role:
    asked = role("Worker", 1, "OnFailure")
    return replace(asked, template={"spec": {**asked.template["spec"], "restartPolicy": policy}})


def test_a_restart_policy_inside_the_template_is_overruled_with_a_warning() -> None:
    text = "Restart policy in pod template will be overwritten by restart policy in replica spec (Worker)"
    assert told(look(job(own_policy("Never")))) == [("Warning", "SetPodTemplateRestartPolicy", text)]


def test_the_overruled_policy_is_one_event() -> None:
    asked = job(own_policy("Never"))
    assert told(look(asked, status=begun(asked))) == []


def test_the_same_policy_inside_the_template_needs_no_warning() -> None:
    assert told(look(job(own_policy("OnFailure")))) == []


def pod_manifest(name: str, kind: str = "Pod") -> Create:
    return Create({"kind": kind, "metadata": {"name": name}})


DONE = {
    "nothing done is nothing told": ([], []),
    "a few pods are named": (
        [pod_manifest("a"), pod_manifest("b")],
        [("SuccessfulCreatePod", "Created pod: a, b")],
    ),
    "many pods are counted": (
        [pod_manifest(f"p-{i}") for i in range(64)],
        [("SuccessfulCreatePod", "Created 64 pods: p-0 … p-63")],
    ),
    "what comes and goes with pods is told with them": (
        [pod_manifest("s", "Service"), Delete("Pod", "p"), Delete("Service", "t"), pod_manifest("q")],
        [
            ("SuccessfulCreatePod", "Created pod: q; service: s"),
            ("SuccessfulDeletePod", "Deleted pod: p; service: t"),
        ],
    ),
    "a Service alone has an event of its own": (
        [pod_manifest("s", "Service")],
        [("SuccessfulCreateService", "Created service: s")],
    ),
    "the end of the TTL is told": (
        [DeleteJob()],
        [("SuccessfulDeleteJob", "Deleted job: its TTL has expired")],
    ),
}


@pytest.mark.parametrize(("actions", "events"), DONE.values(), ids=DONE.keys())
def test_actions_are_reported_in_a_few_events(
    actions: list[Create | Delete | DeleteJob], events: list[tuple[str, str]]
) -> None:
    assert list(narrate(actions)) == [Event("Normal", reason, text) for reason, text in events]


def test_pods_that_end_with_the_job_are_no_restart_in_the_events() -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=0)
    seen = [pod("worker-0", "Failed", exit_code=1), *pods("worker-1")]
    reasons = [event[1] for event in told(look(asked, *seen, status=begun(asked)))]
    assert reasons == ["ExitedWithCode", "TFJobFailed"]
