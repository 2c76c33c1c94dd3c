"""A pod may be deleted by force if nothing of it can run any more."""

import pytest

from tfyard.backends.kubernetes.objects import OUT_OF_SERVICE, why_not_by_force
from tfyard.views.metadata import ObjectMeta
from tfyard.views.objects import NodeSpec, NodeStatus, NodeView
from tfyard.views.pods import (
    ContainerStateTerminated,
    ContainerStatus,
    PodSpec,
    PodStatus,
    PodView,
    State,
    Taint,
    TimedCondition,
)

ENDED, GOES_ON = ContainerStatus(state=State(terminated=ContainerStateTerminated())), ContainerStatus()


def pod(*containers: ContainerStatus, init: tuple[ContainerStatus, ...] = ()) -> PodView:
    status = PodStatus(phase="Running", container_statuses=containers, init_container_statuses=init)
    return PodView(ObjectMeta("train-worker-0"), PodSpec("node-0"), status)


def node(ready: str, *taints: str) -> NodeView:
    conditions = (TimedCondition("MemoryPressure", "False"), TimedCondition("Ready", ready))
    return NodeView(
        ObjectMeta("node-0"), NodeSpec(tuple(map(Taint, taints))), NodeStatus(conditions=conditions)
    )


@pytest.mark.parametrize("where", [None, node("Unknown", "some/taint", OUT_OF_SERVICE)])
def test_a_node_that_is_gone_or_out_of_service_runs_nothing(where: NodeView | None) -> None:
    assert why_not_by_force(pod(GOES_ON), where) == ""


@pytest.mark.parametrize("ready", ["Unknown", "False"])
def test_what_runs_on_a_node_that_does_not_answer_is_not_known(ready: str) -> None:
    reason = why_not_by_force(pod(ENDED), node(ready, "node.kubernetes.io/unreachable"))
    assert reason.startswith("node node-0 is not ready; if the machine is off, ")


def test_a_ready_node_is_believed_that_all_containers_have_ended() -> None:
    assert why_not_by_force(pod(ENDED, ENDED, init=(ENDED,)), node("True")) == ""


@pytest.mark.parametrize(
    "running", [pod(ENDED, GOES_ON), pod(ENDED, init=(GOES_ON,)), pod()], ids=["main", "sidecar", "unknown"]
)
def test_a_ready_node_is_waited_for_while_a_container_may_run(running: PodView) -> None:
    assert "has not reported the end of all its containers" in why_not_by_force(running, node("True"))
