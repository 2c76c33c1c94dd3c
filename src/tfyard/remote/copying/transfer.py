"""Copies between this machine and a job: whole trees, with a checksum of every file, and only what differs.

A connection that breaks is made again, a bounded number of times; what is there already is not sent again.
"""

import asyncio
import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from tfyard.file_trees import (
    Copied,
    CopyError,
    CopyProgress,
    Landing,
    Silent,
    Tree,
    digest,
    ignored_by_git,
    shown,
    some,
    stays_inside,
    walk,
)
from tfyard.kube import Client, NotFound, Transient
from tfyard.kube.pod_streams import ExecFailed
from tfyard.model.backoff import Backoff
from tfyard.overview import mounts
from tfyard.overview.job_view import kept_paths
from tfyard.remote.copying.container_files import (
    FOLDER,
    GONE,
    PART,
    UNREADABLE,
    ContainerFiles,
    Failed,
    sealed,
)
from tfyard.remote.copying.job_paths import DEFAULT_OPTIONS, OTHER_USER, CopyOptions, JobPath, job_of, opened
from tfyard.remote.copying.tar_stream import CHUNK, Archive, Broken, TarMember, pack
from tfyard.remote.reading.jobs import StoredTFJob

ATTEMPTS = 5
"""Attempts in a row without one more file."""
BACKOFF = Backoff(first=0.5, longest=10.0)
RETRIED = (Transient, NotFound, ExecFailed, Failed, Broken)
BATCH_FILES, BATCH_SIZE = 1000, 256 << 20
"""Files and bytes that are compared, and then sent, at once."""
MOST_CHANGES = 3
"""How often a file is sent that changes while it is sent."""
SILENT = Silent()

__all__ = ["Copied", "CopyError", "CopyOptions", "CopyProgress", "Silent", "fetch", "fetch_outputs", "send"]


async def fetch(
    client: Client,
    tfjob: StoredTFJob,
    path: str,
    to: Path,
    progress: CopyProgress = SILENT,
    options: CopyOptions = DEFAULT_OPTIONS,
) -> Copied:
    """A folder of the job becomes the folder `to`; a file becomes the file `to`, or one in the folder `to`."""
    path = mounts.normal(path, job_of(tfjob))
    to = to / posixpath.basename(path) if options.into else to
    wanted = JobPath(tfjob=tfjob, path=path, options=options)
    return await _persistently(client, wanted, Fetching(path, to, progress))


async def send(
    client: Client,
    tfjob: StoredTFJob,
    source: Path,
    path: str,
    progress: CopyProgress = SILENT,
    options: CopyOptions = DEFAULT_OPTIONS,
) -> Copied:
    """Copies to the job, by the same rules as `fetch`."""
    path = mounts.normal(path, job_of(tfjob))
    path = posixpath.join(path, source.resolve().name) if options.into else path
    wanted = JobPath(tfjob=tfjob, path=path, options=options, writes=True)
    return await _persistently(client, wanted, Sending(source, path, progress))


async def fetch_outputs(
    client: Client, tfjob: StoredTFJob, to: Path, progress: CopyProgress, options: CopyOptions
) -> list[Copied]:
    """Fetches what tasks wrote to claims: one path becomes the folder `to`, several become folders in it."""
    job = job_of(tfjob)
    kept = kept_paths(job)
    paths = list(dict.fromkeys(posixpath.normpath(each.path) for each in kept if each.is_claim))
    for text in dict.fromkeys(f"{each.path} ({each.source})" for each in kept if not each.is_claim):
        progress.say(f"{text} is not copied: it is not on a claim")
    if not paths:
        progress.say(f"{tfjob.name} does not write to a claim, so there is nothing to copy")
    with ignored_by_git(to):
        to.mkdir(parents=True, exist_ok=True)
    return [
        await fetch(client, tfjob, path, to / _folder_name(path) if len(paths) > 1 else to, progress, options)
        for path in paths
    ]


def _folder_name(path: str) -> str:
    return path.strip("/").replace("/", "-") or "root"


