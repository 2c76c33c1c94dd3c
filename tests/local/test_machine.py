"""The planner's pods as they run here."""

from pathlib import Path

import pytest

from tfyard.backends.local.node import FileSources
from tfyard.local.machine import CodeMount, Machine
from tfyard.model import Task
from tfyard.node.containers import environment
from tfyard.node.pod_data import Objects

TASK = Task("Worker", 0)
ENV = [{"name": "A", "value": "job"}, {"name": "B", "value": "$(A)!"}]
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "tensorflow", "env": ENV}]}}


def here(folder: Path, **fields: object) -> Machine:
    return Machine(directory=folder, sources=FileSources(folder), base_env={}, **fields)


def env(machine: Machine) -> dict[str, str]:
    pod = machine.adapted(POD, TASK)
    return environment(pod, pod["spec"]["containers"][0], Objects())


def test_variables_of_the_command_line_win_and_are_not_expanded(tmp_path: Path) -> None:
    assert env(here(tmp_path)) == {"A": "job", "B": "job!"}
    given = {"A": "$(B)$$", "C": "new"}
    assert env(here(tmp_path, variables=given)) == {"A": "$(B)$$", "B": "$(B)$$!", "C": "new"}


def test_a_task_sees_its_gpus(tmp_path: Path) -> None:
    assert env(here(tmp_path, gpus={TASK: ("2", "3")}))["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert "CUDA_VISIBLE_DEVICES" not in env(here(tmp_path, gpus={Task("Worker", 1): ("2",)}))


def test_what_the_job_or_the_command_line_says_about_gpus_wins(tmp_path: Path) -> None:
    shared = {TASK: ("2",), Task("Worker", 1): ("2",)}
    assert env(here(tmp_path, gpus=shared))["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    variables = {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}
    given = [{"name": name, "value": value} for name, value in variables.items()]
    pod = {"metadata": {}, "spec": {"containers": [{"name": "tensorflow", "env": given}]}}
    (container,) = here(tmp_path, gpus=shared).adapted(pod, TASK)["spec"]["containers"]
    assert container["env"] == [*given, {"name": "CUDA_VISIBLE_DEVICES", "value": "2"}]
    assert env(here(tmp_path, gpus=shared, variables=variables))["TF_FORCE_GPU_ALLOW_GROWTH"] == "false"


def test_the_code_keeps_its_own_path_and_is_mounted_too(tmp_path: Path) -> None:
    machine = here(tmp_path, code=CodeMount(tmp_path / "mine", "/code"))
    pod = machine.adapted(POD, TASK)
    (container,) = pod["spec"]["containers"]
    assert container["workingDir"] == str(tmp_path / "mine")
    assert container["volumeMounts"] == [{"name": "tfyard-code", "mountPath": "/code"}]
    assert pod["spec"]["volumes"] == [{"name": "tfyard-code", "hostPath": {"path": str(tmp_path / "mine")}}]


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param({"workingDir": "/code"}, "{}", id="its folder"),
        pytest.param({"workingDir": "/code/src"}, "{}/src", id="a folder in it"),
        pytest.param({"workingDir": "/data"}, "/data", id="another folder"),
        pytest.param({"workingDir": "/code", "command": ["python", "/codes/a"]}, "{}", id="another path"),
        pytest.param({"workingDir": "/code", "command": ["python", "/code/a"]}, "/code", id="in the command"),
        pytest.param({"workingDir": "/code", "args": ["--in=/code/x"]}, "/code", id="in an argument"),
        pytest.param(
            {"workingDir": "/code", "env": [{"name": "PYTHONPATH", "value": "/lib:/code"}]},
            "/code",
            id="in a variable",
        ),
        pytest.param(
            {"workingDir": "/code", "volumeMounts": [{"name": "d", "mountPath": "/code/d"}]},
            "/code",
            id="by a mount",
        ),
    ],
)
def test_the_mount_path_is_used_where_the_pod_mentions_it(
    tmp_path: Path, container: dict[str, object], expected: str
) -> None:
    code = CodeMount(tmp_path, "/code")
    assert code.working_directory(str(container["workingDir"]), [{}, container]) == expected.format(tmp_path)


def test_a_folder_that_its_own_mount_would_hide_is_used_by_the_mount_path() -> None:
    assert CodeMount(Path("/code/mine"), "/code").working_directory("/code", []) == "/code"


def test_the_planners_pod_itself_is_not_changed(tmp_path: Path) -> None:
    here(tmp_path, variables={"A": "1"}, code=CodeMount(tmp_path, "/code")).adapted(POD, TASK)
    assert POD["spec"] == {"containers": [{"name": "tensorflow", "env": ENV}]}
    assert ENV[0] == {"name": "A", "value": "job"}
