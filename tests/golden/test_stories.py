"""Whole lives of jobs, whole decisions: a job and what is seen of it in, everything that is decided out."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from tests.planner.builders import IMAGE, NOW, at, chief, job, look, pod, servers, workers
from tfyard.model import (
    Cluster,
    Condition,
    Create,
    Decision,
    Delete,
    DeleteJob,
    Ending,
    Event,
    Failure,
    Job,
    Manifest,
    RoleMemory,
    RoleStatus,
    Status,
)

OWNER = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "name": "mnist",
    "uid": "u-1",
    "controller": True,
    "blockOwnerDeletion": True,
}
FOUND_BY = {
    "training.kubeflow.org/operator-name": "tfjob-controller",
    "training.kubeflow.org/job-name": "mnist",
}


def service() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mnist", "namespace": "lab", "labels": FOUND_BY, "ownerReferences": [OWNER]},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": FOUND_BY,
            "ports": [{"name": "tf-2222", "port": 2222}],
        },
    }


def manifest(kind: str, index: int, cluster: str, attempt: int = 0, master: bool = False) -> Manifest:
    name = f"mnist-{kind}-{index}"
    task = f'"task":{{"type":"{kind}","index":{index}}}'
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "lab",
            "labels": {
                "app.kubernetes.io/name": "mnist",
                "app.kubernetes.io/component": kind,
                "app.kubernetes.io/managed-by": "tfyard",
                **FOUND_BY,
                "training.kubeflow.org/replica-type": kind,
                "training.kubeflow.org/replica-index": str(index),
                **({"training.kubeflow.org/job-role": "master"} if master else {}),
            },
            "annotations": {"tfyard.dev/attempt": str(attempt)},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "containers": [
                {
                    "name": "tensorflow",
                    "image": IMAGE,
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "ports": [{"name": "tfjob-port", "containerPort": 2222}],
                    "env": [
                        {
                            "name": "TF_CONFIG",
                            "value": f'{{"cluster":{cluster},{task},"environment":"cloud"}}',
                        }
                    ],
                }
            ],
            "restartPolicy": "Never",
            "hostname": name,
            "subdomain": "mnist",
        },
    }


def shown(role: str, ready: str, **counts: int) -> RoleStatus:
    selector = f"training.kubeflow.org/job-name=mnist,training.kubeflow.org/replica-type={role}"
    return RoleStatus(ready=ready, selector=selector, **counts)


def since(when: datetime, type: str, message: str, status: Any = "True", reason: str = "") -> Condition:
    return Condition(type, status, reason or f"TFJob{type}", message, when, when)


MADE = since(NOW, "Created", "TFJob mnist is created.")
RUNS = since(at(5), "Running", "TFJob lab/mnist is running.")
SERVICES = frozenset({("Service", "mnist")})

# The first life: a chief with a worker that is killed once, and a parameter server that never ends.

TRAINING = job(chief(), workers(1, "ExitCode"), servers(1), clean="Running", ttl=3600, backoff_limit=3)
TRIO = (
    '{"chief":["mnist-chief-0.mnist.lab.svc:2222"],"ps":["mnist-ps-0.mnist.lab.svc:2222"],'
    '"worker":["mnist-worker-0.mnist.lab.svc:2222"]}'
)
BEGUN = Status(
    phase="Created",
    conditions=(MADE,),
    replica_statuses={
        "Chief": shown("chief", "0/1"),
        "Worker": shown("worker", "0/1"),
        "PS": shown("ps", "0/1"),
    },
    cluster=Cluster(services="shared", dialect="tf2"),
    start_time=NOW,
    observed_generation=1,
)
RUNNING = replace(
    BEGUN,
    phase="Running",
    conditions=(MADE, RUNS),
    replica_statuses={
        "Chief": shown("chief", "1/1", active=1),
        "Worker": shown("worker", "1/1", active=1),
        "PS": shown("ps", "1/1", active=1),
    },
)
KILLED_TEXT = "job mnist is restarting because Worker replica(s) failed."
KILLED = replace(
    RUNNING,
    phase="Restarting",
    conditions=(MADE, since(at(60), "Restarting", KILLED_TEXT)),
    replica_statuses={**RUNNING.replica_statuses, "Worker": shown("worker", "0/1", restarts=1)},
    restarts=1,
    tasks={"Worker": RoleMemory(attempts={"0": 1}, retries=1)},
    endings=(Ending(task="worker-0", attempt=1, finished=at(60), exit_code=137),),
)
AGAIN = replace(
    KILLED,
    phase="Running",
    conditions=(MADE, replace(RUNS, last_update_time=at(70), last_transition_time=at(70))),
    replica_statuses={**RUNNING.replica_statuses, "Worker": shown("worker", "1/1", active=1, restarts=1)},
)
TRAINED = replace(
    AGAIN,
    phase="Succeeded",
    conditions=(
        MADE,
        replace(AGAIN.conditions[1], status="False"),
        since(at(99), "Succeeded", "TFJob lab/mnist successfully completed."),
    ),
    replica_statuses={
        "Chief": shown("chief", "1/1", succeeded=1),
        "Worker": shown("worker", "0/1, 1 stopped", succeeded=1, restarts=1),
        "PS": shown("ps", "0/1, 1 stopped", succeeded=1),
    },
    tasks={"Chief": RoleMemory(finished="0"), "Worker": RoleMemory(attempts={"0": 1}, retries=1)},
    completion_time=at(99),
)
CHIEF, SERVER = pod("chief-0", ready=True), pod("ps-0", ready=True)


def seen(asked: Job, *pods: Any, status: Status, seconds: float) -> Decision:
    return look(asked, *pods, status=status, now=at(seconds), children=SERVICES)


def test_a_new_job_gets_its_service_and_its_pods_beside_its_first_status() -> None:
    assert look(TRAINING) == Decision(
        status=BEGUN,
        actions=(
            Create(service()),
            Create(manifest("chief", 0, TRIO, master=True)),
            Create(manifest("worker", 0, TRIO)),
            Create(manifest("ps", 0, TRIO)),
        ),
        urgency="later",
    )


def test_a_job_whose_pods_run_is_running_and_needs_nothing() -> None:
    pods = [CHIEF, pod("worker-0", ready=True), SERVER]
    assert seen(TRAINING, *pods, status=BEGUN, seconds=5.5) == Decision(status=RUNNING, urgency="soon")
    assert seen(TRAINING, *pods, status=RUNNING, seconds=50) == Decision(status=RUNNING)


def test_a_killed_worker_is_remembered_then_deleted_and_told() -> None:
    killed = pod("worker-0", "Failed", exit_code=137)
    assert seen(TRAINING, CHIEF, killed, SERVER, status=RUNNING, seconds=60) == Decision(
        status=KILLED,
        actions=(Delete("Pod", "mnist-worker-0", "worker-0#0"),),
        events=(
            Event("Normal", "ExitedWithCode", "Pod: lab.mnist-worker-0 exited with code 137"),
            Event("Warning", "TFJobRestarting", KILLED_TEXT),
        ),
    )


def test_the_killed_worker_is_made_again_as_its_second_attempt() -> None:
    assert seen(TRAINING, CHIEF, SERVER, status=KILLED, seconds=61) == Decision(
        status=KILLED, actions=(Create(manifest("worker", 0, TRIO, attempt=1)),)
    )


def test_when_the_worker_is_back_the_job_runs_again() -> None:
    back = pod("worker-0", ready=True, attempt=1)
    assert seen(TRAINING, CHIEF, back, SERVER, status=KILLED, seconds=70) == Decision(
        status=AGAIN, urgency="soon"
    )


def test_when_the_chief_is_done_the_job_has_succeeded_and_who_still_runs_goes() -> None:
    done = pod("chief-0", "Succeeded", exit_code=0)
    back = pod("worker-0", ready=True, attempt=1)
    assert seen(TRAINING, done, back, SERVER, status=AGAIN, seconds=99) == Decision(
        status=TRAINED,
        actions=(
            Delete("Pod", "mnist-worker-0", "worker-0#1"),
            Delete("Pod", "mnist-ps-0", "ps-0#0"),
            Delete("Service", "mnist"),
        ),
        events=(Event("Normal", "TFJobSucceeded", "TFJob lab/mnist successfully completed."),),
        wake_after=3600.0,
    )


def test_when_its_time_is_over_the_job_is_deleted() -> None:
    assert look(TRAINING, status=TRAINED, now=at(99 + 3600)) == Decision(
        status=TRAINED, actions=(DeleteJob(),)
    )


# The second life: two workers, suspended and resumed, until one of them fails for good.

PAIR = job(workers(2))
TWO = '{"worker":["mnist-worker-0.mnist.lab.svc:2222","mnist-worker-1.mnist.lab.svc:2222"]}'
BOTH = Status(
    phase="Running",
    conditions=(MADE, RUNS),
    replica_statuses={"Worker": shown("worker", "0/2", active=2)},
    cluster=Cluster(services="shared", dialect="tf2"),
    start_time=NOW,
    observed_generation=1,
)
SUSPENDED = replace(
    BOTH,
    phase="Suspended",
    conditions=(
        MADE,
        since(at(20), "Running", "TFJob mnist is suspended.", "False", "TFJobSuspended"),
        since(at(20), "Suspended", "TFJob mnist is suspended."),
    ),
    replica_statuses={"Worker": shown("worker", "0/2")},
)
RESUMED = replace(
    SUSPENDED,
    phase="Created",
    conditions=(
        *SUSPENDED.conditions[:2],
        since(at(40), "Suspended", "TFJob mnist is resumed.", "False", "TFJobResumed"),
    ),
    start_time=at(40),
)


def test_a_suspended_job_loses_its_pods_and_its_service() -> None:
    resting = job(workers(2), suspend=True)
    pods = [pod("worker-0"), pod("worker-1")]
    assert seen(resting, *pods, status=BOTH, seconds=20) == Decision(
        status=SUSPENDED,
        actions=(
            Delete("Pod", "mnist-worker-0", "worker-0#0"),
            Delete("Pod", "mnist-worker-1", "worker-1#0"),
            Delete("Service", "mnist"),
        ),
        events=(Event("Normal", "TFJobSuspended", "TFJob mnist is suspended."),),
    )


def test_a_resumed_job_gets_them_back() -> None:
    assert look(PAIR, status=SUSPENDED, now=at(40)) == Decision(
        status=RESUMED,
        actions=(
            Create(service()),
            Create(manifest("worker", 0, TWO, master=True)),
            Create(manifest("worker", 1, TWO)),
        ),
        events=(Event("Normal", "TFJobResumed", "TFJob mnist is resumed."),),
    )


def test_a_worker_that_fails_for_good_fails_the_job_with_its_last_words() -> None:
    broken = pod("worker-1", "Failed", exit_code=1, message="Traceback\nKeyError: 'labels'\n")
    text = (
        "TFJob lab/mnist has failed because 1 Worker replica(s) failed: "
        "worker-1 exited with code 1: Traceback\nKeyError: 'labels'"
    )
    assert seen(PAIR, pod("worker-0"), broken, status=BOTH, seconds=80) == Decision(
        status=replace(
            BOTH,
            phase="Failed",
            conditions=(MADE, replace(RUNS, status="False"), since(at(80), "Failed", text)),
            replica_statuses={"Worker": shown("worker", "0/2, 1 failed", active=1, failed=1)},
            failure=Failure(cause="TaskFailed", task="worker-1", exit_code=1, message=text),
            endings=(
                Ending(
                    task="worker-1",
                    attempt=1,
                    finished=at(80),
                    exit_code=1,
                    message="Traceback\nKeyError: 'labels'",
                ),
            ),
            completion_time=at(80),
        ),
        events=(
            Event("Normal", "ExitedWithCode", "Pod: lab.mnist-worker-1 exited with code 1"),
            Event("Warning", "TFJobFailed", text),
        ),
    )
