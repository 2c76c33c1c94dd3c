"""Nothing outlives whoever asked for it, however the asker ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfyard.testing import ControlPlane, Process, ProcessFailed

pytestmark = pytest.mark.processes

PATIENCE = 20.0


def removed(path: Path) -> bool:
    end = time.monotonic() + PATIENCE
    while path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return not path.exists()


def gone(pid: int) -> bool:
    return removed(Path(f"/proc/{pid}"))


def read_words(path: Path, timeout: float = PATIENCE) -> list[str]:
    end = time.monotonic() + timeout
    while not (path.exists() and path.read_text().strip()) and time.monotonic() < end:
        time.sleep(0.02)
    return path.read_text().split()


def read_pid(path: Path) -> int:
    return int(read_words(path)[0])


def supervised(tmp_path: Path, script: str) -> Process:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Process("sleeper", ["sh", "-c", script], tmp_path / "log", scratch)


def test_a_command_and_its_daemons_end_when_the_asker_is_killed(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = f"echo $$ > {tmp_path}/command"
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/daemon; exec sleep 1000' & {command}; wait"
    asker = (
        "import sys, time; from pathlib import Path; from tfyard.controlplane.process import Process;"
        f"Process('x', ['sh', '-c', sys.argv[1]], Path('{tmp_path}/log'), Path('{scratch}')).start();"
        "time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", asker, daemon]) as process:
        pids = [read_pid(tmp_path / "command"), read_pid(tmp_path / "daemon")]
        process.kill()
    assert all(gone(pid) for pid in pids)
    assert removed(scratch)


def test_killing_the_supervisor_itself_kills_the_command(tmp_path: Path) -> None:
    process = supervised(tmp_path, "exec sleep 1000")
    process.start()
    assert process._supervisor is not None
    os.kill(process._supervisor.pid, signal.SIGKILL)
    assert gone(process.pid)
    process.kill()


def test_a_daemon_does_not_survive_its_command(tmp_path: Path) -> None:
    process = supervised(tmp_path, f"setsid sh -c 'echo $$ > {tmp_path}/daemon; exec sleep 1000' & sleep 0.5")
    process.start()
    assert gone(read_pid(tmp_path / "daemon"))
    assert not process.running or gone(process.pid)
    process.stop()
    assert process.scratch.exists()


def test_a_paused_process_can_be_stopped(tmp_path: Path) -> None:
    process = supervised(tmp_path, "exec sleep 1000")
    process.start()
    process.pause()
    process.stop()
    assert gone(process.pid)
    with pytest.raises(ProcessFailed, match="sleeper is not running"):
        process.resume()


def test_a_command_that_does_not_exist_is_an_error_with_its_log(tmp_path: Path) -> None:
    process = Process("ghost", ["/no/such/command"], tmp_path / "log", tmp_path)
    with pytest.raises(ProcessFailed, match=r"ghost did not start[\s\S]*No such file"):
        process.start()


@pytest.mark.cluster
def test_killing_pytest_leaves_no_process_and_no_file_of_a_control_plane(
    tmp_path: Path, control_plane: ControlPlane
) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tfyard.testing.fixtures"]\n')
    (tmp_path / "test_it.py").write_text(
        "import time\n"
        "def test_it(controllers):\n"
        "    pids = [str(p.pid) for p in controllers.processes]\n"
        f"    open('{tmp_path}/box', 'w').write(' '.join([str(controllers.folder), *pids]))\n"
        "    time.sleep(1000)\n"
    )
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(control_plane.binaries.folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL) as run:
        folder, *pids = read_words(tmp_path / "box", timeout=120)
        run.kill()
    assert len(pids) == 4
    assert all(gone(int(pid)) for pid in pids)
    assert removed(Path(folder))
