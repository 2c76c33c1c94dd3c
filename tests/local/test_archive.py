"""Code from an http(s) address: what is in an archive is not trusted."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tfyard.errors import Usage
from tfyard.local import archive


def tar(path: Path, **files: bytes) -> str:
    with tarfile.open(path, "w:gz") as made:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return path.as_uri()


def test_an_archive_is_unpacked_without_its_outer_folder(tmp_path: Path) -> None:
    archive.fetch(tar(tmp_path / "a.tar.gz", **{"repo-main/train.py": b"pass"}), tmp_path / "target")
    assert (tmp_path / "target" / "train.py").read_text() == "pass"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "target"]


def test_an_archive_that_writes_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="not a usable"):
        archive.fetch(tar(tmp_path / "evil.tar", **{"../../evil.txt": b""}), tmp_path / "target")


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("MAX_FILES", "more than 2 files"),
        ("MAX_UNPACKED", "more than 2 bytes"),
        ("MAX_DOWNLOAD", "more than 2 b"),
    ],
)
def test_an_archive_beyond_a_limit_is_refused_and_nothing_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: str, message: str
) -> None:
    files = {"a": b"1", "b": b"1", "c": b"1"}
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as made:
            for file, data in files.items():
                made.writestr(file, data)
    else:
        tar(tmp_path / name, **files)
    monkeypatch.setattr(archive, limit, 2)
    with pytest.raises(Usage, match=message):
        archive.fetch((tmp_path / name).as_uri(), tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_small_archive_that_becomes_a_large_one_is_not_even_decompressed(tmp_path: Path) -> None:
    """A member of 8 TiB, of which the archive has only the head; and a name of 8 GiB."""
    for kind, size, message in (
        (tarfile.REGTYPE, 1 << 43, "unpacked"),
        (tarfile.XHDTYPE, 1 << 33, "a header of"),
    ):
        member = tarfile.TarInfo("a")
        member.size, member.type = size, kind
        with gzip.open(tmp_path / "bomb.tar.gz", "wb") as file:
            file.write(member.tobuf(tarfile.GNU_FORMAT) + b"\0" * 1024)
        with pytest.raises(Usage, match=message):
            archive.fetch((tmp_path / "bomb.tar.gz").as_uri(), tmp_path / "target")


def test_a_damaged_archive_is_reported_in_one_line(tmp_path: Path) -> None:
    whole = Path(tar(tmp_path / "a.tar.gz", a=bytes(range(256)) * 100).removeprefix("file://")).read_bytes()
    for data in (b"", b"just text", whole[:100], whole[:50] + b"xxxx" + whole[54:]):
        (tmp_path / "bad").write_bytes(data)
        with pytest.raises(Usage, match=r"is not a usable \.zip or \.tar archive: "):
            archive.fetch((tmp_path / "bad").as_uri(), tmp_path / "target")


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:x/a.zip", "http://127.0.0.1/a b.zip", "http://127.0.0.1:1/a.zip", "http://[/"],
)
def test_an_address_that_cannot_be_fetched_is_reported_in_one_line(tmp_path: Path, address: str) -> None:
    with pytest.raises(Usage, match="code: http://"):
        archive.fetch(address, tmp_path / "target")
