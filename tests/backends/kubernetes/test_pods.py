"""The model of a pod, whatever users wrote into it: how its program ended, and whether the cluster caused that."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tfyard.backends.kubernetes.pods import to_pod
from tfyard.kube import Kind
from tfyard.model import Pod
from tfyard.model.names import ATTEMPT, REPLICA_INDEX, REPLICA_TYPE
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import PodView

LABELS = {REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
ASKED_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
KIND = Kind(PodView)
DISRUPTION = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


@pytest.mark.parametrize(
    ("text", "attempt"), [("3", 3), ("", 0), ("-1", 0), ("three", 0), ("²", 0), ("9" * 5000, 0)]
)
def test_an_attempt_that_is_no_number_is_the_first(text: str, attempt: int) -> None:
    pod = to_pod(PodView(ObjectMeta("train-worker-0", labels=LABELS, annotations={ATTEMPT: text})))
    assert pod is not None
    assert pod.attempt == attempt


def time(seconds: float) -> str:
    return (ASKED_AT + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def ended(code: int, at: float = 0.0, **fields: Any) -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": time(-99)}
    return {"state": {"terminated": {**terminated, "finishedAt": time(at), **fields}}}


RUNNING: dict[str, Any] = {"state": {"running": {"startedAt": time(-99)}}}
WAITING: dict[str, Any] = {"state": {"waiting": {"reason": "PodInitializing"}}}


def read(
    phase: str,
    restart: str = "Never",
    before: Pod | None = None,
    *,
    main: dict[str, Any] | None = None,
    sidecar: dict[str, Any] | None = None,
    native: dict[str, Any] | None = None,
    init: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
    **status: Any,
) -> Pod:
    """A worker's pod as JSON, with these containers."""
    native_spec = [{"name": "proxy", "restartPolicy": "Always"}] if native else []
    containers = {"istio": sidecar, "tensorflow": main}
    inits = {"proxy": native, "fetch": init}
    document = {
        "metadata": {"name": "train-worker-0", "uid": "one", "labels": LABELS, **(meta or {})},
        "spec": {
            "restartPolicy": restart,
            "containers": [{"name": name, "image": "x"} for name, state in containers.items() if state],
            "initContainers": native_spec + ([{"name": "fetch"}] if init else []),
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": n, **state} for n, state in containers.items() if state],
            "initContainerStatuses": [{"name": n, **state} for n, state in inits.items() if state],
            **status,
        },
    }
    view = KIND.one.decode(msgspec.json.encode(document))
    pod = to_pod(view, before)
    assert pod is not None
    return pod


def deleting(grace: int, asked: float = 0.0) -> dict[str, Any]:
    return {
        "generation": 2,
        "deletionTimestamp": time(asked + grace),
        "deletionGracePeriodSeconds": grace,
    }


# --- only the training container counts


def test_a_native_sidecar_that_the_kubelet_ends_by_signal_is_not_the_end_of_the_task() -> None:
    over = read("Failed", main=ended(1, message="boom"), native=ended(137))
    assert (over.end, over.exit_code, over.message) == ("Failed", 1, "boom")
    early = read("Running", main=ended(1), native=RUNNING)
    assert (early.end, early.exit_code, early.lingers_since) == ("Failed", 1, None)
    well = read("Running", main=ended(0), native=RUNNING)
    assert (well.end, well.phase, well.lingers_since) == ("Succeeded", "Running", None)


def test_restarts_of_sidecars_do_not_count() -> None:
    restless = {**RUNNING, "restartCount": 7}
    pod = read("Running", main={**RUNNING, "restartCount": 2}, native=restless, sidecar=restless)
    assert pod.restarts == 2


def test_an_init_container_that_fails_is_the_tasks_own_failure() -> None:
    pod = read("Failed", main=WAITING, init={**ended(3, message="no data"), "restartCount": 1})
    assert (pod.end, pod.exit_code, pod.message, pod.restarts) == ("Failed", 3, "no data", 1)
    assert not pod.disrupted


ENDS = {
    "Never, and it ended well": ("Never", 0, "Succeeded"),
    "Never, and it failed": ("Never", 1, "Failed"),
    "OnFailure, and it ended well": ("OnFailure", 0, "Succeeded"),
    "OnFailure, and it failed": ("OnFailure", 1, ""),
    "Always, and it ended well": ("Always", 0, ""),
}


