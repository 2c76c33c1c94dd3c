"""The planner's pods as they run here."""

from pathlib import Path

from tfyard.local.machine import Machine
from tfyard.model import Task
from tfyard.node.containers import Objects, environment
from tfyard.node.volumes import Volumes

TASK = Task("Worker", 0)
ENV = [{"name": "A", "value": "job"}, {"name": "B", "value": "$(A)!"}]
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "tensorflow", "env": ENV}]}}


def here(folder: Path, **fields: object) -> Machine:
    return Machine(directory=folder, volumes=Volumes(folder, {}, Objects()), base_env={}, **fields)


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


def test_the_code_is_mounted_and_the_working_directory(tmp_path: Path) -> None:
    machine = here(tmp_path, code=(tmp_path / "mine", "/code"))
    pod = machine.adapted(POD, TASK)
    (container,) = pod["spec"]["containers"]
    assert container["workingDir"] == str(tmp_path / "mine")
    mounts = machine.volumes.mounts(pod, container, tmp_path)
    assert mounts == ((str(tmp_path / "mine"), "/code", False),)


def test_the_planners_pod_itself_is_not_changed(tmp_path: Path) -> None:
    here(tmp_path, variables={"A": "1"}, code=(tmp_path, "/code")).adapted(POD, TASK)
    assert POD["spec"] == {"containers": [{"name": "tensorflow", "env": ENV}]}
    assert ENV[0] == {"name": "A", "value": "job"}
