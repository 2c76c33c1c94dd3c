"""What a process cannot have."""

from pathlib import Path

import pytest

from tfyard.local.shortfalls import excess, ignored, shortfalls, unreachable_files
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


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["python", "train.py"], ["train.py"]),
        (["/bin/sh", "-c", "cd src; python train.py --data=data/x.csv>log"], ["data/x.csv", "train.py"]),
        (["python", "/opt/train.py"], []),
        (["python", "-c", "x" * 5000], []),
    ],
)
def test_files_beside_the_job_file_that_a_command_names_are_unreachable_without_code(
    tmp_path: Path, words: list[str], named: list[str]
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("train.py", "data/x.csv"):
        (tmp_path / name).touch()
    container = {"name": "tensorflow", "command": words}
    job = Job(name="j", roles=(Role(name="Worker", template={"spec": {"containers": [container]}}),))
    assert [text.split()[4].rstrip(":") for text in unreachable_files(job, tmp_path)] == named
