"""Pods that are being taken away, and nodes that do not answer."""

from typing import Any

import msgspec

from tests.overview.situations import (
    Manifest,
    ago,
    condition,
    job,
    pod,
    running,
    stamp,
    status,
    warning,
    why,
)
from tfyard.model import Condition, Role
from tfyard.overview.why import Answer
from tfyard.views import pods


def deleted(made: pods.PodDetails, since: float, grace: int) -> pods.PodDetails:
    """A pod that was deleted so many seconds ago."""
    meta = msgspec.structs.replace(
        made.metadata,
        deletion_timestamp=ago(seconds=since - grace),
        deletion_grace_period_seconds=grace,
    )
    return msgspec.structs.replace(made, metadata=meta)


def on_node(task: str = "worker-0", **fields: Any) -> pods.PodDetails:
    return pod(task, running(), nodeName="n1", **fields)


def unready(since: float = 1) -> Manifest:
    at = stamp(ago(minutes=since))
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": at}
    made = running()
    return {**made, "conditions": [*made["conditions"], ready]}


def blocked(reason: str, message: str) -> Condition:
    return condition("Blocked", reason, message)


def test_a_pod_that_still_ends_is_told_with_the_time_that_it_has() -> None:
    answer = why(job(on_node("worker-0"), deleted(on_node("worker-1"), since=12, grace=60)))
    sentence = "the pod of worker-1 was deleted 12s ago and still ends: it has 48s left for that"
    assert (answer.code, answer.sentence) == (3, sentence)
    assert answer.causes[0].kind == "terminating"
    assert "`stopGrace:`" in answer.causes[0].fix


def test_a_pod_that_its_kubelet_does_not_end_is_told_with_its_node() -> None:
    answer = why(job(on_node("worker-0"), deleted(on_node("worker-1"), since=200, grace=60)))
    late = "the pod of worker-1 was to end 2m20s ago, and its node n1 has not said that it has"
    assert (answer.sentence, answer.causes[0].fix) == (late, "kubectl describe node n1")


def test_a_pod_that_is_not_needed_any_more_is_no_cause() -> None:
    evidence = job(on_node("worker-0"), deleted(on_node("worker-1"), since=12, grace=60))
    assert why(msgspec.structs.replace(evidence, roles=(Role(name="Worker", replicas=1),))).code == 0


def test_the_pod_of_a_job_that_had_the_name_before() -> None:
    waits = status(blocked("NameNotYetFree", "pod train-worker-0 is still being deleted"))
    answer = why(job(status=waits, former=(deleted(on_node("worker-0"), since=12, grace=60),)))
    told = (
        "the pod of the former train that has the name of worker-0 was deleted 12s ago and still ends: it has"
    )
    assert [cause.sentence for cause in answer.causes] == [f"{told} 48s left for that"]


def test_a_node_that_is_off_holds_its_pods() -> None:
    message = (
        "pod train-worker-0 is still being deleted: node n1 is not ready; if the machine is off, delete it"
    )
    answer = why(job(status=status(blocked("PodTerminating", message))))
    assert answer.causes[0].fix == "if that machine is off for good: kubectl delete node n1"


def lost(**fields: Any) -> Answer:
    event = warning("NodeNotReady", "Node is not ready", age=1)
    probed: Manifest = {"readinessProbe": {"exec": {"command": ["true"]}}}
    template = {"spec": {"containers": [{"name": "tensorflow", **probed}]}}
    roles = (Role(name="Worker", replicas=1, template=template),)
    return why(job(pod("worker-0", fields.pop("status"), nodeName="n1"), events=(event,), roles=roles))


def test_a_node_that_does_not_answer_is_told_and_no_failed_probe() -> None:
    answer = lost(status=unready())
    assert answer.sentence == (
        "the node n1 of worker-0 has not answered for 60s: whether it still runs is unknown"
    )
    assert [cause.kind for cause in answer.causes] == ["node-lost"]
    assert "kubectl describe node n1" in answer.causes[0].fix


def test_a_node_that_answers_again_is_no_cause() -> None:
    assert lost(status=running()).causes == ()
    assert "node-lost" not in [cause.kind for cause in lost(status=unready(since=0.5)).causes]
