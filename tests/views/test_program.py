"""How a program ended is one answer: the operator, `describe`, `logs` and `why` read it from the pod alike."""

from typing import Any

import msgspec
import pytest

from tests.overview.situations import ago, job, stamp
from tfyard.backends.kubernetes.pods import to_pod
from tfyard.remote.logs.pod_starts import endings
from tfyard.remote.reading.views import attempts_of
from tfyard.views.pods import PodDetails, PodView
from tfyard.views.program import waits_for

Fields = dict[str, Any]
LABELS = {
    "training.kubeflow.org/job-name": "train",
    "training.kubeflow.org/replica-type": "worker",
    "training.kubeflow.org/replica-index": "0",
}
RUNNING: Fields = {"running": {"startedAt": stamp(ago(minutes=4))}}
BACK_OFF: Fields = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}}
DRAINED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "evicting",
}
DEADLINE = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the deadline"}
RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}


def ended(code: int) -> Fields:
    reason = "Error" if code else "Completed"
    times = {"startedAt": stamp(ago(minutes=4)), "finishedAt": stamp(ago(minutes=1))}
    return {"terminated": {"exitCode": code, "reason": reason, **times}}


def containers(**policies: Fields) -> Fields:
    return {"restartPolicy": "Never", "containers": [{"name": n, **own} for n, own in policies.items()]}


def reported(states: dict[str, Fields]) -> list[Fields]:
    """A state may have a `lastState` and a `restartCount` beside it."""
    statuses = []
    for name, fields in states.items():
        beside = {key: value for key, value in fields.items() if key in ("lastState", "restartCount")}
        state = {key: value for key, value in fields.items() if key not in beside}
        statuses.append({"name": name, "state": state, **beside})
    return statuses


def pod(phase: str, states: dict[str, Fields], spec: Fields, **status: Any) -> bytes:
    """Statuses are in the order of names, as kubelets report them."""
    document = {
        "metadata": {"name": "train-worker-0", "uid": "one", "labels": LABELS},
        "spec": {"nodeName": "n1", **spec},
        "status": {"phase": phase, "containerStatuses": reported(dict(sorted(states.items()))), **status},
    }
    return msgspec.json.encode(document)


PLAIN = containers(tensorflow={})
WITH_PROXY = containers(tensorflow={}, proxy={})
UNNAMED = containers(train={}, aux={})
ENDS: dict[str, tuple[bytes, str, str]] = {
    "runs": (pod("Running", {"tensorflow": RUNNING}, PLAIN), "", "Running"),
    "failed": (pod("Failed", {"tensorflow": ended(1)}, PLAIN), "Failed", "Failed"),
    "ended before its pod": (pod("Running", {"tensorflow": ended(0)}, PLAIN), "Succeeded", "Succeeded"),
    "the first container trains, whatever the order of names": (
        pod("Running", {"train": RUNNING, "aux": ended(1)}, UNNAMED),
        "",
        "Running",
    ),
    "the first container has ended, and another runs on": (
        pod("Running", {"train": ended(0), "aux": RUNNING}, UNNAMED),
        "Succeeded",
        "Succeeded",
    ),
    "a sidecar that fails afterwards": (
        pod("Failed", {"tensorflow": ended(0), "proxy": ended(1)}, WITH_PROXY),
        "Succeeded",
        "Succeeded",
    ),
    "drained after its end": (
        pod("Failed", {"tensorflow": ended(0), "proxy": ended(137)}, WITH_PROXY, conditions=[DRAINED]),
        "Succeeded",
        "Succeeded",
    ),
    "a policy of its own that does not restart it": (
        pod(
            "Running",
            {"tensorflow": ended(1), "proxy": RUNNING},
            containers(tensorflow={"restartPolicy": "Never"}, proxy={}) | {"restartPolicy": "Always"},
        ),
        "Failed",
        "Failed",
    ),
    "rules of its own, which the kubelet has not applied yet": (
        pod(
            "Running",
            {"tensorflow": ended(42)},
            containers(tensorflow={"restartPolicy": "Never", "restartPolicyRules": [RULE]}),
        ),
        "",
        "Failed",
    ),
    "stopped by a deadline of its template": (
        pod("Failed", {"tensorflow": ended(0)}, {**PLAIN, "activeDeadlineSeconds": 600}, **DEADLINE),
        "Failed",
        "Failed",
    ),
    "ended in place, after it had succeeded": (
        pod(
            "Failed",
            {"tensorflow": ended(0), "proxy": ended(137)},
            {**WITH_PROXY, "activeDeadlineSeconds": 1},
            **DEADLINE,
        ),
        "Succeeded",
        "Succeeded",
    ),
    "not admitted": (
        pod("Failed", {}, PLAIN, reason="OutOfcpu", message="Pod was rejected: …"),
        "Failed",
        "Failed",
    ),
}


