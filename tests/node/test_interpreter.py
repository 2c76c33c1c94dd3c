"""Which `python` the tasks have."""

import subprocess
from pathlib import Path

import pytest

from tests.privileges import without_privileges
from tfyard.errors import Usage
from tfyard.node.interpreter import Interpreter, find, search_path, write_shims


def program(path: Path, text: str = "echo $0") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A shell in which everything is active; tests take away from it."""
    for name in ("venv", "conda", "system"):
        program(tmp_path / name / "bin" / "python")
    names = {"VIRTUAL_ENV": "venv", "CONDA_PREFIX": "conda", "PATH": "system/bin"}
    return {variable: str(tmp_path / folder) for variable, folder in names.items()}


@pytest.mark.parametrize(
    ("without", "own", "found", "chosen_by"),
    [
        ((), "/own", "venv/bin/python", "VIRTUAL_ENV"),
        (("VIRTUAL_ENV",), "/own", "conda/bin/python", "CONDA_PREFIX"),
        (("VIRTUAL_ENV", "CONDA_PREFIX"), "/own", "/own", "tfyard's own"),
        (("VIRTUAL_ENV", "CONDA_PREFIX"), None, "system/bin/python", "the first on PATH"),
    ],
)
def test_an_active_environment_wins(
    env: dict[str, str], tmp_path: Path, without: tuple[str, ...], own: str | None, found: str, chosen_by: str
) -> None:
    left = {name: value for name, value in env.items() if name not in without}
    assert find(None, left, lambda: own) == Interpreter(str(tmp_path / found), chosen_by)


def test_an_environment_that_was_removed_is_passed_over(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "venv" / "bin" / "python").unlink()
    assert find(None, env).chosen_by == "CONDA_PREFIX"


@pytest.mark.parametrize("asked", ["{}/other/bin/python3.9", "{}/other", "python3.9"])
def test_a_path_a_folder_or_a_name_can_be_asked_for(env: dict[str, str], tmp_path: Path, asked: str) -> None:
    expected = program(tmp_path / "other" / "bin" / "python3.9")
    (tmp_path / "other" / "bin" / "python").symlink_to(expected)
    found = find(asked.format(tmp_path), {**env, "PATH": f"{env['PATH']}:{tmp_path}/other/bin"})
    assert Path(found.path).resolve() == Path(expected)
    assert found.chosen_by == "--python"


def test_an_interpreter_that_does_not_exist_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(Usage, match="--python python9: not found"):
        find("python9", env)


@pytest.mark.parametrize(
    "name", ["venv/bin/python", "system/bin/python", "system/bin/python3.9", "lone/python3"]
)
def test_python_on_the_search_path_is_the_chosen_one(env: dict[str, str], tmp_path: Path, name: str) -> None:
    chosen, shims = Interpreter(program(tmp_path / name, f"echo {name}"), "--python"), tmp_path / "shims"
    write_shims(chosen, shims)
    path = f"{search_path(chosen, env['PATH'], shims)}:/usr/bin:/bin"
    done = subprocess.run(
        ["/bin/sh", "-c", "python"], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{name}\n"
    assert path.startswith(env["PATH"]) == (name == "system/bin/python")


def test_a_folder_on_the_path_that_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    with without_privileges():
        found = find("sh", {"PATH": f"{tmp_path}/bin:/bin"})
    assert found.path == "/bin/sh"
