"""Commands on a machine that allows no private view of the disk: paths are rewritten."""

from pathlib import Path

from tfyard.model import Task
from tfyard.node.containers import Objects
from tfyard.node.node import Kubelet, Machine
from tfyard.node.volumes import Volumes

POD = {
    "metadata": {"name": "j-worker-0", "labels": {}, "annotations": {}},
    "spec": {"volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": "c"}}]},
}
CONTAINER = {
    "name": "tensorflow",
    "command": ["python", "train.py", "--out=/out/model"],
    "workingDir": "/code/src",
    "env": [{"name": "LOGS", "value": "/out/logs"}],
    "volumeMounts": [{"name": "out", "mountPath": "/out"}],
}


def kubelet(folder: Path, *, namespaces: bool) -> Kubelet:
    machine = Machine(
        directory=folder,
        volumes=Volumes(folder / "volumes", {}, Objects()),
        objects=Objects(),
        base_env={"PATH": "/bin"},
        code=(str(folder / "mycode"), "/code", False),
    )
    made = Kubelet(machine, lambda _told: None)
    made.processes.namespaces = namespaces
    return made


def test_without_a_private_view_paths_become_the_directories_here(tmp_path: Path) -> None:
    command = kubelet(tmp_path, namespaces=False).command(POD, Task("Worker", 0), CONTAINER, "u")
    assert command.argv == ["python", "train.py", f"--out={tmp_path}/volumes/c/model"]
    assert command.env == {"PATH": "/bin", "LOGS": f"{tmp_path}/volumes/c/logs"}
    assert command.cwd == f"{tmp_path}/mycode/src"
    assert command.mounts == ()


def test_with_a_private_view_paths_stay_the_clusters_own(tmp_path: Path) -> None:
    command = kubelet(tmp_path, namespaces=True).command(POD, Task("Worker", 0), CONTAINER, "u")
    assert command.argv == ["python", "train.py", "--out=/out/model"]
    assert command.cwd == "/code/src"
    assert command.mounts == (
        (f"{tmp_path}/volumes/c", "/out", False),
        (f"{tmp_path}/mycode", "/code", False),
    )