async def _persistently(client: Client, wanted: JobPath, copy: "CopyState") -> Copied:
    """Tries again after a connection broke, or a pod was deleted."""
    backoff, before = BACKOFF, 0
    while True:
        try:
            async with opened(client, wanted, copy.progress.say) as files:
                return await copy.run(files)
        except RETRIED as problem:
            backoff = (BACKOFF if len(copy.done) > before else backoff).next()
            before = len(copy.done)
            if backoff.failures >= ATTEMPTS:
                text = f"{problem} ({ATTEMPTS} attempts); the same command continues (files so far: {before})"
                raise CopyError(text) from problem
            copy.progress.say(f"{problem}; trying again (files so far: {before})")
            await asyncio.sleep(backoff.delay())


# --- what was copied, over all attempts


class CopyState(ABC):
    def __init__(self, to: str, progress: CopyProgress) -> None:
        self.progress = progress
        self.done: set[str] = set()
        self.result = Copied(to=to)

    @abstractmethod
    async def run(self, files: ContainerFiles) -> Copied:
        """Copies what is not done."""

    def sent(self, name: str, size: int) -> None:
        self.done.add(name)
        self.result = replace(self.result, files=self.result.files + 1, size=self.result.size + size)

    def same(self, name: str, size: int) -> None:
        self.done.add(name)
        self.result = replace(self.result, same=self.result.same + 1)
        self.progress.advance(size)

    def note(self, names: Iterable[str], why: str) -> None:
        if named := sorted(names):
            self.result = replace(self.result, notes=(*self.result.notes, f"{why}: {some(named)}"))

    def problem(self, text: str) -> None:
        if text not in self.result.problems:
            self.result = replace(self.result, problems=(*self.result.problems, text))

    def batches(self, tree: Tree) -> Iterator[list[str]]:
        """Batches of the files that are left."""
        self.progress.begin(len(tree.files), tree.size)
        self.progress.advance(sum(size for name, size in tree.files.items() if name in self.done))
        batch, total = list[str](), 0
        for name, size in tree.files.items():
            if name in self.done:
                continue
            if batch and (len(batch) == BATCH_FILES or total + size > BATCH_SIZE):
                yield batch
                batch, total = [], 0
            batch.append(name)
            total += size
        if batch:
            yield batch

    def end(self, tree: Tree, links: Iterable[str]) -> Copied:
        """`links`: those that were not made."""
        self.note(links, "left out, because these links lead elsewhere")
        self.note(tree.others, "left out, because these are neither files nor folders")
        return self.result


# --- from a container to this machine


class Fetching(CopyState):
    def __init__(self, path: str, to: Path, progress: CopyProgress) -> None:
        super().__init__(str(to), progress)
        self._path, self._to = path, to

    async def run(self, files: ContainerFiles) -> Copied:
        tree, unreadable = await files.list(self._path)
        for line in unreadable:
            self.problem(line)
        landing = Landing(self._landing_place(tree), tree)
        landing.prepare()
        folder = posixpath.dirname(self._path) if tree.is_file else self._path
        for batch in self.batches(tree):
            await self._batch(files, folder, landing, batch)
        return self.end(tree, landing.link())

    def _landing_place(self, tree: Tree) -> Path:
        """Destination; a file goes into a folder that exists."""
        to = self._to / posixpath.basename(self._path) if tree.is_file and self._to.is_dir() else self._to
        self.result = replace(self.result, to=str(to))
        return to

    async def _batch(self, files: ContainerFiles, folder: str, landing: Landing, batch: list[str]) -> None:
        for _ in range(MOST_CHANGES):
            wanted = await self._wanted(landing, await files.states(folder, batch))
            if not wanted:
                return
            with suppress(Failed):  # a file changed, or was removed, while it was read: the next turn sees it
                async with files.read(folder, wanted) as archive:
                    await self._receive(archive, landing, wanted)
            batch = [name for name in wanted if name not in self.done]
            if not batch:
                return
        for name in batch:
            self.problem(f"{shown(name)} changes while it is copied")

    async def _wanted(self, landing: Landing, states: Mapping[str, str]) -> dict[str, str]:
        """Name -> sha256 of those that are missing or different here."""
        wanted = {}
        for name, state in states.items():
            if state == GONE:
                self.note([name], "removed while it was copied")
                self.done.add(name)
            elif state in (UNREADABLE, FOLDER):
                self.problem(f"{shown(name)} may not be read; {OTHER_USER}")
            elif await asyncio.to_thread(landing.has, name, state):
                self.same(name, landing.tree.files[name])
            else:
                wanted[name] = state
        return wanted

    async def _receive(self, archive: Archive, landing: Landing, wanted: Mapping[str, str]) -> None:
        """Takes only what was asked for, whatever else the archive has."""
        async for member in archive.members():
            name = member.name.removeprefix("./")
            if name not in wanted or name in self.done or not member.is_file:
                continue
            content = _landed(landing, member.link) if member.link else archive.content()
            with landing.part(name) as part:
                async for data in content:
                    part.write(data)
                    self.progress.advance(len(data))
                if part.finish(wanted[name], member.mode, member.modified):
                    self.sent(name, part.size)
                else:
                    self.progress.advance(-part.size)


