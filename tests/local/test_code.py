"""The job's code on this machine."""

import subprocess
from pathlib import Path

import pytest

from tfyard.errors import Usage
from tfyard.local import code
from tfyard.model import Code


def test_a_folder_of_code_must_exist(tmp_path: Path) -> None:
    assert code.folder(Code(kind="folder", source="."), tmp_path, tmp_path / "t") == tmp_path
    with pytest.raises(Usage, match="is not a folder"):
        code.folder(Code(kind="folder", source="absent"), tmp_path, tmp_path / "t")


def test_git_gets_an_address_and_a_ref_and_no_options(tmp_path: Path) -> None:
    """Also where nothing has checked them: a path is no ref, either."""
    repository = tmp_path / "repo"
    repository.mkdir()
    (repository / "a.py").write_text("1")
    for command in (
        "init -q -b main",
        "add -A",
        "-c user.name=a -c user.email=a@b commit -q -m x",
        "branch -q b",
    ):
        subprocess.run(["git", "-C", str(repository), *command.split()], check=True)
    code.fetch(Code(kind="git", source=str(repository), ref="b"), tmp_path / "target")
    assert (tmp_path / "target" / "a.py").read_text() == "1"
    for number, (source, ref) in enumerate((("--upload-pack=touch x", ""), (str(repository), "a.py"))):
        with pytest.raises(Usage, match=f"code: {source}: fatal: "):
            code.fetch(Code(kind="git", source=source, ref=ref), tmp_path / f"target-{number}")
