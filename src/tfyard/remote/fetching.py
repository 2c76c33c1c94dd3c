"""Copies a tree from a container to this machine."""

import asyncio
import posixpath
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from tfyard.file_trees import Copied, Landing, Progress, Tree, shown

from .container_files import FOLDER, GONE, UNREADABLE, ContainerFiles, Failed
from .copy_state import MOST_CHANGES, CopyState
from .job_paths import OTHER_USER
from .tar_stream import CHUNK, Archive


class Fetching(CopyState):
    def __init__(self, path: str, to: Path, progress: Progress) -> None:
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
        """A file goes into a folder that is there."""
        to = self._to / posixpath.basename(self._path) if tree.is_file and self._to.is_dir() else self._to
        self.result = replace(self.result, to=str(to))
        return to

    async def _batch(self, files: ContainerFiles, folder: str, landing: Landing, batch: list[str]) -> None:
        for _ in range(MOST_CHANGES):
            wanted = await self._wanted(landing, await files.states(folder, batch))
            if not wanted:
                return
            with suppress(Failed):  # a file changed, or went, while it was read: the next turn tells
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
        """Only what was asked for, whatever else the archive has."""
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