async def _landed(landing: Landing, link: str) -> AsyncIterator[bytes]:
    """A second name of a file (a hard link) comes without content, after the first."""
    name = link.removeprefix("./")
    if name in landing.tree.files and landing.path(name).is_file():
        with landing.path(name).open("rb") as file:
            while data := file.read(CHUNK):
                yield data


# --- from this machine into a container


class Sending(CopyState):
    def __init__(self, source: Path, path: str, progress: CopyProgress) -> None:
        super().__init__(path, progress)
        self._source, self._path, self._tree = source, path, walk(source)

    async def run(self, files: ContainerFiles) -> Copied:
        folder = await self._folder(files)
        await files.make(folder, self._tree.folders)
        for batch in self.batches(self._tree):
            await self._batch(files, folder, batch)
        all_links = self._tree.links
        links = {name: target for name, target in all_links.items() if stays_inside(name, target)}
        if links:
            await files.link(folder, links)
        return self.end(self._tree, all_links.keys() - links.keys())

    async def _folder(self, files: ContainerFiles) -> str:
        """Folder of the names of the tree. A file goes into a folder that exists."""
        path, kind = self._path, await files.kind(self._path)
        if not self._tree.is_file:
            if kind == "file":
                raise CopyError(f"{path} is a file, and would become a folder")
            return path
        path = posixpath.join(path, self._source.resolve().name) if kind == FOLDER else path
        folder, name = posixpath.split(path)
        self._tree = replace(self._tree, files={name: self._tree.size})
        self.result = replace(self.result, to=path)
        return folder

    async def _batch(self, files: ContainerFiles, folder: str, batch: list[str]) -> None:
        for _ in range(MOST_CHANGES):
            wanted = await self._wanted(await files.states(folder, batch))
            if not wanted:
                return
            await files.write(folder, sealed(self._pack(wanted)))
            arrived = await files.states(folder, [name + PART for name in wanted])
            whole = [name for name, content in wanted.items() if arrived[name + PART] == content]
            if whole:
                await files.finish(folder, whole)
            for name in whole:
                self.sent(name, self._tree.files[name])
            batch = [name for name in wanted if name not in self.done]
            if not batch:
                return
            self.progress.advance(-sum(self._tree.files[name] for name in batch))
        await files.discard(folder, [name + PART for name in batch])
        for name in batch:
            self.problem(f"{shown(name)} changes while it is copied")

    async def _wanted(self, states: Mapping[str, str]) -> dict[str, str]:
        """Name -> sha256 of those that are missing or different there."""
        wanted = {}
        for name, state in states.items():
            if state == FOLDER:
                raise CopyError(f"{shown(name)} is a folder there, and would become a file")
            content = await asyncio.to_thread(digest, self._local(name))
            if content == state:
                self.same(name, self._tree.files[name])
            else:
                wanted[name] = content
        return wanted

    async def _pack(self, names: Iterable[str]) -> AsyncIterator[bytes]:
        for name in names:
            with self._local(name).open("rb") as file:
                stat = os.fstat(file.fileno())
                mode = 0o755 if stat.st_mode & 0o100 else 0o644
                size = self._tree.files[name]
                member = TarMember(name=f"./{name}{PART}", size=size, mode=mode, modified=stat.st_mtime)
                async for data in pack(member, file):
                    yield data
                    self.progress.advance(min(len(data), size))
                    size -= min(len(data), size)

    def _local(self, name: str) -> Path:
        return self._source if self._tree.is_file else self._source / name