@pytest.mark.parametrize(("restart", "code", "end"), ENDS.values(), ids=ENDS.keys())
def test_a_task_has_ended_when_its_container_will_not_be_started_again(
    restart: str, code: int, end: str
) -> None:
    pod = read("Running", restart, main=ended(code), sidecar=RUNNING)
    assert (pod.end, pod.phase) == (end, "Running")
    assert pod.lingers_since == (ASKED_AT if end else None)


def test_a_container_may_have_a_restart_policy_of_its_own() -> None:
    def end(**own: Any) -> str:
        spec = {"containers": [{"name": "istio"}, {"name": "tensorflow", **own}]}
        return read("Running", "Always", main=ended(0), sidecar=RUNNING, spec=spec).end

    assert end() == ""
    assert end(restartPolicy="Never") == "Succeeded"
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [0]}}
    assert end(restartPolicy="Never", restartPolicyRules=[rule]) == ""


def test_a_sidecar_that_fails_afterwards_does_not_fail_the_task() -> None:
    assert read("Failed", main=ended(0), sidecar=ended(1)).end == "Succeeded"


def test_a_sidecar_that_crashes_again_and_again_lingers_and_one_that_has_ended_does_not() -> None:
    crashing = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}
    assert read("Running", "OnFailure", main=ended(0), sidecar=crashing).lingers_since
    assert read("Running", "OnFailure", main=ended(0), sidecar=ended(1)).lingers_since
    assert not read("Running", "OnFailure", main=ended(0), sidecar=ended(0)).lingers_since


def test_a_pod_that_was_told_to_end_does_not_linger() -> None:
    pod = read("Running", main=ended(0), sidecar=RUNNING, spec={"activeDeadlineSeconds": 1})
    assert (pod.end, pod.lingers_since) == ("Succeeded", None)


@pytest.mark.parametrize("later", ["deadline", "evicted"])
def test_how_a_program_ended_does_not_change_with_what_becomes_of_its_pod(later: str) -> None:
    first = read("Running", main=ended(0), sidecar=RUNNING)
    fields: dict[str, Any] = {"reason": "DeadlineExceeded", "message": "Pod was active too long"}
    if later == "evicted":
        fields = {"reason": "Evicted", "message": "low on memory", "conditions": [DISRUPTION]}
    after = read("Failed", before=first, main=ended(0), sidecar=ended(137), **fields)
    assert (after.phase, after.end, after.exit_code, after.disrupted) == ("Failed", "Succeeded", 0, False)


def test_a_program_that_ends_well_because_the_kubelet_stops_its_pod_has_not_finished() -> None:
    """The kubelet stops a pod at its own deadline, or by an eviction: phase and reason tell that."""
    late = read("Failed", main=ended(0), reason="DeadlineExceeded", message="Pod was active too long")
    assert (late.end, late.exit_code, late.disrupted) == ("Failed", None, False)
    assert late.message == "Pod was active too long"


# --- ended or asked first


@pytest.mark.parametrize(
    ("end", "observed", "grace", "asked"),
    [
        (-1, 1, 30, False),
        (9, 1, 0, False),
        (0, 2, 30, True),
        (-1, 2, 30, False),
        (-1, None, 30, False),
        (0, None, 30, True),
        (1, None, 30, True),
        (-1, None, 0, True),
        (-1, 2, 0, True),
    ],
)
def test_a_version_by_itself_says_whether_the_program_ended_before_it_was_asked_to(
    end: float, observed: int | None, grace: int, asked: bool
) -> None:
    known = {} if observed is None else {"observedGeneration": observed}
    pod = read("Succeeded", main=ended(0, end), meta=deleting(grace), **known)
    assert pod.asked_to_stop == asked


