"""Another release of the operator takes over, and back again, while jobs run: nothing twice, nothing lost."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import OperatorProcess, Stage, stage
from tests.controller.test_faults_leadership import count, lease, stands_by, taken_over
from tfyard import __file__ as package
from tfyard import __version__
from tfyard.testing import ControlPlane, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.long]


@pytest.fixture
def other_release(tmp_path: Path) -> str:
    """A folder with this package under another version; there is no older release yet."""
    copy = tmp_path / "other" / "tfyard"
    shutil.copytree(Path(package).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / "__init__.py").read_text()
    assert __version__ in text
    (copy / "__init__.py").write_text(text.replace(__version__, "0.0.9"))
    asked = [sys.executable, "-m", "tfyard", "--version"]
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
    said = subprocess.run(asked, env=environment, check=True, capture_output=True, text=True).stdout
    assert "0.0.9" in said
    return str(copy.parent)


Start = Callable[[str, str], AbstractContextManager[OperatorProcess]]


@pytest.fixture
def start(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Start:
    """`start(name, release)`: the operator of that folder, with its log in NAME.log."""

    @contextmanager
    def operator(name: str, release: str) -> Iterator[OperatorProcess]:
        with monkeypatch.context() as during:
            during.setenv("PYTHONPATH", release)
            made = OperatorProcess(control_plane.kubeconfig, namespace, tmp_path / f"{name}.log")
        try:
            yield made
        finally:
            made.kill()

    return operator


async def restart_one_task(scene: Stage, name: str) -> None:
    """Its worker 1 is killed, and comes back once."""
    before = len(scene.chronicle.pods)
    await scene.kubelet.finish(f"{name}-worker-1", 137)
    await eventually(lambda: count(scene, before + 1))
    await scene.phase("Running", name)


async def begin(scene: Stage, name: str) -> None:
    await scene.submit(tfjob(name, Worker={"replicas": 2, "restartPolicy": "ExitCode"}))
    await scene.phase("Running", name)


async def hand_over(scene: Stage, old: OperatorProcess, changes: int) -> None:
    """As a rolling update does it: the new one is ready before the old one is told to end."""
    holder = (await lease(scene))["holderIdentity"]
    old.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(old.process.wait, 30) == 0
    assert await taken_over(scene, changes) != holder


async def test_an_upgrade_and_its_rollback_touch_no_pod_and_forget_no_restart(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, other_release: str, start: Start
) -> None:
    async with stage(control_plane, namespace) as scene:
        with start("old", other_release) as old:
            await taken_over(scene, 0)
            await begin(scene, "before")
            with start("new", "") as new:
                await stands_by(tmp_path / "new.log")
                await begin(scene, "both")
                await restart_one_task(scene, "before")
                seen = dict(scene.chronicle.pods)
                await hand_over(scene, old, 1)
                await begin(scene, "after")
                await restart_one_task(scene, "both")
                with start("old-again", other_release):
                    await stands_by(tmp_path / "old-again.log")
                    await hand_over(scene, new, 2)
                    await restart_one_task(scene, "after")
                    assert seen.items() <= scene.chronicle.pods.items()
                    await finish(scene, "before", "both", "after")
        assert sorted(scene.chronicle.attempts) == [
            (f"{name}-worker-{index}", attempt)
            for name in ("after", "before", "both")
            for index, attempt in ((0, 0), (1, 0), (1, 1))
        ]
        assert scene.chronicle.twice == []


async def finish(scene: Stage, *names: str) -> None:
    for name in names:
        await scene.kubelet.finish(f"{name}-worker-0")
        status = await scene.phase("Succeeded", name)
        assert status["replicaStatuses"]["Worker"]["restarts"] == 1
