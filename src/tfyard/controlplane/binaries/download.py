"""Downloads the control plane: the official releases of Kubernetes and etcd, with their published checksums.

An interrupted download is continued with an HTTP range, in the same command or in the next one. A file whose
checksum is wrong is removed and refused.
"""

import hashlib
import http.client
import platform
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from tfyard.controlplane.binaries import HERE, MissingBinaries, pinned_version
from tfyard.model.callbacks import Say

SERVER_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
ETCD_MODULE = "go.etcd.io/etcd/server/v3"
PUBLISHED_FOR = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}
"""Machine -> its name in the releases of both projects. They publish servers for Linux only."""
TIMEOUT = 30.0
ATTEMPTS = 3
"""Attempts in a row without new data after which the server counts as unreachable."""
HEARTBEAT = 5.0
CHUNK = 1 << 20
_FAILURES = (OSError, http.client.HTTPException)


class NoDownload(MissingBinaries):
    """No release can be downloaded; building is the alternative."""


class Mirrors(Struct, frozen=True):
    """Base addresses of the releases; a mirror has the same paths below its own."""

    kubernetes: str = "https://dl.k8s.io/release"
    etcd: str = "https://github.com/etcd-io/etcd/releases/download"

    @classmethod
    def chosen(cls, environ: Mapping[str, str], kubernetes: str = "", etcd: str = "") -> "Mirrors":
        default = cls()
        return cls(
            (kubernetes or environ.get("TFYARD_KUBERNETES_MIRROR") or default.kubernetes).rstrip("/"),
            (etcd or environ.get("TFYARD_ETCD_MIRROR") or default.etcd).rstrip("/"),
        )


class Release(Struct, frozen=True):
    """One published file; `program` is its name, or the name of a file in the archive."""

    program: str
    url: str
    checksums: str

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


def releases(mirrors: Mirrors, machine: str, pins: Path = HERE) -> list[Release]:
    kubernetes = f"{mirrors.kubernetes}/v{pinned_version(pins=pins)}/bin/linux/{machine}"
    etcd = pinned_version(ETCD_MODULE, pins)
    archive = f"{mirrors.etcd}/v{etcd}/etcd-v{etcd}-linux-{machine}.tar.gz"
    programs = [f"{kubernetes}/{name}" for name in SERVER_PROGRAMS]
    return [
        Release("etcd", archive, f"{mirrors.etcd}/v{etcd}/SHA256SUMS"),
        *(Release(url.rpartition("/")[2], url, f"{url}.sha256") for url in programs),
    ]


def download(folder: Path, mirrors: Mirrors, say: Say, pins: Path = HERE) -> None:
    """Make `folder` with all programs in it, or nothing; raises Unreachable if they cannot be downloaded."""
    if sys.platform != "linux" or platform.machine() not in PUBLISHED_FOR:
        raise NoDownload(f"no server programs are published for {sys.platform} on {platform.machine()}")
    files = releases(mirrors, PUBLISHED_FOR[platform.machine()], pins)
    downloads, programs = (
        folder.with_name(f"{folder.name}.download"),
        folder.with_name(f"{folder.name}.partial"),
    )
    downloads.mkdir(exist_ok=True)
    versions = f"Kubernetes {pinned_version(pins=pins)} and etcd {pinned_version(ETCD_MODULE, pins)}"
    say(f"==> {versions}: downloading {_how_much(files, downloads)}, once, into {folder}")
    for release in files:
        _get(release, downloads, say)
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir()
    for release in files:
        _unpack(release, downloads / release.name, programs / release.program)
    shutil.rmtree(downloads)
    programs.rename(folder)


