"""Users who may read only the job: its status still explains it, and nothing is concluded from objects that cannot
be read."""

from typing import Any

from tests.overview.situations import ago, condition, job, status, why
from tfyard.model import Ending, Role, RoleStatus
from tfyard.model.names import QUEUE_NAME
from tfyard.overview.evidence import Evidence, Unreadable

NO_PODS, NO_EVENTS = Unreadable("you may not list pods"), Unreadable("you may not list events")
OOM = Ending(task="worker-0", attempt=1, exit_code=137, reason="OOMKilled", finished=ago(minutes=9))
NFS: dict[str, Any] = {
    "containers": [{"name": "tensorflow", "image": "example/Train"}],
    "volumes": [{"name": "data", "nfs": {"server": "files", "path": "/data"}}],
}


def unseen(*conditions: Any, active: int = 2, **fields: Any) -> Evidence:
    """A job whose pods and events may not be read."""
    memory = status(
        *conditions, replica_statuses={"Worker": RoleStatus(active=active)}, endings=fields.pop("endings", ())
    )
    return job(status=memory, **{"pods": NO_PODS, "events": NO_EVENTS, **fields})


def test_a_job_whose_status_says_that_all_of_it_runs_is_fine() -> None:
    answer = why(unseen(condition("Running")))
    assert (answer.code, answer.state) == (0, "fine")
    assert answer.sentence == "train has run for 5m00s with all 2 tasks; nothing blocks it"
    assert answer.unreadable == ("pods: you may not list pods", "events: you may not list events")


def test_a_job_whose_status_says_that_half_of_it_runs_is_unknown() -> None:
    answer = why(unseen(condition("Created"), active=1))
    assert (answer.code, answer.causes) == (4, ())
    assert answer.sentence == "1 of 2 tasks of train run, and nothing tells what the others wait for"


def test_the_end_of_an_earlier_attempt_is_no_cause_of_a_job_that_runs_again() -> None:
    answer = why(unseen(condition("Running"), endings=(OOM,)))
    assert [(cause.kind, cause.is_past) for cause in answer.causes] == [("out-of-memory", True)]
    assert answer.code == 0
    assert why(unseen(condition("Restarting"), endings=(OOM,), active=1)).code == 3


def test_a_pod_that_crashes_again_and_again_counts_as_active_and_does_not_run() -> None:
    text = "worker-0: exits with code 137 again and again"
    answer = why(unseen(condition("Waiting", "CrashLoop", text), endings=(OOM,)))
    assert (answer.code, answer.causes[0].kind, answer.causes[0].is_past) == (3, "out-of-memory", False)


def noted(reason: str, message: str) -> Evidence:
    roles = (Role(name="Worker", replicas=2, template={"spec": NFS}),)
    return unseen(condition("Waiting", reason, f"worker-0: {message}"), active=0, roles=roles)


def test_what_the_operator_noted_is_completed_from_the_spec_of_the_job() -> None:
    answer = why(noted("ImagePull", "InvalidImageName: invalid reference format"))
    assert answer.sentence == "worker-0 cannot pull example/Train: the name is not valid"
    message = (
        'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32\nOutput: access denied'
    )
    assert "cannot mount volume data (nfs files:/data)" in why(noted("Mount", message)).sentence


def test_a_queue_whose_workloads_may_not_be_listed() -> None:
    queued = {"labels": {QUEUE_NAME: "team"}, "spec": {"runPolicy": {"suspend": True}}}
    answer = why(unseen(workloads=Unreadable("you may not list workloads"), **queued))
    assert (answer.code, answer.causes[0].kind) == (3, "queue")
    assert (
        answer.sentence
        == "it waits in queue team; only its Workload has the reason, and you may not list workloads"
    )
