"""Getting the binaries from a server that is real HTTP, and as unreliable as servers are; its files are small."""

import hashlib
import io
import os
import platform
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.controlplane.test_binaries import NOBODY, nowhere
from tfyard.controlplane import binaries
from tfyard.controlplane.binaries import MissingBinaries, download, obtain
from tfyard.controlplane.binaries.download import Mirrors, releases

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in download.PUBLISHED_FOR, reason="no releases for it"
)
__all__ = ["nowhere"]
PROGRAM = b"#!/bin/sh\necho Kubernetes v1.36.3\n" + b"#" * 300_000


def packed(folder: str, name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=0) as archive:
        entry = tarfile.TarInfo(f"{folder}/{name}")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Mirror(ThreadingHTTPServer):
    """`cuts`: how many answers end in the middle; `ranges`: whether it knows ranges."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        base = f"http://127.0.0.1:{self.server_port}"
        self.mirrors = Mirrors(f"{base}/k8s", f"{base}/etcd")
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.sent = 0
        self.cuts = 0
        self.ranges = True
        for release in releases(self.mirrors, download.PUBLISHED_FOR[platform.machine()]):
            is_archive = release.name.endswith(".gz")
            content = packed(release.name[: -len(".tar.gz")], "etcd", PROGRAM) if is_archive else PROGRAM
            checksum = hashlib.sha256(content).hexdigest()
            self.files[release.url.removeprefix(base)] = content
            said = f"{'0' * 64}  other.zip\n{checksum}  {release.name}\n" if is_archive else checksum
            self.files[release.checksums.removeprefix(base)] = said.encode()

    def path(self, name: str) -> str:
        return next(path for path in self.files if path.endswith(f"/{name}"))

    def downloads(self, name: str) -> list[str]:
        """The ranges that were asked for."""
        return [bytes for verb, path, bytes in self.asked if verb == "GET" and path.endswith(f"/{name}")]


class Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_HEAD(self) -> None:
        self._answer(send=False)

    def do_GET(self) -> None:
        self._answer(send=True)

    def _answer(self, *, send: bool) -> None:
        self.server.asked.append((self.command, self.path, self.headers.get("Range", "")))
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        first = int(self.headers.get("Range", "bytes=0-")[6:-1]) if self.server.ranges else 0
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        rest = content[first:]
        if send and len(rest) > 1000 and self.server.cuts:
            self.server.cuts -= 1
            rest = rest[: len(rest) // 2]
        if send:
            self.wfile.write(rest)
            self.server.sent += len(rest)

    def log_message(self, format: str, *args: object) -> None:
        """What was asked for is in `asked`."""


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with Mirror() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def test_a_machine_without_binaries_downloads_them_once_and_says_so_first(
    nowhere: Path, mirror: Mirror
) -> None:
    said: list[str] = []
    found = obtain.find_or_obtain(said.append, mirrors=mirror.mirrors)
    assert found.folder == binaries.cache_folder()
    names = ("etcd", *download.SERVER_PROGRAMS)
    assert all((found.folder / name).read_bytes() == PROGRAM for name in names)
    assert all(os.access(found.folder / name, os.X_OK) for name in names)
    assert said[0].startswith(f"==> Kubernetes {binaries.pinned_version()} and etcd 3.")
    assert ": downloading 2 MB, once, into " in said[0]
    assert [line.split(":")[0].strip() for line in said[2:]] == [*download.SERVER_PROGRAMS]
    assert list(found.folder.parent.glob("*.download")) == []
    before = len(mirror.asked)
    assert obtain.find_or_obtain(said.append, mirrors=mirror.mirrors) == found
    assert len(mirror.asked) == before


def test_a_connection_that_is_cut_is_continued_where_it_was(nowhere: Path, mirror: Mirror) -> None:
    mirror.cuts = 2
    said: list[str] = []
    obtain.obtain(said.append, mirror.mirrors)
    cut = [line for line in said if "the connection was cut; going on at" in line]
    assert len(cut) == 2
    etcd = next(path for path in mirror.files if path.endswith(".tar.gz"))
    size = len(mirror.files[etcd])
    assert mirror.downloads(etcd.rpartition("/")[2]) == [
        "",
        f"bytes={size // 2}-",
        f"bytes={size // 2 + (size - size // 2) // 2}-",
    ]
    assert mirror.sent == sum(map(len, mirror.files.values()))


def test_the_next_command_continues_what_an_interrupted_one_left(nowhere: Path, mirror: Mirror) -> None:
    folder = binaries.cache_folder()
    left = folder.with_name(f"{folder.name}.download")
    left.mkdir(parents=True)
    (left / "kubectl").write_bytes(PROGRAM[:1000])
    said: list[str] = []
    obtain.obtain(said.append, mirror.mirrors)
    assert "1 kB of it is here already" in said[0]
    assert mirror.downloads("kubectl") == ["bytes=1000-"]
    assert (folder / "kubectl").read_bytes() == PROGRAM


def test_a_server_without_ranges_is_asked_for_the_whole_file(nowhere: Path, mirror: Mirror) -> None:
    mirror.ranges, mirror.cuts = False, 1
    obtain.obtain(lambda _: None, mirror.mirrors)
    assert (binaries.cache_folder() / "etcd").read_bytes() == PROGRAM


def test_a_wrong_checksum_is_refused_and_the_file_is_removed(nowhere: Path, mirror: Mirror) -> None:
    mirror.files[mirror.path("kube-scheduler")] = b"something else"
    said: list[str] = []
    with pytest.raises(MissingBinaries, match=r"kube-scheduler has the wrong checksum: .* was removed"):
        obtain.obtain(said.append, mirror.mirrors)
    folder = binaries.cache_folder()
    assert not folder.exists()
    assert not (folder.with_name(f"{folder.name}.download") / "kube-scheduler").exists()
    assert "Go modules" not in "".join(said), "a server that lies is no reason to build"
    mirror.files[mirror.path("kube-scheduler")] = PROGRAM
    mirror.asked.clear()
    obtain.obtain(said.append, mirror.mirrors)
    assert (folder / "kube-scheduler").read_bytes() == PROGRAM
    assert mirror.downloads("kube-scheduler") == [""]


def test_a_mirror_without_checksums_is_refused(nowhere: Path, mirror: Mirror) -> None:
    mirror.files[mirror.path("SHA256SUMS")] = b""
    with pytest.raises(MissingBinaries, match="SHA256SUMS has no checksum of etcd"):
        obtain.obtain(lambda _: None, mirror.mirrors)


@pytest.mark.parametrize("why", ["nobody listens", "no such version"])
def test_where_nothing_can_be_downloaded_it_is_built_and_the_cost_is_said_first(
    nowhere: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """By a `go` that writes down its command line: a real build takes minutes."""
    go = nowhere / "go" / "go"
    go.parent.mkdir()
    go.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n'
        'printf "#!/bin/sh\\necho Kubernetes v1.36.3 from %s\\n" "$3" > "$2"; chmod +x "$2"\n'
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    mirror.files.clear()
    said: list[str] = []
    found = obtain.find_or_obtain(said.append, mirrors=NOBODY if why == "nobody listens" else mirror.mirrors)
    assert said[0].startswith("==> no download: http://127.0.0.1:")
    assert "from their Go modules, once: some 10 minutes" in said[1]
    assert "k8s.io/kubernetes/cmd/kubectl" in (found.folder / "kubectl").read_text()
    assert found.has("etcd", *download.SERVER_PROGRAMS)


def test_mirrors_are_named_by_option_then_by_variable() -> None:
    environ = {"TFYARD_KUBERNETES_MIRROR": "https://example.org/k8s/"}
    assert Mirrors.chosen({}) == Mirrors()
    assert Mirrors.chosen(environ).kubernetes == "https://example.org/k8s"
    assert Mirrors.chosen(environ, "https://other.example", "https://etcd.example/") == Mirrors(
        "https://other.example", "https://etcd.example"
    )
