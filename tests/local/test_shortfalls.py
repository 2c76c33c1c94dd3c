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
    ("memory", "told"),
    [("450Gi", ["the tasks may use 900.0 GiB of memory, and this machine has 23.0 GiB"]), ("10Gi", [])],
)
def test_more_memory_than_the_machine_has_is_named(memory: str, told: list[str]) -> None:
    container = {"name": "tensorflow", "resources": {"limits": {"memory": memory}}}
    roles = (Role(name="Worker", replicas=2, template={"spec": {"containers": [container]}}),)
    assert list(excess(Job(name="j", roles=roles), 23 * GIB)) == told
