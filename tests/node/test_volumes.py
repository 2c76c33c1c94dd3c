"""Volumes as directories."""

from pathlib import Path

import pytest

from tests.privileges import without_privileges
from tfyard.backends.local.node import FileSources
from tfyard.errors import Usage
from tfyard.model import Manifest
from tfyard.node.pod_data import Objects
from tfyard.node.volumes import PodVolumes, VolumeError, lasting_name, remove


def pod_volumes(folder: Path, *declared: Manifest, **fields: object) -> PodVolumes:
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"volumes": [*declared]}}
    return PodVolumes(FileSources(folder / "lasting", **fields), pod, folder / "scratch", may_mount=False)


async def test_storage_of_the_cluster_is_a_directory_that_stays(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    declared: dict[str, Manifest] = {
        "claim": {"persistentVolumeClaim": {"claimName": "c"}},
        "nfs": {"nfs": {"server": "10.0.0.5", "path": "/exports/x"}},
        "host": {"hostPath": {"path": str(tmp_path / "data")}},
        "absent": {"hostPath": {"path": str(tmp_path / "driver")}},
        "made": {"hostPath": {"path": str(tmp_path / "made"), "type": "DirectoryOrCreate"}},
        "empty": {"emptyDir": {}},
        "given": {"emptyDir": {}},
    }
    volumes = pod_volumes(
        tmp_path,
        *({"name": name, **source} for name, source in declared.items()),
        given={"given": tmp_path / "mine"},
    )
    await volumes.make()
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in declared]
    found = volumes.mounts({"volumeMounts": mounts}, {}, make=False)
    assert {path: Path(source).relative_to(tmp_path) for source, path, _ in found} == {
        "/claim": Path("lasting/c"),
        "/nfs": Path("lasting/nfs-10.0.0.5-exports-x"),
        "/host": Path("data"),
        "/absent": Path("scratch/absent"),
        "/made": Path("made"),
        "/empty": Path("scratch/empty"),
        "/given": Path("mine"),
    }
    assert all(Path(source).is_dir() for source, _, _ in found)
    assert not (tmp_path / "driver").exists(), "drivers of another machine are not created here"
    assert lasting_name("azureFile", {"shareName": "tensorflow"}) == "azureFile-tensorflow"


async def test_a_mount_of_an_undeclared_volume_is_refused(tmp_path: Path) -> None:
    container = {"volumeMounts": [{"name": "ghost", "mountPath": "/g"}]}
    with pytest.raises(Usage, match="ghost, which is not declared"):
        pod_volumes(tmp_path).mounts(container, {}, make=False)


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
async def test_a_path_that_leaves_its_volume_is_refused(
    tmp_path: Path, volume: Manifest, sub_path: str
) -> None:
    volumes = pod_volumes(tmp_path, volume)
    container = {"volumeMounts": [{"name": volume["name"], "mountPath": "/g", "subPath": sub_path}]}

    async def mount() -> None:
        await volumes.find()
        volumes.mounts(container, {}, make=True)

    with pytest.raises((Usage, VolumeError), match="leaves its volume"):
        await mount()


async def test_a_sub_path_is_expanded_only_where_it_is_an_expression(tmp_path: Path) -> None:
    volumes = pod_volumes(tmp_path, {"name": "a", "emptyDir": {}})
    await volumes.find()
    mounts = [{"name": "a", "mountPath": f"/{kind}", kind: "$(POD)/x"} for kind in ("subPath", "subPathExpr")]
    found = volumes.mounts({"volumeMounts": mounts}, {"POD": "worker-1"}, make=True)
    assert [source for source, _, _ in found] == [
        str(tmp_path / "scratch/a/$(POD)/x"),
        str(tmp_path / "scratch/a/worker-1/x"),
    ]
    assert (tmp_path / "scratch/a/worker-1/x").is_dir()


@pytest.mark.parametrize("key", ["../key", "/key", "a/../../key"])
async def test_a_key_of_a_config_map_that_is_a_path_out_of_it_is_refused(tmp_path: Path, key: str) -> None:
    declared = {"name": "a", "configMap": {"name": "c"}}
    volumes = pod_volumes(tmp_path, declared, known=Objects({"c": {key: "x"}}))
    await volumes.find()
    with pytest.raises(VolumeError, match="leaves its volume"):
        await volumes.check()
    with pytest.raises(VolumeError, match="leaves its volume"):
        await volumes.make()
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
