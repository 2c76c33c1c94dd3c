"""The job's code on this machine."""

import io
import tarfile
from pathlib import Path

import pytest

from tfyard.errors import Usage
from tfyard.local import code
from tfyard.model import Code


def test_a_folder_of_code_must_exist(tmp_path: Path) -> None:
    assert code.folder(Code(kind="folder", source="."), tmp_path, tmp_path / "t") == tmp_path
    with pytest.raises(Usage, match="is not a folder"):
        code.folder(Code(kind="folder", source="absent"), tmp_path, tmp_path / "t")


def test_an_archive_is_unpacked_without_its_outer_folder(tmp_path: Path) -> None:
    (tmp_path / "repo-main").mkdir()
    (tmp_path / "repo-main" / "train.py").write_text("pass")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "repo-main", "repo-main")
    code.fetch(Code(kind="http", source=(tmp_path / "a.tar.gz").as_uri()), tmp_path / "target")
    assert (tmp_path / "target" / "train.py").read_text() == "pass"


def test_an_archive_that_writes_elsewhere_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("../../evil.txt"), io.BytesIO())
    with pytest.raises(Usage, match="not a usable"):
        code.fetch(Code(kind="http", source=(tmp_path / "evil.tar").as_uri()), tmp_path / "target")
