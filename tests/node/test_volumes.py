"""Volumes as directories."""

from pathlib import Path

import pytest

from tests.privileges import without_privileges
from tfyard.errors import Usage
from tfyard.model import Manifest
from tfyard.node.containers import Objects
from tfyard.node.volumes import Volumes, lasting_name, remove


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


@pytest.mark.parametrize(
    ("volume", "sub_path"),
    [
        ({"name": "a", "persistentVolumeClaim": {"claimName": "../../root"}}, ""),
        ({"name": "a", "persistentVolumeClaim": {"claimName": "/root"}}, ""),
        ({"name": "../a", "emptyDir": {}}, ""),
        ({"name": "a", "hostPath": {"path": "/data"}}, "../etc"),
        ({"name": "a", "emptyDir": {}}, "/etc"),
    ],
)
def test_a_path_that_leaves_its_volume_is_refused(tmp_path: Path, volume: Manifest, sub_path: str) -> None:
    volumes = Volumes(tmp_path, {}, Objects())
    container = {"volumeMounts": [{"name": volume["name"], "mountPath": "/g", "subPath": sub_path}]}
    with pytest.raises(Usage, match="leaves its volume"):
        volumes.mounts({"spec": {"volumes": [volume]}}, container, tmp_path / "scratch")


@pytest.mark.parametrize("key", ["../key", "/key", "a/../../key"])
def test_a_key_of_a_config_map_that_is_a_path_out_of_it_is_refused(tmp_path: Path, key: str) -> None:
    volumes = Volumes(tmp_path / "lasting", {}, Objects({"c": {key: "x"}}))
    pod = {"spec": {"volumes": [{"name": "a", "configMap": {"name": "c"}}]}}
    with pytest.raises(Usage, match="leaves its volume"):
        volumes.check(pod)
    with pytest.raises(Usage, match="leaves its volume"):
        volumes.make(pod, {}, tmp_path / "scratch")
    assert [path.name for path in tmp_path.rglob("key")] == []


def test_a_directory_without_any_rights_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o777)
    with without_privileges():
        deep = Path("volume", "closed", "deep")
        deep.mkdir(parents=True)
        Path("volume", "link").symlink_to("/nowhere")
        for path in (deep, deep.parent, deep.parent.parent):
            path.chmod(0)
        remove(Path("volume"))
    assert list(tmp_path.iterdir()) == []
