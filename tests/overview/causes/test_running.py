"""Tasks that run and get nowhere: peers that are not reached, silence, a loss that is not a number."""

from typing import Any

import msgspec

from tests.overview.situations import ago, condition, job, pod, running, status, why
from tfyard.model import Cluster, Role
from tfyard.overview.evidence import Evidence, LogTail
from tfyard.views import objects

UNREACHED = (
    "E0000 failed to connect to all addresses; last error: UNKNOWN: train-worker-1.train.ml.svc:2222: Failed to"
    " connect to remote host: Connection refused"
)


def both(log: str, minutes: float = 1, **fields: Any) -> Evidence:
    """Two workers that run, and the log of the first."""
    logs = {"worker-0": LogTail(log, ago(minutes=minutes)), "worker-1": LogTail("…", ago(minutes=minutes))}
    return job(pod("worker-0", running()), pod("worker-1", running()), logs=logs, **fields)


def test_a_running_job_is_fine() -> None:
    answer = why(both("Step: 10, loss: 0.5"))
    assert (answer.code, answer.state) == (0, "fine")
    assert answer.sentence == "train has run for 5m00s with all 2 tasks; nothing blocks it"


def test_a_peer_that_is_not_reached_is_named() -> None:
    answer = why(both(UNREACHED))
    assert (answer.code, answer.causes[0].kind) == (3, "peers")
    assert answer.sentence == "worker-0 cannot reach worker-1"


BY_ADDRESS = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.2:2222: Connection timed out"
)


def test_a_peer_is_also_known_by_its_address() -> None:
    pods = (
        pod("worker-0", running() | {"podIP": "10.0.0.22"}),
        pod("worker-1", running() | {"podIP": "10.0.0.2"}),
    )
    answer = why(job(*pods, logs={"worker-0": LogTail(BY_ADDRESS, ago(minutes=1))}))
    assert answer.sentence == "worker-0 cannot reach worker-1"


NO_PEER = "<urlopen error [Errno 111] Connection refused>"


def test_a_server_outside_of_the_job_is_no_peer() -> None:
    assert why(both(NO_PEER)).code == 0
    alone = (Role(name="Worker", replicas=1),)
    logs = {"worker-0": LogTail("UNAVAILABLE: connections to all backends failing", ago(minutes=1))}
    assert why(job(pod("worker-0", running()), logs=logs, roles=alone)).code == 0, "it has no peers"


WAITS = """\
I0000 00:00:1794803145.777214 5179 coordination_service.cc:502] Waiting for 1/2 tasks to connect.
I0000 00:00:1794803145.777224 5179 coordination_service.cc:505] Example stragglers:
/job:worker/replica:0/task:1
I0000 00:00:1794803145.777659 5154 service_agent.cc:245] Coordination agent has successfully connected."""
PASSED = (
    "\nI0000 23 coordination_service.cc:1472] Barrier(WaitForAllTasks::149::0) has passed with status: OK"
)


def test_tasks_that_never_connect_are_named_by_tensorflow_itself() -> None:
    answer = why(both(WAITS, minutes=5))
    assert (answer.code, answer.sentence) == (3, "worker-0 waits for worker-1 to connect")
    assert why(both(WAITS, minutes=1)).code == 0, "for a moment, every job waits"
    assert why(both(WAITS + PASSED, minutes=5)).code == 0


def test_an_error_that_the_program_got_over_is_no_cause() -> None:
    assert why(both(f"{UNREACHED}\n" + "Step: 1\n" * 5)).code == 0


