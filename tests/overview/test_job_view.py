from datetime import UTC, datetime, timedelta

from tfyard.model import Condition, Failure, Job, Role, RoleStatus, Status
from tfyard.model.summary import JobSummary, RecordedEvent
from tfyard.overview.attempts import Attempt, gpu_hours, merged, row
from tfyard.overview.job_view import JobView, ToldEvent, lines, outputs, sentence

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
CONTAINER = {
    "name": "tensorflow",
    "image": "example/mnist:1",
    "command": ["python", "train.py"],
    "resources": {"limits": {"nvidia.com/gpu": 2, "memory": "8Gi"}},
    "volumeMounts": [
        {"name": "out", "mountPath": "/out"},
        {"name": "data", "mountPath": "/d", "readOnly": True},
    ],
}
VOLUMES = [
    {"name": "out", "persistentVolumeClaim": {"claimName": "results"}},
    {"name": "data", "nfs": {"server": "files", "path": "/data"}},
]
JOB = Job(
    name="mnist",
    roles=(
        Role(name="Worker", replicas=2, template={"spec": {"containers": [CONTAINER], "volumes": VOLUMES}}),
    ),
)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def view(status: Status, **more: object) -> JobView:
    summary = JobSummary(name="mnist", namespace="ml", job="mnist", created=ago(61), status=status)
    return JobView(summary=summary, title="TFJob of kubeflow.org/v1", job=JOB, **more)  # type: ignore[arg-type]


def test_an_attempt_tells_how_long_it_waited_was_prepared_and_ran() -> None:
    attempt = Attempt(
        task="worker-0",
        state="Running",
        created=ago(60),
        scheduled=ago(50),
        started=ago(45),
        node="gpu-1",
    )
    assert row(attempt, NOW) == ("worker-0", "1", "Running", "10m00s", "5m00s", "45m00s", "", "", "gpu-1")


def test_a_pod_without_a_node_still_waits() -> None:
    cells = row(Attempt(task="worker-0", state="Waiting", created=ago(3), reason="Unschedulable"), NOW)
    assert cells == ("worker-0", "1", "Waiting", "3m00s", "", "", "", "Unschedulable", "")


def test_a_task_whose_init_container_failed_names_it_and_is_prepared_no_longer() -> None:
    failed = Attempt(
        task="worker-0",
        created=ago(60),
        scheduled=ago(50),
        started=ago(49),
        finished=ago(45),
        exit_code=3,
        container="prepare",
        reason="Error",
        node="n",
    )
    told = "Error in init container prepare"
    assert row(failed, NOW) == ("worker-0", "1", "Failed", "10m00s", "5m00s", "", "3", told, "n")
    refused = Attempt(task="worker-0", created=ago(60), scheduled=ago(50), reason="OutOfcpu", node="n")
    assert row(refused, NOW)[3:5] == ("10m00s", ""), (
        "its node did not admit it, and it has no time of its end"
    )


def test_attempts_stand_in_the_order_of_the_tasks_and_what_is_seen_wins() -> None:
    remembered = [Attempt(task="worker-0", exit_code=1), Attempt(task="chief-0", exit_code=1)]
    seen = [
        Attempt(task="worker-0", attempt=2, state="Running"),
        Attempt(task="worker-0", node="n", exit_code=1),
    ]
    all_attempts = merged(remembered, seen, ["chief-0", "worker-0"])
    assert [(each.task, each.attempt, each.node) for each in all_attempts] == [
        ("chief-0", 1, ""),
        ("worker-0", 1, "n"),
        ("worker-0", 2, ""),
    ]


def test_the_reason_of_an_end_is_taken_from_the_status_if_the_pod_has_none() -> None:
    remembered = [Attempt(task="worker-0", exit_code=137, reason="OOMKilled", message="killed")]
    (attempt,) = merged(remembered, [Attempt(task="worker-0", exit_code=137, node="n")], ["worker-0"])
    assert (attempt.reason, attempt.message, attempt.node) == ("OOMKilled", "killed", "n")


def test_gpu_hours_are_those_of_all_attempts() -> None:
    attempts = [
        Attempt(task="worker-0", started=ago(120), finished=ago(90)),
        Attempt(task="worker-0", attempt=2, started=ago(60)),
        Attempt(task="worker-1"),
    ]
    assert gpu_hours(JOB, attempts, NOW) == 3.0
    assert gpu_hours(Job(name="a"), attempts, NOW) is None


def test_the_state_is_a_sentence() -> None:
    running = Status(
        phase="Running",
        restarts=1,
        conditions=(Condition("Running", "True", last_transition_time=ago(49)),),
        replica_statuses={"Worker": RoleStatus(ready="1/2")},
    )
    assert sentence(view(running), NOW) == "Running for 49m00s; worker 1/2; 1 restart"
    done = Status(phase="Succeeded", start_time=ago(60), completion_time=ago(10))
    assert sentence(view(done), NOW) == "Succeeded after 50m00s, 10m ago"
    assert sentence(view(Status()), NOW) == "Pending for 1h01m"


def test_outputs_are_writable_mounts_of_volumes_that_outlive_the_pod() -> None:
    assert outputs(JOB) == ["worker: /out is the claim results"]


def test_everything_that_is_known_is_told_with_the_obstacle_on_top() -> None:
    status = Status(
        phase="Failed",
        conditions=(Condition("Waiting", "True", message="worker-1: Back-off pulling image"),),
        failure=Failure(cause="TaskFailed", message="worker-0 failed\nTraceback"),
    )
    event = RecordedEvent(type="Warning", reason="Failed", message="two\nlines", at=ago(2), count=3)
    described = view(
        status,
        attempts=(Attempt(task="worker-0", exit_code=1, message="Traceback\nValueError: boom"),),
        events=(ToldEvent(event=event, about="Pod/mnist-worker-1"),),
        unreadable=("nodes: forbidden",),
    )
    printed = list(lines(described, NOW))
    assert "Waiting:    worker-1: Back-off pulling image" in printed
    assert "Failure:    worker-0 failed" in printed
    assert "    ValueError: boom" in printed
    assert "  2m (x3)     Warning   Failed   Pod/mnist-worker-1   two lines" in printed
    assert printed[-1] == "  nodes: forbidden"


def test_last_words_may_be_about_the_eviction_of_a_pod() -> None:
    taken = Attempt(task="worker-0", reason="EvictionByEvictionAPI", message="Eviction API: evicting")
    again = Attempt(task="worker-0", attempt=2, state="Waiting", message="pulling")
    printed = list(lines(view(Status(), attempts=(taken, again)), NOW))
    assert "    Eviction API: evicting" in printed


def test_events_that_may_not_be_read_are_not_said_to_be_none() -> None:
    assert "Events:" in list(lines(view(Status()), NOW))
    assert "Events:" not in list(lines(view(Status(), unreadable=("events: forbidden",)), NOW))


def test_a_job_that_cannot_be_read_says_why() -> None:
    summary = JobSummary(name="mnist", namespace="ml", job="mnist", created=NOW)
    printed = list(lines(JobView(summary=summary, title="TFJob", problems=("spec: must be a mapping",)), NOW))
    assert "  spec: must be a mapping" in printed
