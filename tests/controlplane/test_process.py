"""No process outlives the process that started it, however that one ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tfyard.controlplane.process import SyncProcesses, last_words
from tfyard.testing import ControlPlane, Process, ProcessFailed

pytestmark = pytest.mark.processes

PATIENCE = 60.0


def until(holds: Callable[[], object], timeout: float = PATIENCE) -> bool:
    end = time.monotonic() + timeout
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(holds())


def removed(path: Path) -> bool:
    return until(lambda: not path.exists())


def gone(pid: int) -> bool:
    return removed(Path(f"/proc/{pid}"))


def read_words(path: Path, timeout: float = PATIENCE) -> list[str]:
    until(lambda: path.exists() and path.read_text().strip(), timeout)
    return path.read_text().split()


def read_pid(path: Path) -> int:
    return int(read_words(path)[0])


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[SyncProcesses]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    processes = SyncProcesses(scratch)
    yield processes
    processes.close()
    assert not scratch.exists()


def supervised(processes: SyncProcesses, script: str) -> Process:
    return Process("sleeper", ["sh", "-c", script], processes.scratch.with_name("log"), processes)


# Starts the command that it is given, tells its supervisor's process id, and waits to be killed.
ASKER = """
import sys, time
from pathlib import Path
from tfyard.controlplane.process import Process, SyncProcesses
folder, command = Path(sys.argv[1]), sys.argv[2]
(folder / "scratch").mkdir()
processes = SyncProcesses(folder / "scratch")
Process("x", ["sh", "-c", command], folder / "log", processes).start()
(folder / "supervisor").write_text(str(processes._supervisor.process.pid))
time.sleep(1000)
"""


def test_a_command_and_its_daemons_end_when_its_parent_is_killed(tmp_path: Path) -> None:
    command = f"echo $$ > {tmp_path}/command"
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/daemon; exec sleep 1000' & {command}; wait"
    with subprocess.Popen([sys.executable, "-c", ASKER, str(tmp_path), daemon]) as process:
        pids = [read_pid(tmp_path / "command"), read_pid(tmp_path / "daemon")]
        process.kill()
    assert all(gone(pid) for pid in pids)
    assert removed(tmp_path / "scratch")


def test_killing_the_parent_and_the_supervisor_at_once_kills_the_command(tmp_path: Path) -> None:
    command = f"echo $$ > {tmp_path}/command; exec sleep 1000"
    with subprocess.Popen([sys.executable, "-c", ASKER, str(tmp_path), command]) as process:
        pid, supervisor = read_pid(tmp_path / "command"), read_pid(tmp_path / "supervisor")
        os.kill(supervisor, signal.SIGSTOP)  # it does not even notice that its client is dead
        for victim in (process.pid, supervisor):
            os.kill(victim, signal.SIGKILL)
    assert gone(pid)


def test_killing_the_supervisor_itself_kills_the_command(processes: SyncProcesses) -> None:
    process = supervised(processes, "exec sleep 1000")
    process.start()
    os.kill(processes._supervisor.process.pid, signal.SIGKILL)
    assert gone(process.pid)
    process.kill()
    with pytest.raises(ProcessFailed, match="sleeper did not start: its supervisor has ended"):
        process.start()


def test_a_daemon_does_not_survive_its_command(processes: SyncProcesses, tmp_path: Path) -> None:
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/daemon; exec sleep 1000'"
    script = f"{daemon} & while ! [ -s {tmp_path}/daemon ]; do sleep 0.05; done"
    process, other = (
        supervised(processes, script),
        Process("other", ["sleep", "1000"], tmp_path / "log", processes),
    )
    other.start()
    process.start()
    assert gone(read_pid(tmp_path / "daemon"))
    assert not process.running or gone(process.pid)
    process.stop()
    assert processes.scratch.exists()
    assert other.running


def test_a_command_that_ends_at_once_was_started(processes: SyncProcesses) -> None:
    process = supervised(processes, "true")
    process.start()
    assert gone(process.pid)
    process.start()
    process.stop()


def test_a_paused_process_can_be_stopped(processes: SyncProcesses) -> None:
    process = supervised(processes, "exec sleep 1000")
    process.start()
    process.pause()
    assert until(lambda: "State:\tT (stopped)" in Path(f"/proc/{process.pid}/status").read_text())
    process.stop()
    assert gone(process.pid)
    with pytest.raises(ProcessFailed, match="sleeper is not running"):
        process.resume()


def test_a_command_that_does_not_exist_is_an_error(processes: SyncProcesses) -> None:
    process = Process("ghost", ["/no/such/command"], processes.scratch / "log", processes)
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


def test_the_last_words_of_a_program_are_without_its_stacks() -> None:
    panic = [
        '{"level":"panic","msg":"failed to open database","stacktrace":"' + "x" * 5000 + '"}',
        "panic: failed to open database",
        "",
        "goroutine 84 [running]:",
        "go.uber.org/zap/zapcore.CheckWriteAction.OnWrite(0x2)",
    ]
    said = last_words("\n".join(["starting", *panic]), 15).splitlines()
    assert said[0] == "starting"
    assert said[1].startswith('{"level":"panic","msg":"failed to open database"')
    assert (len(said[1]), said[2:]) == (300, ["panic: failed to open database"])
    again = ["I1116 09:29:49.061041 23726 server.go:1] started again", "no such flag"]
    assert last_words("\n".join([*panic, *again]), 2) == "\n".join(again)
    assert last_words("panic: is a word", 15) == "panic: is a word"