def test_a_network_policy_that_selects_the_pods_is_named() -> None:
    spec = {"podSelector": {"matchLabels": {"training.kubeflow.org/job-name": "train"}}}
    policy = msgspec.convert({"metadata": {"name": "deny"}, "spec": spec}, objects.NetworkPolicy)
    other = msgspec.convert(
        {"metadata": {"name": "x"}, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
        objects.NetworkPolicy,
    )
    answer = why(both(UNREACHED, policies=(other, policy)))
    assert "NetworkPolicy deny selects these pods" in answer.sentence
    assert answer.causes[0].fix == "kubectl -n ml describe networkpolicy deny"


def test_a_task_without_an_endpoint_cannot_be_resolved() -> None:
    endpoints = [{"targetRef": {"kind": "Pod", "name": "train-worker-0"}}]
    of = {"labels": {"kubernetes.io/service-name": "train"}}
    mine = msgspec.convert({"metadata": of, "endpoints": endpoints}, objects.Slice)
    other = msgspec.convert({"endpoints": []}, objects.Slice)
    assert why(both(UNREACHED, slices=(other,))).sentence == "worker-0 cannot reach worker-1"
    answer = why(both(UNREACHED, slices=(mine, other)))
    assert "worker-1 is not among the endpoints of its Service" in answer.sentence


def test_istio_between_the_tasks() -> None:
    proxied = running()
    proxied["containerStatuses"].append({"name": "istio-proxy", "state": {"running": {}}})
    logs = {"worker-0": LogTail(UNREACHED, ago(minutes=1))}
    answer = why(job(pod("worker-0", proxied), pod("worker-1", proxied), logs=logs))
    assert "Istio's proxy" in answer.sentence
    assert "sidecar.istio.io/inject" in answer.causes[0].fix


def test_an_evaluator_in_tf_config_keeps_all_waiting() -> None:
    roles = (Role(name="Worker", replicas=2), Role(name="Evaluator", replicas=1))
    memory = status(condition("Running"), cluster=Cluster(dialect="kubeflow"))
    log = "Waiting for the cluster, timeout = inf"
    answer = why(both(log, minutes=3, roles=roles, status=memory))
    assert "TF_CONFIG lists the evaluator" in answer.sentence
    assert answer.causes[0].fix == "job file: `dialect: tf2`"
    assert why(both(log, minutes=1, roles=roles, status=memory)).causes == (), "for a moment, every job waits"
    answer = why(both(UNREACHED, roles=roles, status=memory))
    assert answer.sentence == "worker-0 cannot reach worker-1", (
        "TensorFlow 2.21 does not wait for an evaluator"
    )


def test_nccl_that_does_not_connect() -> None:
    answer = why(
        both("node1:1:1 [0] NCCL WARN Connect to 10.0.0.2<3000> failed : Software caused connection abort")
    )
    assert answer.causes[0].kind == "nccl"


def test_tasks_that_are_silent_for_long() -> None:
    answer = why(both("Step: 10, loss: 0.5", minutes=25))
    assert (answer.code, answer.causes[0].kind) == (3, "no-progress")
    assert answer.sentence == "worker-0 and worker-1 printed nothing for 25m00s"
    assert answer.causes[0].evidence[0].source == "log"


def test_a_job_that_says_for_how_long_it_may_be_silent() -> None:
    text = "worker-0 has written no line for more than 15m; the last one, at 2026-11-16T11:40:00Z: Epoch 3/10"
    stalled = condition("Stalled", "NoOutput", text)
    answer = why(both("Epoch 3/10", minutes=20, status=status(condition("Running"), stalled)))
    (cause,) = answer.causes
    assert (answer.code, cause.kind) == (3, "stalled")
    assert cause.sentence == "worker-0 has written no line for more than 15m: it hangs"
    assert cause.fix == "see what they do: `tfyard why train -n ml --stacks`"
    assert [(quote.source, quote.text) for quote in cause.evidence] == [("condition", text)]


def test_a_parameter_server_may_be_silent() -> None:
    logs = {"worker-0": LogTail("Step: 1", ago(minutes=1)), "ps-0": LogTail("started", ago(hours=1))}
    roles = (Role(name="Worker", replicas=1), Role(name="PS", replicas=1))
    pods = (pod("worker-0", running()), pod("ps-0", running()))
    assert why(job(*pods, logs=logs, roles=roles)).code == 0


def test_a_loss_that_is_not_a_number() -> None:
    answer = why(both("Step: 9, loss: 0.5\nStep: 10, loss: nan"))
    assert (answer.code, answer.causes[0].kind) == (3, "nan-loss")
    assert answer.sentence == "loss of worker-0 is not a number, and the training continues"
    assert why(both("Step: 9, loss: nan\nStep: 10, loss: 0.5")).code == 0
