"""A cluster whose disk fills while it runs goes on when there is room again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.cluster.clusters import until
from tests.dev.running_box import running
from tfyard.controlplane.binaries import MissingBinaries, locate
from tfyard.node.linux_namespaces import mount_memory, unshare_mounts

DISK = 330 << 20
"""Size of the disk in bytes; a cluster takes about 130 MB at first."""
REFUSED = 3


@pytest.mark.cluster
@pytest.mark.long
def test_what_was_stored_survives_a_full_disk(tmp_path: Path) -> None:
    try:
        locate()
    except MissingBinaries as problem:
        pytest.skip(str(problem))
    command = [sys.executable, "-m", __name__, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == REFUSED:
        pytest.skip("this system refuses mount namespaces")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == [], "the disk was mounted for that program alone"


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as out:
        try:
            while out.write(bytes(1 << 20)):
                continue
        except OSError:
            return


def main(state: Path) -> None:
    with running(state, "--no-operator") as box:
        box.kubectl("create", "configmap", "before")
        fill(state / "fill")
        found = until(lambda: (told := box.status())["phase"] == "not ready" and told, 180)
        assert "its disk is full" in found["message"], found
        (state / "fill").unlink()
        until(lambda: box.status()["phase"] == "ready", 180)
        assert "configmap/before" in box.kubectl("get", "configmaps", "-o", "name")
        assert box.pid
    assert list(box.folder.path.parent.iterdir()) == []


if __name__ == "__main__":
    place = sys.argv[1]
    try:
        unshare_mounts()
        mount_memory(place, DISK)
    except OSError:
        sys.exit(REFUSED)
    os.chdir("/")
    main(Path(place))