@pytest.mark.parametrize(("document", "end", "state"), ENDS.values(), ids=ENDS.keys())
def test_the_operator_describe_and_why_agree(document: bytes, end: str, state: str) -> None:
    decided = to_pod(msgspec.json.decode(document, type=PodView))
    details = msgspec.json.decode(document, type=PodDetails)
    assert decided is not None
    assert decided.end == end
    assert attempts_of(details)[-1].state == state
    evidence = job(details)
    assert evidence.counts == (int(state == "Running"), int(end == "Succeeded"))
    assert [failed.task for failed in evidence.failures()] == (["worker-0"] if end == "Failed" else [])


def test_an_operator_that_starts_later_reads_the_end_of_a_program_whose_pod_was_ended_in_place() -> None:
    document = ENDS["ended in place, after it had succeeded"][0]
    decided = to_pod(msgspec.json.decode(document, type=PodView))
    assert decided is not None
    assert (decided.end, decided.exit_code, decided.reason) == ("Succeeded", 0, "Completed")


def test_in_a_back_off_one_run_has_ended_and_not_also_the_one_before_it() -> None:
    crashed = {**BACK_OFF, "lastState": ended(1), "restartCount": 2}
    waiting = msgspec.json.decode(pod("Running", {"tensorflow": crashed}, PLAIN), type=PodDetails)
    assert [(each.restart, each.exit_code) for each in endings(waiting)] == [(2, 1)]
    assert [(each.restart, each.state) for each in attempts_of(waiting)] == [(2, "Failed"), (3, "Waiting")]


@pytest.mark.parametrize(
    ("fetch", "prepare", "failures"),
    [
        ({**BACK_OFF, "lastState": ended(3)}, {"waiting": {"reason": "PodInitializing"}}, [3]),
        ({**ended(0), "lastState": ended(3)}, RUNNING, []),
        ({**ended(0), "lastState": ended(3)}, {**BACK_OFF, "lastState": ended(4)}, [4]),
    ],
    ids=["it fails", "it has succeeded since", "the next one fails"],
)
def test_an_init_container_explains_a_pod_only_as_long_as_it_has_not_succeeded(
    fetch: Fields, prepare: Fields, failures: list[int]
) -> None:
    spec = {**PLAIN, "restartPolicy": "OnFailure", "initContainers": [{"name": "fetch"}, {"name": "prepare"}]}
    prepared = {"fetch": fetch, "prepare": prepare}
    states: dict[str, Fields] = {"tensorflow": {"waiting": {"reason": "PodInitializing"}}}
    details = msgspec.json.decode(
        pod("Pending", states, spec, initContainerStatuses=reported(prepared)), type=PodDetails
    )
    assert [end.exit_code for end in job(details).endings()] == failures


def test_a_pod_with_a_node_waits_for_its_kubelet_whatever_a_second_attempt_at_scheduling_reports() -> None:
    refusal = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulerError",
        "message": "already assigned",
    }
    spec: dict[str, Any] = {"containers": [{"name": "tensorflow"}]}
    pod = {"spec": spec, "status": {"conditions": [refusal]}}
    assert waits_for(msgspec.convert(pod, PodView)) == "SchedulerError: already assigned"
    spec["nodeName"] = "n"
    assert waits_for(msgspec.convert(pod, PodView)) == "its pod is not running yet"
