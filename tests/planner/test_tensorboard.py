"""The start line of TensorBoard, run by a real shell: in an image that has it, and in one that has not."""

import shutil
import subprocess
import sys
from pathlib import Path

from tfyard.planner.tensorboard import command

SHELL = shutil.which("sh") or "/bin/sh"
OPTIONS = "--logdir /my logs --host 0.0.0.0 --port 6006"


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!{SHELL}\n{text}\n")
    path.chmod(0o755)


def start(folder: Path) -> "subprocess.CompletedProcess[str]":
    """With nothing but what `folder` has on the path."""
    folder.mkdir(exist_ok=True)
    shell, *rest = command("/my logs")
    assert shell == "sh"
    return subprocess.run(
        [SHELL, *rest], env={"PATH": str(folder)}, capture_output=True, text=True, check=False
    )


def test_the_command_is_run_where_there_is_one(tmp_path: Path) -> None:
    program(tmp_path / "bin", "tensorboard", 'echo "serving $@"')
    done = start(tmp_path / "bin")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"serving {OPTIONS}\n", "")


def test_the_package_is_run_where_there_is_no_command(tmp_path: Path) -> None:
    package = tmp_path / "site" / "tensorboard"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "main.py").write_text("import sys; print('module', *sys.argv[1:])")
    program(tmp_path / "bin", "python", f'PYTHONPATH={package.parent} exec {sys.executable} "$@"')
    done = start(tmp_path / "bin")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"module {OPTIONS}\n", "")


def test_an_image_without_tensorboard_says_so_in_one_sentence(tmp_path: Path) -> None:
    sentence = (
        "TensorBoard is not installed in this image: choose one that has it, such as"
        " tensorflow/tensorflow:2.20.0\n"
    )
    done = start(tmp_path / "empty")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
    program(tmp_path / "bin", "python3", f'exec {sys.executable} -S -I "$@"')
    done = start(tmp_path / "bin")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence), "Python alone is not enough"