def _how_much(files: list[Release], downloads: Path) -> str:
    sizes = [_size_of(release.url) for release in files]
    total = megabytes(sum(size for size in sizes if size)) if all(sizes) else "some 400 MB"
    there = sum(path.stat().st_size for path in downloads.iterdir())
    return f"{total} ({megabytes(there)} of it is here already)" if there else total


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _size_of(url: str) -> int | None:
    """Size of a file; None if the server does not send it. Raises Unreachable, before the download is announced,
    if the file does not exist or the server does not answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=TIMEOUT) as answer:
            return int(answer.headers.get("Content-Length") or 0) or None
    except urllib.error.HTTPError as refusal:
        with refusal:
            if refusal.code in (http.HTTPStatus.METHOD_NOT_ALLOWED, http.HTTPStatus.NOT_IMPLEMENTED):
                return None
            raise _unreachable(url, refusal) from refusal
    except _FAILURES as problem:
        raise _unreachable(url, problem) from problem


def _unreachable(url: str, problem: Exception) -> NoDownload:
    return NoDownload(f"{url}: {getattr(problem, 'reason', None) or problem}")


def _get(release: Release, downloads: Path, say: Say) -> None:
    """Download a file, its checksum first: without one the file is not needed."""
    expected = _published_checksum(release)
    target = downloads / release.name
    _fetch(release.url, target, lambda text: say(f"    {release.name}: {text}"))
    with target.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        target.unlink()
        raise MissingBinaries(
            f"{release.url} has the wrong checksum: {actual}, but {release.checksums} says {expected}."
            " The download was removed; try again, or use another mirror"
        )
    say(f"    {release.name}: {megabytes(target.stat().st_size)}, checksum is right")


def _published_checksum(release: Release) -> str:
    """The checksum of a file. Kubernetes publishes it bare, etcd in a list of checksums and names."""
    try:
        with urllib.request.urlopen(release.checksums, timeout=TIMEOUT) as answer:
            lines = answer.read(CHUNK).decode(errors="replace").splitlines()
    except _FAILURES as problem:
        raise _unreachable(release.checksums, problem) from problem
    for words in map(str.split, lines):
        if len(words) == 1 or (len(words) == 2 and words[1].lstrip("*") == release.name):
            return words[0].lower()
    raise MissingBinaries(f"{release.checksums} has no checksum of {release.name}; use another mirror")


def _fetch(url: str, target: Path, say: Say) -> None:
    """Download a file to its end; an interrupted download is continued as long as each connection brings data."""
    failures = 0
    while True:
        before = _size(target)
        try:
            if _continue(url, target, say):
                return
            problem: Exception = ConnectionError("the connection was cut")
        except _FAILURES as error:
            problem = error
        failures = 0 if _size(target) > before else failures + 1
        if failures == ATTEMPTS:
            raise _unreachable(url, problem)
        say(f"{getattr(problem, 'reason', None) or problem}; going on at {megabytes(_size(target))}")
        time.sleep(failures)


def _continue(url: str, target: Path, say: Say) -> bool:
    """Continue the download; returns whether the file is complete."""
    have = _size(target)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            is_partial = answer.status == http.HTTPStatus.PARTIAL_CONTENT
            length = answer.headers.get("Content-Length")
            total = int(length) + (have if is_partial else 0) if length else None
            with target.open("ab" if is_partial else "wb") as file:
                _copy(answer, file, total, say)
                return total is None or file.tell() >= total
    except urllib.error.HTTPError as refusal:
        with refusal:
            if refusal.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return True  # nothing is left to fetch; its checksum says whether it is the right file
            raise


def _copy(answer: BinaryIO, file: BinaryIO, total: int | None, say: Say) -> None:
    reported = time.monotonic()
    while data := answer.read(CHUNK):
        file.write(data)
        if time.monotonic() - reported > HEARTBEAT:
            reported = time.monotonic()
            say(f"{megabytes(file.tell())}{f' of {megabytes(total)}' if total else ''}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _unpack(release: Release, downloaded: Path, program: Path) -> None:
    if release.name == release.program:
        downloaded.rename(program)
    else:
        with tarfile.open(downloaded) as archive:
            inside = f"{release.name.removesuffix('.tar.gz')}/{release.program}"
            packed = archive.extractfile(inside)
            assert packed is not None, f"{inside} is a file"
            with packed, program.open("wb") as file:
                shutil.copyfileobj(packed, file)
    program.chmod(0o755)
