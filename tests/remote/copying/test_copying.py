"""Copies between this machine and a job, through the real API server, by pods that are real processes."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.remote.copy_node import CopyNode, copy_node
from tests.remote.logs.test_follow import behind
from tfyard.file_trees import CopyError, Landing, Silent, Tree, digest, walk
from tfyard.install.roles import EDIT_RULES
from tfyard.kube import Client, requests
from tfyard.remote.copying import transfer
from tfyard.remote.copying.container_files import _parse
from tfyard.remote.copying.tar_stream import END, Archive, TarMember, pack
from tfyard.remote.copying.transfer import CopyOptions, Fetching, fetch, send
from tfyard.testing import ControlPlane, Relay

ODD = (
    b"plain",
    b"with space",
    b"-rf",
    b"new\nline",
    b"bad\xff",
    "ü".encode(),
    b"x.part",
    b"x",
    b"q'\"$(id)\\",
)


class CountingRelay(Relay):
    """Counts what comes from the server."""

    received = 0

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_from_server = writer in self._open

        while data := await reader.read(65536):
            self.received += len(data) if is_from_server else 0
            writer.write(data)
            await writer.drain()
        writer.close()


class Watcher(Silent):
    """Remembers what is said, and does something once, after so many bytes."""

    def __init__(self, after: int = 0, do: Any = None) -> None:
        self.said: list[str] = []
        self._left, self._do = after, do

    def advance(self, size: int) -> None:
        self._left -= size
        if self._do and self._left <= 0:
            self._do()
            self._do = None

    def say(self, text: str) -> None:
        self.said.append(text)


def fill(folder: Path) -> None:
    """With names of all kinds, folders, links, an executable, two names of one file."""
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "empty").mkdir()
    for number, name in enumerate(ODD):
        for place in (folder, folder / "sub" / "deep"):
            (place / os.fsdecode(name)).write_bytes(name * (number * 1000))
    (folder / "sub" / "tool").write_text("#!/bin/sh\n")
    (folder / "sub" / "tool").chmod(0o755)
    (folder / "latest").symlink_to("sub/deep")
    (folder / "hard").hardlink_to(folder / "sub" / "tool")
    (folder / ("n" * 240)).write_bytes(os.urandom(3_000_000))


def same(left: Path, right: Path) -> None:
    assert walk(left) == walk(right)
    for name in walk(left).files:
        assert digest(left / name) == digest(right / name), name


@pytest.mark.cluster
@pytest.mark.processes
async def test_a_tree_of_any_names_comes_once_and_only_what_changed_comes_again(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with (
        copy_node(control_plane, namespace, tmp_path) as node,
        CountingRelay(control_plane.server) as relay,
        Client(behind(relay, control_plane)) as client,
    ):
        await node.restrict()
        source, to = await node.claim() / "model", tmp_path / "here"
        fill(source)
        found = await node.job()
        first = await fetch(client, found, "/out/model", to)
        same(source, to)
        assert (first.files, first.same, first.problems) == (len(walk(source).files), 0, ())
        assert os.access(to / "sub" / "tool", os.X_OK)
        await node.until_no_helper()

        before, inodes = relay.received, {path: path.lstat().st_ino for path in to.rglob("*")}
        again = await fetch(client, found, "/out/model", to)
        assert (again.files, again.size, again.same) == (0, 0, first.files)
        assert relay.received - before < 200_000  # of the 3 MB that there are
        assert {path: path.lstat().st_ino for path in to.rglob("*")} == inodes

        (source / "plain").write_text("changed")
        (to / "x").unlink()
        third = await fetch(client, found, "/out/model/", to)
        assert third.files == 2
        same(source, to)
        await one_file(client, node, to.parent)


async def one_file(client: Client, node: CopyNode, folder: Path) -> None:
    """And what is refused; no helper stays after it."""
    found = await node.job("other")
    for to, options in (
        (folder / "name", CopyOptions()),
        (folder, CopyOptions(into=True)),
        (folder, CopyOptions()),
    ):
        done = await fetch(client, found, "/out/model/sub/tool", to, options=options)
        assert (done.files + done.same, Path(done.to).read_text()) == (1, "#!/bin/sh\n")
    assert {each.name for each in folder.iterdir()} >= {"name", "tool"}
    for path, to, text in (
        ("/out/none", folder / "none", "there is no such file or folder"),
        ("/out/model", folder / "name", "is a file, and would become a folder"),
        ("/tmp/x", folder / "x", "is on no claim, and worker-0 has no pod"),
    ):
        with pytest.raises(CopyError, match=text):
            await fetch(client, found, path, to)
    with pytest.raises(CopyError, match="the claim gone of third does not exist"):
        await fetch(client, await node.job("third", claim="gone"), "/out/x", folder / "x")
    await node.until_no_helper()


@pytest.mark.cluster
@pytest.mark.processes
async def test_a_connection_that_is_cut_is_made_again_and_what_is_there_is_not_sent_again(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfyard.remote.copying.transfer.BATCH_SIZE", 5_000_000)
    async with (
        copy_node(control_plane, namespace, tmp_path) as node,
        Relay(control_plane.server) as relay,
        Client(behind(relay, control_plane)) as client,
    ):
        source, to = await node.claim(), tmp_path / "here"
        for number in range(3):
            (source / f"part-{number}").write_bytes(os.urandom(4_000_000))
        watcher = Watcher(6_000_000, relay.cut)
        done = await fetch(client, await node.job(), "/out", to, watcher)
        same(source, to)
        assert (done.files, done.size, done.same) == (3, 12_000_000, 0)
        # Of the second, this side may have had all by then.
        assert any(re.search(r"trying again \(files so far: [12]\)", text) for text in watcher.said)

        await node.until_no_helper()


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.processes
async def test_a_helper_pod_that_is_deleted_is_replaced(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfyard.remote.copying.transfer.BATCH_SIZE", 5_000_000)

    def delete() -> None:
        deletions.append(asyncio.create_task(delete_helper(node)))

    deletions: list[asyncio.Task[None]] = []
    async with copy_node(control_plane, namespace, tmp_path) as node:
        source, to = await node.claim(), tmp_path / "here"
        for number in range(6):
            (source / f"part-{number}").write_bytes(os.urandom(4_000_000))
        watcher = Watcher(6_000_000, delete)
        done = await fetch(node.client, await node.job(), "/out", to, watcher)
        same(source, to)
        await deletions[0]
        assert (done.files, done.problems) == (6, ())
        assert any("trying again" in text for text in watcher.said)
        await node.until_no_helper()


async def delete_helper(node: CopyNode) -> None:
    [pod] = await node.helpers()
    path = requests.PODS.path(node.namespace, pod["metadata"]["name"])
    await node.client.send(requests.delete(path, grace=0))


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.processes
async def test_a_connection_that_is_cut_while_files_go_to_a_claim_is_made_again(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfyard.remote.copying.transfer.BATCH_SIZE", 5_000_000)
    async with (
        copy_node(control_plane, namespace, tmp_path) as node,
        Relay(control_plane.server) as relay,
        Client(behind(relay, control_plane)) as client,
    ):
        there, here = await node.claim(), tmp_path / "here"
        here.mkdir()
        for number in range(6):
            (here / f"part-{number}").write_bytes(os.urandom(4_000_000))
        watcher = Watcher(10_000_000, relay.cut)
        done = await send(client, await node.job(), here, "/out", watcher)
        same(here, there)
        assert (done.files, done.size) == (6, 24_000_000)
        assert any("trying again" in text for text in watcher.said)
        await node.until_no_helper()


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.processes
async def test_files_go_to_a_claim_and_come_from_a_task_that_runs(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with (
        copy_node(control_plane, namespace, tmp_path) as node,
        control_plane.client(control_plane.access("jane", ())) as client,
    ):
        await node.allow("jane", EDIT_RULES)
        directory, here = await node.claim(modes=("ReadWriteOnce",)), tmp_path / "here"
        fill(here)
        found = await node.job()
        await node.start_worker(found)
        watching = asyncio.create_task(node.first_helper())
        done = await send(client, found, here, "/out/new", options=CopyOptions())
        same(here, directory / "new")
        assert (await watching)["spec"]["nodeName"] == f"{namespace}-node"
        again = await send(client, found, here, "/out", options=CopyOptions(into=True))
        assert (done.files, again.files) == (len(walk(here).files), done.files)
        same(here, directory / "here")
        again = await send(client, found, here, "/out/new")
        assert (again.files, again.same) == (0, done.files)
        await send(client, found, here / "plain", "/out/new/sub")
        assert (directory / "new" / "sub" / "plain").read_bytes() == (here / "plain").read_bytes()
        for path, text in (("/out/new/plain", "is a file, and would"), ("/proc/x", "proc")):
            with pytest.raises(CopyError, match=text):
                await send(client, found, here, path)
        await in_container(node, found, tmp_path)
        await node.until_no_helper()


async def in_container(node: CopyNode, found: Any, folder: Path) -> None:
    inside = folder / "inside"
    inside.write_text("only in the container")
    options = CopyOptions(task="worker-0")
    done = await fetch(node.client, found, str(inside), folder / "copied", options=options)
    assert (folder / "copied").read_text() == "only in the container"
    assert (done.files, await node.helpers()) == (1, [])


# --- without a cluster


@pytest.mark.parametrize("name", ["./../x", "./a/../../x", ".//etc/passwd", "./a//b", "./"])
def test_a_list_with_names_that_lead_out_is_refused(name: str) -> None:
    data = b"d\0.\0f\n3\n\0" + name.encode() + b"\0e\0"
    with pytest.raises(CopyError, match="lead out of the folder"):
        _parse("/out", data)


def test_a_list_is_read_with_newlines_and_bytes_in_names() -> None:
    data = b"d\0.\0./sub\0o\0./pipe\0f\n3\n40\n\0./a\nb\0./sub/\xff\0l\nto\nhere\n\0./link\0e\0"
    assert _parse("/out", data) == Tree(
        files={"a\nb": 3, "sub/\udcff": 40}, folders=("sub",), links={"link": "to\nhere"}, others=("pipe",)
    )
    assert _parse("/out/x.h5", b"F\n7\n\0e\0") == Tree(files={"x.h5": 7}, is_file=True)


@pytest.mark.parametrize("data", [b"", b"d\0.\0", b"d\0.\0f\n3\n\0./a\0./b\0e\0"])
def test_a_list_that_is_not_whole_is_asked_for_again(data: bytes) -> None:
    with pytest.raises(transfer.RETRIED):
        _parse("/out", data)


async def test_an_archive_writes_only_what_was_asked_for(tmp_path: Path) -> None:
    async def forged() -> AsyncIterator[bytes]:
        for name in ("../evil", "/etc/evil", "asked", "other"):
            member = TarMember(name=name, size=1)
            with (tmp_path / "one").open("rb") as file:
                async for data in pack(member, file):
                    yield data
        yield END

    (tmp_path / "one").write_bytes(b"1")
    wanted = {"asked": digest(tmp_path / "one")}
    landing = Landing(tmp_path / "to", Tree(files={"asked": 1}))
    landing.prepare()
    await Fetching("/out", tmp_path / "to", Silent())._receive(Archive(forged()), landing, wanted)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "one",
        "to",
        "to/asked",
    ]
