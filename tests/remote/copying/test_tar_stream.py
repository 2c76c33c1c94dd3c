"""Archives as they come over a connection, of any tar."""

import io
import tarfile
from collections.abc import AsyncIterator

import pytest

from tfyard.remote.copying.tar_stream import END, Archive, Broken, TarMember, pack

LONG = "d" * 150 + "/" + "n" * 120
ODD = "bad\udcff\nname"


async def chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def archive(format: int, **files: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=format, errors="surrogateescape") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), 7, 0o755
            tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


async def read(data: bytes, size: int = 100) -> dict[str, bytes]:
    found = Archive(chunks(data, size))
    return {
        member.name: b"".join([part async for part in found.content()]) async for member in found.members()
    }


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("size", [1, 511, 100_000])
async def test_members_are_read_whatever_their_names_and_chunks(format: int, size: int) -> None:
    files = {"./a": b"", f"./{LONG}": b"x" * 1000, f"./{ODD}": b"y" * 512}
    assert await read(archive(format, **files) + archive(format, b=b"1"), size) == {**files, "b": b"1"}


async def test_content_that_is_not_read_is_skipped() -> None:
    found = Archive(chunks(archive(tarfile.GNU_FORMAT, a=b"x" * 700, b=b"y"), 64))
    assert [(member.name, member.size) async for member in found.members()] == [("a", 700), ("b", 1)]


async def test_hard_links_name_the_file_that_they_are() -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("./a"))
        link = tarfile.TarInfo("./b")
        link.type, link.linkname = tarfile.LNKTYPE, "./a"
        tar.addfile(link)
    found = [member async for member in Archive(chunks(made.getvalue(), 512)).members()]
    assert [(member.name, member.link, member.is_file) for member in found] == [
        ("./a", "", True),
        ("./b", "./a", True),
    ]


@pytest.mark.parametrize("length", [100, 512, 700, 1300])
async def test_an_archive_that_breaks_off_is_an_error(length: int) -> None:
    with pytest.raises(Broken):
        await read(archive(tarfile.GNU_FORMAT, a=b"x" * 1000)[:length])


async def test_data_that_is_no_archive_is_an_error() -> None:
    with pytest.raises(Broken, match="damaged"):
        await read(b"tar: error" * 100)


async def test_what_is_packed_can_be_read_by_others() -> None:
    member = TarMember(name=f"./{LONG}", size=5, mode=0o755, modified=3.0)
    data = b"".join([part async for part in pack(member, io.BytesIO(b"12345"))]) + END
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        [info] = tar.getmembers()
        file = tar.extractfile(info)
        assert file is not None
        assert (info.name, info.mode, info.mtime, file.read()) == (f"./{LONG}", 0o755, 3, b"12345")


async def test_a_file_that_shrinks_while_it_is_packed_keeps_its_frame() -> None:
    data = b"".join([part async for part in pack(TarMember(name="a", size=10), io.BytesIO(b"123"))])
    assert await read(data + END) == {"a": b"123" + bytes(7)}
