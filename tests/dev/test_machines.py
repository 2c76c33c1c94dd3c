"""Machines that allow less: users who are not root, and systems that refuse network namespaces."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.cluster.clusters import until
from tests.cluster.test_training import CANCER, GOOD_AUC, apply, auc, check_use, said_so_far, wait
from tests.dev.running_box import TestBox
from tests.node.boxes import become, folder_for
from tfyard.controlplane.binaries import locate
from tfyard.node import linux_namespaces

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]
NOBODY = 65534


def as_nobody(binaries: str) -> None:
    """`binaries` may be in a directory of root's: an open one gets them, for this process and its children."""
    if os.getuid() == NOBODY:
        return
    linux_namespaces.unshare_mounts()
    linux_namespaces._mount(str(locate().folder), binaries, "", linux_namespaces.MS_BIND)
    os.environ["HOME"] = binaries
    become(NOBODY)


def without_networks(_binaries: str) -> None:
    """As on a system whose limit of network namespaces is 0."""
    linux_namespaces.unshare(linux_namespaces.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text("0 0 1")
    Path("/proc/self/gid_map").write_text("0 0 1")
    Path("/proc/sys/user/max_net_namespaces").write_text("0")


@contextmanager
def started(folder: Path, how: str) -> Iterator[tuple[TestBox, str]]:
    """A cluster that another kind of process starts, and the output of `up`."""
    box = TestBox(folder)
    (folder / "bin").mkdir()
    binaries = str(folder / "bin" if how == "as_nobody" else locate().folder)
    command = [sys.executable, "-m", __name__, how, "dev", "up", "--binaries", binaries]
    environ = {**os.environ, **box.environ}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        yield box, done.stdout
    finally:
        assert box.dev("down").code == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("how", ["as_nobody", "without_networks"])
def test_the_cancer_job_trains(how: str) -> None:
    user = NOBODY if how == "as_nobody" else 0
    with folder_for(user) as folder:
        with started(folder, how) as (box, said):
            assert ("pods share the network of this machine" in said) == (how == "without_networks")
            assert Path(f"/proc/{box.pid}").stat().st_uid == user
            apply(box, str(CANCER))
            until(lambda: "Step: 100," in said_so_far(box, "cancer-chief-0"), 120)
            check_use(box)
            wait(box, "tfjob/cancer")
            assert auc(box.kubectl("logs", "cancer-chief-0")) >= GOOD_AUC
        assert not box.folder.path.exists()


if __name__ == "__main__":
    how = {"as_nobody": as_nobody, "without_networks": without_networks}[sys.argv[1]]
    how(sys.argv[-1])
    from tfyard.cli.main import main

    sys.argv = ["tfyard", *sys.argv[2:]]
    main()
