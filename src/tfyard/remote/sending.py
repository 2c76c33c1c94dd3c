"""Copies a tree from this machine into a container."""

import asyncio
import os
import posixpath
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from tfyard.file_trees import Copied, CopyError, Progress, digest, shown, stays_inside, walk

from .container_files import FOLDER, PART, ContainerFiles, sealed
from .copy_state import MOST_CHANGES, CopyState
from .tar_stream import Member, pack


class Sending(CopyState):
    def __init__(self, source: Path, path: str, progress: Progress) -> None:
        super().__init__(path, progress)
        self._source, self._path, self._tree = source, path, walk(source)

    async def run(self, files: ContainerFiles) -> Copied:
        folder = await self._folder(files)
        await files.make(folder, self._tree.folders)
        for batch in self.batches(self._tree):
            await self._batch(files, folder, batch)
        found = self._tree.links
        links = {name: target for name, target in found.items() if stays_inside(name, target)}
        if links:
            await files.link(folder, links)
        return self.end(self._tree, found.keys() - links.keys())

    async def _folder(self, files: ContainerFiles) -> str:
        """That the names of the tree are relative to. A file goes into a folder that is there."""
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
                found = os.fstat(file.fileno())
                mode = 0o755 if found.st_mode & 0o100 else 0o644
                size = self._tree.files[name]
                member = Member(name=f"./{name}{PART}", size=size, mode=mode, modified=found.st_mtime)
                async for data in pack(member, file):
                    yield data
                    self.progress.advance(min(len(data), size))
                    size -= min(len(data), size)

    def _local(self, name: str) -> Path:
        return self._source if self._tree.is_file else self._source / name
