"""A lock shows whether a cluster runs, and files of an earlier one do no harm."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tfyard.dev import folder as module
from tfyard.dev.folder import BoxFolder, ReportedState, UpOptions, every_box
from tfyard.errors import Usage

HOLDER = """
import sys, time
from pathlib import Path
from tfyard.dev.folder import BoxFolder
print(BoxFolder(Path(sys.argv[1])).lock(), flush=True)
time.sleep(1000)
"""
FORKS = HOLDER.replace(
    "time.sleep(1000)",
    "import os\nif pid := os.fork():\n    print(pid, flush=True)\n    os._exit(0)\ntime.sleep(1000)",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoxFolder:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = BoxFolder.of("box")
    folder.prepare(UpOptions(name="box", pretend={"nvidia.com/gpu": "4"}))
    return folder


@contextmanager
def holder(folder: BoxFolder, program: str = HOLDER) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", program, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "True\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_folder_is_the_state_directory_of_the_user(
    folder: BoxFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folder.path == tmp_path / "tfyard" / "dev" / "box"
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in every_box()] == ["box"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "nowhere"))
    assert every_box() == []


@pytest.mark.parametrize("name", ["", "Box", "../box", "a/b", "x" * 64])
def test_a_name_that_cannot_be_a_context_or_a_folder_is_refused(name: str) -> None:
    with pytest.raises(Usage, match="lower-case letters"):
        BoxFolder.of(name)


@pytest.mark.processes
def test_a_cluster_runs_as_long_as_its_process_holds_the_lock(folder: BoxFolder) -> None:
    assert folder.holder() is None
    with holder(folder) as process:
        assert folder.holder() == process.pid
        assert folder.lock() is False
        process.kill()
        process.wait()
        assert folder.holder() is None


@pytest.mark.processes
def test_a_child_of_a_killed_cluster_does_not_make_it_look_alive(folder: BoxFolder) -> None:
    with holder(folder, FORKS) as process:
        process.wait()
        assert folder.holder() is None
        assert process.stdout
        child = int(process.stdout.readline())
        assert Path(f"/proc/{child}").exists()
        os.kill(child, signal.SIGKILL)


def test_files_of_an_earlier_cluster_are_removed_except_for_its_data(folder: BoxFolder) -> None:
    folder.write(ReportedState(phase="ready"))
    folder.kubeconfig.write_text("old")
    (folder.data / "etcd").mkdir()
    folder.prepare(UpOptions(name="box"))
    assert (folder.state(), folder.settings()) == (None, UpOptions(name="box"))
    assert not folder.kubeconfig.exists()
    assert (folder.data / "etcd").exists()


def test_files_of_another_version_are_as_good_as_none(folder: BoxFolder) -> None:
    (folder.path / "state.json").write_text('{"phase": "dreaming"}')
    (folder.path / "settings.json").write_text("half a fi")
    assert folder.state() is None
    assert folder.settings() == UpOptions(name="box")


def test_nothing_is_left_even_of_read_only_directories(folder: BoxFolder) -> None:
    deep = folder.data / "claims" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    deep.chmod(0o500)
    deep.parent.chmod(0o500)
    with folder.exclusively(print):
        folder.remove(keep_data=False)
    assert list(folder.path.parent.iterdir()) == []


def test_two_commands_wait_for_each_other(folder: BoxFolder) -> None:
    said: list[str] = []
    program = (
        "import sys; from pathlib import Path; from tfyard.dev.folder import BoxFolder\n"
        "with BoxFolder(Path(sys.argv[1])).exclusively(lambda text: print(text, flush=True)): print('mine')"
    )
    with folder.exclusively(said.append):
        command = [sys.executable, "-c", program, str(folder.path)]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert other.stdout
        assert other.stdout.readline() == "waiting for another command that is starting or ending box\n"
        folder.remove(keep_data=False)
    assert other.communicate(timeout=120)[0] == "mine\n"
    assert said == []
    assert list(folder.path.parent.iterdir()) == []


WRITER = "import sys, os\nfor line in sys.stdin: os.write(1, line.encode()); os.write(2, b'.')"


def test_a_log_that_is_too_long_begins_again_though_it_is_being_written(
    folder: BoxFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_BYTES", 1000)
    log = folder.logs / "etcd.log"
    command, pipe = [sys.executable, "-c", WRITER], subprocess.PIPE
    with (
        log.open("ab") as file,
        subprocess.Popen(command, stdin=pipe, stdout=file, stderr=pipe, bufsize=0) as writer,
    ):
        assert writer.stdin
        assert writer.stderr
        for number in range(500):
            writer.stdin.write(b"line %d\n" % number)
            writer.stderr.read(1)
            folder.rotate_logs()
            assert sum(path.stat().st_size for path in folder.logs.iterdir()) <= 2020
        writer.stdin.close()
    kept = (folder.logs / "etcd.log.1").read_text()
    both = (kept + log.read_text()).splitlines()
    assert both[-1] == "line 499"
    assert both[1:] == [f"line {number}" for number in range(500 - len(both) + 1, 500)], "none is missing"


FULL = """
import sys
from pathlib import Path
from tfyard.dev.folder import BoxFolder, LOG_BYTES
from tfyard.node.linux_namespaces import mount_memory, unshare_mounts
folder = BoxFolder(Path(sys.argv[1]))
folder.logs.mkdir(parents=True, exist_ok=True)
unshare_mounts()
mount_memory(str(folder.logs), LOG_BYTES + (2 << 20))
log = folder.logs / "etcd.log"
log.write_bytes(b"x" * (LOG_BYTES + (1 << 20)))
folder.rotate_logs()
print([path.name for path in folder.logs.iterdir()], log.stat().st_size)
"""


def test_a_log_on_a_full_disk_is_not_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path / "box")]
    done = subprocess.run(command, capture_output=True, text=True)
    if "unshare" in done.stderr:
        pytest.skip("this system refuses mount namespaces")
    assert done.stdout == "['etcd.log'] 0\n", done.stderr