def test_an_earlier_crash_is_not_the_end() -> None:
    crashed = {"lastState": ended(1, -50)["state"]}
    killed = {"state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}, **crashed}
    pod = read("Failed", "OnFailure", main=killed, meta=deleting(30))
    assert pod.asked_to_stop


def test_a_program_that_had_ended_beside_its_sidecar_when_the_pod_was_deleted_has_finished() -> None:
    pod = read("Running", main=ended(0, -5), sidecar=RUNNING, meta=deleting(30))
    assert (pod.end, pod.asked_to_stop) == ("Succeeded", False)
    late = read("Running", main=ended(0, 5), sidecar=RUNNING, meta=deleting(30))
    assert late.asked_to_stop


# --- the program's own fault, or the cluster's

EMPTY_DIR = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi".'
KILLED = {"main": ended(137)}
FAULTS: dict[str, tuple[dict[str, Any], bool]] = {
    "node pressure": ({"reason": "Evicted", "conditions": [DISRUPTION], **KILLED}, True),
    "over its own limit": ({"reason": "Evicted", "message": EMPTY_DIR, **KILLED}, False),
    "rejected by a node under pressure": (
        {"reason": "Evicted", "message": "Pod was rejected: The node had condition: [DiskPressure]."},
        True,
    ),
    "rejected when its kubelet restarted": (
        {"reason": "Evicted", "message": "Pod was rejected: The node was low on memory", **KILLED},
        True,
    ),
    "no CPU left": ({"reason": "OutOfcpu", **KILLED}, True),
    "no GPU left": ({"reason": "OutOfnvidia.com/gpu"}, True),
    "a device plugin that fails": ({"reason": "UnexpectedAdmissionError", **KILLED}, True),
    "another kind of rejection": ({"reason": "PodOSNotSupported", "main": WAITING}, True),
    "a lost node": ({"reason": "NodeLost", **KILLED}, True),
    "a node that is shut down": ({"reason": "Terminated", **KILLED}, True),
    "a node that was rebooted": ({"main": ended(255, reason="Unknown")}, True),
    "a container that its kubelet lost": ({"main": ended(137, reason="ContainerStatusUnknown")}, True),
    "a deadline at which its container was lost": (
        {"reason": "DeadlineExceeded", "main": ended(137, reason="ContainerStatusUnknown")},
        False,
    ),
    "a program that fails": ({"main": ended(1)}, False),
    "a program that exits with 255": ({"main": ended(255)}, False),
    "a deadline before anything started": ({"reason": "DeadlineExceeded", "main": WAITING}, False),
    "a condition that no longer holds": (
        {"conditions": [{**DISRUPTION, "status": "False"}], **KILLED},
        False,
    ),
}


@pytest.mark.parametrize(("fields", "disrupted"), FAULTS.values(), ids=FAULTS.keys())
def test_an_end_is_the_clusters_doing_only_if_the_cluster_says_so(
    fields: dict[str, Any], disrupted: bool
) -> None:
    pod = read("Failed", **fields)
    assert (pod.end, pod.disrupted) == ("Failed", disrupted)


def test_an_eviction_is_told_with_the_kubelets_sentence() -> None:
    pod = read("Failed", main=ended(137, message="epoch 3"), reason="Evicted", message=EMPTY_DIR)
    assert (pod.exit_code, pod.reason, pod.message) == (137, "Evicted", EMPTY_DIR)
    calm = read("Failed", main=ended(0), reason="Evicted", message=EMPTY_DIR)
    assert (calm.exit_code, calm.message) == (None, EMPTY_DIR)


CRASHED: dict[str, Any] = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}


def test_the_restart_of_a_program_in_a_crash_loop_is_due() -> None:
    assert read("Running", "OnFailure", main=CRASHED).restart_due
    assert read("Pending", "OnFailure", main=WAITING, init=CRASHED).restart_due
    assert not read("Pending", "OnFailure", main=WAITING).restart_due
    assert not read("Running", "OnFailure", main=RUNNING, sidecar=CRASHED).restart_due
    assert not read("Running", "OnFailure", main=RUNNING, native=CRASHED).restart_due


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
BETWEEN: dict[str, tuple[str, dict[str, Any], bool]] = {
    "a failure under OnFailure": ("OnFailure", {"main": ended(1)}, True),
    "any end under Always": ("Always", {"main": ended(0)}, True),
    "a success under OnFailure": ("OnFailure", {"main": ended(0)}, False),
    "any end under Never": ("Never", {"main": ended(1)}, False),
    "an init container that failed": ("Always", {"main": WAITING, "init": ended(1)}, True),
    "an init container that is done": ("Always", {"main": RUNNING, "init": ended(0)}, False),
    "what a rule decides": (
        "Never",
        {"main": ended(1), "spec": {"containers": [{"name": "tensorflow", "restartPolicyRules": [RULE]}]}},
        False,
    ),
}


