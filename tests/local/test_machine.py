"""GPUs, ports, volumes and what a process cannot have."""

from pathlib import Path

import pytest

from tfyard.errors import Usage
from tfyard.local import code, gpus
from tfyard.local.ports import FIRST, LAST, Ports
from tfyard.local.shortfalls import shortfalls
from tfyard.model import Code, Job, Role, Task
from tfyard.node.containers import Objects
from tfyard.node.volumes import Volumes, lasting_name


def job(**limits: int) -> Job:
    container = {"name": "tensorflow", "image": "i", "resources": {"limits": limits}}
    template = {"spec": {"containers": [container]}}
    roles = (Role(name="Worker", replicas=2, template=template), Role(name="PS", template=template))
    return Job(name="j", roles=roles)


def test_gpus_go_to_whoever_asks_for_them_while_they_last() -> None:
    asking = job(**{"nvidia.com/gpu": 2})
    shared = gpus.share(asking, ["0", "1", "2"])
    assert shared == {Task("Worker", 0): "0,1", Task("Worker", 1): "2", Task("PS", 0): ""}


def test_visible_gpus_are_those_that_this_process_may_use() -> None:
    assert gpus.visible({"CUDA_VISIBLE_DEVICES": "3,5"}) == ["3", "5"]
    assert gpus.visible({"CUDA_VISIBLE_DEVICES": ""}) == []


def test_ports_lie_below_the_ephemeral_range_and_are_given_once() -> None:
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    one, two = Ports(), Ports()
    tasks = [Task("Worker", i) for i in range(20)]
    first, second = one.take(tasks), two.take(tasks)
    everything = [*first.values(), *second.values()]
    assert len(set(everything)) == 40
    assert all(FIRST <= port < LAST <= ephemeral for port in everything)
    one.release()
    two.release()


def test_storage_of_the_cluster_is_a_directory_that_stays(tmp_path: Path) -> None:
    volumes = Volumes(tmp_path / "lasting", {"given": tmp_path / "mine"}, Objects())
    scratch = tmp_path / "scratch"
    found = {
        "claim": volumes.directory({"name": "a", "persistentVolumeClaim": {"claimName": "c"}}, scratch),
        "nfs": volumes.directory({"name": "b", "nfs": {"server": "10.0.0.5", "path": "/exports/x"}}, scratch),
        "host": volumes.directory({"name": "c", "hostPath": {"path": "/data"}}, scratch),
        "empty": volumes.directory({"name": "d", "emptyDir": {}}, scratch),
        "given": volumes.directory({"name": "given", "emptyDir": {}}, scratch),
    }
    assert found == {
        "claim": tmp_path / "lasting" / "c",
        "nfs": tmp_path / "lasting" / "nfs-10.0.0.5-exports-x",
        "host": Path("/data"),
        "empty": scratch / "d",
        "given": tmp_path / "mine",
    }
    assert lasting_name("azureFile", {"shareName": "tensorflow"}) == "azureFile-tensorflow"


def test_a_mount_of_an_undeclared_volume_is_refused(tmp_path: Path) -> None:
    volumes = Volumes(tmp_path, {}, Objects())
    container = {"volumeMounts": [{"name": "ghost", "mountPath": "/g"}]}
    with pytest.raises(Usage, match="ghost, which is not declared"):
        volumes.mounts({"spec": {}}, container, tmp_path)


def test_what_a_process_cannot_have_is_named_once() -> None:
    container = {"name": "tensorflow", "livenessProbe": {}, "lifecycle": {"preStop": {}}}
    spec = {"containers": [container], "affinity": {"x": {}}, "volumes": [{"name": "disk", "csi": {}}]}
    roles = (Role(name="Worker", template={"spec": spec}), Role(name="PS", template={"spec": spec}))
    assert shortfalls(Job(name="j", roles=roles)) == ["affinity", "lifecycle hooks", "the volume disk"]


def test_a_folder_of_code_must_exist(tmp_path: Path) -> None:
    assert code.folder(Code(kind="folder", source="."), tmp_path, tmp_path / "t") == tmp_path
    with pytest.raises(Usage, match="is not a folder"):
        code.folder(Code(kind="folder", source="absent"), tmp_path, tmp_path / "t")


def test_an_archive_is_unpacked_without_its_outer_folder(tmp_path: Path) -> None:
    import tarfile

    (tmp_path / "repo-main").mkdir()
    (tmp_path / "repo-main" / "train.py").write_text("pass")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "repo-main", "repo-main")
    code.fetch(Code(kind="http", source=(tmp_path / "a.tar.gz").as_uri()), tmp_path / "target")
    assert (tmp_path / "target" / "train.py").read_text() == "pass"


def test_an_archive_that_writes_elsewhere_is_refused(tmp_path: Path) -> None:
    import io
    import tarfile

    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("../../evil.txt"), io.BytesIO())
    with pytest.raises(Usage, match="not a usable"):
        code.fetch(Code(kind="http", source=(tmp_path / "evil.tar").as_uri()), tmp_path / "target")
