"""Each container has a status of its own; the conditions follow from all of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tfyard.kubelet import pod_status
from tfyard.node.states import ContainerState, Exited, PodState, Running, Waiting
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import ContainerOnNode, PodOnNode, PodSpecOnNode

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = EARLY + timedelta(minutes=1)
POD = PodOnNode(
    ObjectMeta("worker-0", "default", "some-uid", "1"),
    PodSpecOnNode(
        containers=(
            ContainerOnNode("tensorflow", image="train:1"),
            ContainerOnNode("logger", image="logger:1"),
        ),
        init_containers=(ContainerOnNode("fetch"), ContainerOnNode("proxy")),
    ),
)
FETCHED = ContainerState(Exited(0, EARLY, EARLY), is_ready=True)
PROXY = ContainerState(Running(EARLY), is_ready=True)


def status(phase: str, **containers: ContainerState) -> Any:
    state = PodState(phase=phase, ip="10.1.0.2", started=EARLY, changed=LATE, containers=containers)
    patch = pod_status.patch(POD, state)
    assert patch["metadata"] == {"uid": "some-uid"}
    return patch["status"]


def conditions(found: Any) -> dict[str, str]:
    return {each["type"]: each["status"] for each in found["conditions"]}


def test_containers_start_end_and_restart_one_by_one() -> None:
    killed = Exited(137, EARLY, LATE, "OOMKilled", "out of memory")
    again = ContainerState(Running(LATE), restarts=2, is_ready=True, last=killed)
    found = status(
        "Running",
        fetch=FETCHED,
        proxy=PROXY,
        tensorflow=again,
        logger=ContainerState(Waiting("CrashLoopBackOff")),
    )
    tensorflow, logger = found["containerStatuses"]
    assert (tensorflow["restartCount"], tensorflow["ready"], logger["ready"]) == (2, True, False)
    assert tensorflow["state"] == {"running": {"startedAt": "2026-01-01T00:01:00Z"}}
    assert tensorflow["lastState"] == {
        "terminated": {
            "exitCode": 137,
            "reason": "OOMKilled",
            "message": "out of memory",
            "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": "2026-01-01T00:01:00Z",
        }
    }
    assert logger["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
    assert conditions(found)["Initialized"] == "True"
    assert conditions(found)["Ready"] == conditions(found)["ContainersReady"] == "False"


def test_the_status_says_which_generation_of_the_pod_it_is_about() -> None:
    newer = PodOnNode(ObjectMeta("worker-0", "default", "some-uid", "1", generation=2), POD.spec)
    state = PodState(phase="Running", ip="10.1.0.2", started=EARLY, changed=LATE, containers={})
    assert pod_status.patch(newer, state)["status"]["observedGeneration"] == 2


def test_a_pod_that_was_never_admitted_has_no_containers() -> None:
    found = status("Failed")
    assert "containerStatuses" not in found
    assert "initContainerStatuses" not in found


def test_containers_wait_for_init_containers() -> None:
    found = status("Pending", fetch=ContainerState(Running(EARLY)))
    assert conditions(found)["Initialized"] == "False"
    assert "running" in found["initContainerStatuses"][0]["state"]
    rest = [found["initContainerStatuses"][1], *found["containerStatuses"]]
    assert [each["state"]["waiting"]["reason"] for each in rest] == ["PodInitializing"] * 3


def test_a_finished_pod_is_not_ready_because_it_is_complete() -> None:
    done = ContainerState(Exited(0, EARLY, LATE))
    found = status("Succeeded", fetch=FETCHED, proxy=done, tensorflow=done, logger=done)
    reasons = {each["type"]: each.get("reason") for each in found["conditions"]}
    assert conditions(found)["Initialized"] == "True"
    assert reasons["Ready"] == reasons["ContainersReady"] == "PodCompleted"