@pytest.mark.parametrize(("restart", "seen", "due"), BETWEEN.values(), ids=BETWEEN.keys())
def test_a_restart_is_due_as_soon_as_the_container_has_ended(
    restart: str, seen: dict[str, Any], due: bool
) -> None:
    """A state of about a second, before the kubelet reports a crash loop or makes the first restart."""
    assert read("Running", restart, **seen).restart_due is due
    assert not read("Failed", restart, **seen).restart_due


# --- restarts in place that a node caused

LOST = ended(255, reason="Unknown")
"""As a kubelet of Kubernetes 1.36 with containerd 2.2 reports a container that ran at a power cut: with its true
start, no message, and a restart count that grows when it runs again. For a moment the pod is Running beside it.
Init containers that had succeeded run again with their pod, and count, too."""
UNSEEN = ended(137, reason="ContainerStatusUnknown")
CREATING: dict[str, Any] = {"state": {"waiting": {"reason": "ContainerCreating"}}}


def run(count: int, state: dict[str, Any], last: dict[str, Any]) -> dict[str, Any]:
    """A container after so many restarts, with the end before the last one."""
    return {**state, "restartCount": count, "lastState": last["state"]}


EXCUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "it runs again": ({"main": run(1, RUNNING, LOST)}, ("tensorflow/1",)),
    "it has failed by itself since": ({"main": run(1, ended(1), LOST)}, ("tensorflow/1",)),
    "it had failed by itself before": ({"main": run(3, RUNNING, LOST)}, ("tensorflow/3",)),
    "it is created and not yet started": (
        {"main": run(2, {"state": {"waiting": {}}}, LOST)},
        ("tensorflow/2",),
    ),
    "it has not been started again yet": ({"main": run(2, CREATING, LOST)}, ()),
    "the kubelet counted before it started it": ({"main": run(2, CREATING, UNSEEN)}, ("tensorflow/2",)),
    "the kubelet counted at its end": ({"main": {**UNSEEN, "restartCount": 1}}, ("tensorflow/1",)),
    "its pod was set up anew": (
        {"main": WAITING, "init": run(1, RUNNING, ended(0))},
        ("fetch/1",),
    ),
    "a reboot in the middle of an init container": (
        {"main": WAITING, "init": run(1, RUNNING, LOST)},
        ("fetch/1",),
    ),
    "its own failure": ({"main": run(1, RUNNING, ended(1))}, ()),
    "an init container's own failure": ({"main": WAITING, "init": run(1, RUNNING, ended(1))}, ()),
    "its own end under Always": ({"main": run(1, RUNNING, ended(0))}, ()),
    "no restart": ({"main": RUNNING}, ()),
}


@pytest.mark.parametrize(("seen", "excused"), EXCUSED.values(), ids=EXCUSED.keys())
def test_a_restart_in_place_that_follows_a_reboot_is_told_apart(
    seen: dict[str, Any], excused: tuple[str, ...]
) -> None:
    assert read("Running", "OnFailure", **seen).excused == excused


def test_a_restart_that_a_node_caused_is_known_also_if_another_end_follows_at_once() -> None:
    rebooted = read("Running", "OnFailure", main=run(1, RUNNING, LOST))
    crashed = read("Running", "OnFailure", rebooted, main=run(2, RUNNING, ended(1)))
    assert (crashed.restarts, crashed.excused) == (2, ("tensorflow/1",))


def test_a_program_is_disrupted_from_its_loss_until_it_runs_again() -> None:
    lost = read("Running", "OnFailure", main=LOST)
    assert (lost.end, lost.restart_due, lost.disrupted) == ("", True, True)
    assert read("Running", "OnFailure", main=run(0, CREATING, LOST)).disrupted
    assert not read("Running", "OnFailure", main=run(1, RUNNING, LOST)).disrupted
    for_good = read("Running", "Never", main=LOST, sidecar=RUNNING)
    assert (for_good.end, for_good.disrupted) == ("Failed", True)
