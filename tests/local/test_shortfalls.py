"""What a process cannot have, and the packages that it lacks."""

import sys
from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tfyard.local.shortfalls import excess, ignored, missing_packages, shortfalls, unreachable_files
from tfyard.model import Job, Role, RunPolicy
from tfyard.node.interpreter import Interpreter

GIB = 1 << 30
HERE = Interpreter(sys.executable, "")


def test_what_a_process_cannot_have_is_named_once() -> None:
    probes = {"livenessProbe": {"grpc": {"port": 1}}, "readinessProbe": {"exec": {"command": ["true"]}}}
    container = {"name": "tensorflow", **probes, "lifecycle": {"preStop": {}}}
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    volumes = [{"name": "disk", "csi": {}}, {"name": "fast", "emptyDir": {"medium": "Memory"}}]
    volumes += [{"name": "account", **token}]
    spec = {"containers": [container], "affinity": {"x": {}}, "hostname": "h", "volumes": volumes}
    roles = (Role(name="Worker", template={"spec": spec}), Role(name="PS", template={"spec": spec}))
    assert shortfalls(Job(name="j", roles=roles)) == [
        "affinity",
        "the host name",
        "gRPC probes",
        "the volume disk",
        "volumes in memory (they are on the disk)",
        "tokens of service accounts",
    ]


def test_settings_for_a_queue_are_reported_as_ignored() -> None:
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


@pytest.mark.processes
def test_what_the_environment_lacks_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(
        "# ours\n-r other.txt\npytest\nmsgspec>=0.20  # read\npytest<1\nno-such-package[extra]>=2\n"
        "not-on-this-system; sys_platform == 'win32'\nx @ https://a.example/x.whl\n??\n\n"
    )
    fix = f"{sys.executable} -m pip install -r {file}"
    assert [*missing_packages(HERE, file)] == [
        f"requirements: the environment does not have pytest<1, no-such-package[extra]>=2; {fix}"
    ]
    file.write_text("pytest\n")
    assert [*missing_packages(HERE, file)] == []
    (told,) = missing_packages(Interpreter("/absent", ""), file)
    assert "it was not possible" in told


@pytest.mark.processes
def test_a_run_uses_the_active_environment_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "needs.txt").write_text("no-such-package\n")
    (tmp_path / "job.yaml").write_text("name: a\nimage: b\ncode: .\nrequirements: needs.txt\nrun: 'true'\n")
    done = tfyard("run", "job.yaml", "--python", sys.executable, cwd=tmp_path)
    assert done.code == 0
    assert "requirements: the environment does not have no-such-package;" in done.out + done.err
    assert "the active environment is used" in done.out + done.err
