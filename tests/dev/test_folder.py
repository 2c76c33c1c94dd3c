"""Whether a box runs is told by a lock, and what an earlier one left is no obstacle."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tfyard.dev.folder import BoxFolder, Settings, State, every_box
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
def folder(tmp_path: Path) -> BoxFolder:
    folder = BoxFolder.of("box", {"XDG_STATE_HOME": str(tmp_path)})
    folder.prepare(Settings(name="box", pretend={"nvidia.com/gpu": "4"}))
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


def test_a_folder_is_the_state_directory_of_the_user(folder: BoxFolder, tmp_path: Path) -> None:
    assert folder.path == tmp_path / "tfyard" / "dev" / "box"
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in every_box({"XDG_STATE_HOME": str(tmp_path)})] == ["box"]
    assert every_box({"XDG_STATE_HOME": str(tmp_path / "nowhere")}) == []


@pytest.mark.parametrize("name", ["", "Box", "../box", "a/b", "x" * 64])
def test_a_name_that_cannot_be_a_context_or_a_folder_is_refused(name: str) -> None:
    with pytest.raises(Usage, match="lower-case letters"):
        BoxFolder.of(name)


@pytest.mark.processes
def test_a_box_runs_as_long_as_its_process_holds_the_lock(folder: BoxFolder) -> None:
    assert folder.holder() is None
    with holder(folder) as process:
        assert folder.holder() == process.pid
        assert folder.lock() is False
        process.kill()
        process.wait()
        assert folder.holder() is None


@pytest.mark.processes
def test_a_child_of_a_killed_box_does_not_make_it_look_alive(folder: BoxFolder) -> None:
    with holder(folder, FORKS) as process:
        process.wait()
        assert folder.holder() is None
        assert process.stdout
        child = int(process.stdout.readline())
        assert Path(f"/proc/{child}").exists()
        os.kill(child, signal.SIGKILL)


def test_what_an_earlier_box_left_goes_except_for_its_data(folder: BoxFolder) -> None:
    folder.write(State(phase="ready"))
    folder.kubeconfig.write_text("old")
    (folder.data / "etcd").mkdir()
    folder.prepare(Settings(name="box"))
    assert (folder.state(), folder.settings()) == (None, Settings(name="box"))
    assert not folder.kubeconfig.exists()
    assert (folder.data / "etcd").exists()


def test_files_of_another_version_are_as_good_as_none(folder: BoxFolder) -> None:
    (folder.path / "state.json").write_text('{"phase": "dreaming"}')
    (folder.path / "settings.json").write_text("half a fi")
    assert folder.state() is None
    assert folder.settings() == Settings(name="box")


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
    assert other.communicate(timeout=20)[0] == "mine\n"
    assert said == []
    assert list(folder.path.parent.iterdir()) == []
