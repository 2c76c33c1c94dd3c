"""What a process cannot have."""

import pytest

from tfyard.local.shortfalls import excess, ignored, shortfalls
from tfyard.model import Job, Role, RunPolicy

GIB = 1 << 30


def test_what_a_process_cannot_have_is_named_once() -> None:
    container = {"name": "tensorflow", "livenessProbe": {}, "lifecycle": {"preStop": {}}}
    spec = {"containers": [container], "affinity": {"x": {}}, "volumes": [{"name": "disk", "csi": {}}]}
    roles = (Role(name="Worker", template={"spec": spec}), Role(name="PS", template={"spec": spec}))
    assert shortfalls(Job(name="j", roles=roles)) == ["affinity", "lifecycle hooks", "the volume disk"]


def test_what_is_about_a_queue_is_said_to_be_ignored() -> None:
    policy = RunPolicy(suspend=True, managed_by="kueue.x-k8s.io/multikueue")
    told = ["suspend (the job starts at once)", "managedBy kueue.x-k8s.io/multikueue"]
    assert list(ignored(Job(name="j", run_policy=policy))) == told


@pytest.mark.parametrize(
    ("limits", "distributed", "told"),
    [
        (
            {"memory": "450Gi"},
            False,
            ["the tasks may use 900.0 GiB of memory, and this machine has 23.0 GiB"],
        ),
        ({"memory": "10Gi"}, False, []),
        ({"nvidia.com/gpu": 2}, True, ["the tasks request 4 GPUs, and this machine has 2"]),
        ({"nvidia.com/gpu": 1}, True, []),
        (
            {"nvidia.com/gpu": 1},
            False,
            ["the tasks request 2 GPUs, and each task sees all 2; --gpus distributes them"],
        ),
    ],
)
def test_more_than_the_machine_has_is_named(
    limits: dict[str, object], distributed: bool, told: list[str]
) -> None:
    container = {"name": "tensorflow", "resources": {"limits": limits}}
    roles = (Role(name="Worker", replicas=2, template={"spec": {"containers": [container]}}),)
    assert list(excess(Job(name="j", roles=roles), 23 * GIB, 2, gpus_distributed=distributed)) == told
