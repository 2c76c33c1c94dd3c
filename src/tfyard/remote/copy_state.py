"""How far a copy is, over all attempts at it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from tfyard.file_trees import Copied, Progress, Tree, some

from .container_files import ContainerFiles

BATCH_FILES, BATCH_SIZE = 1000, 256 << 20
"""Files and bytes that are compared, and then sent, at once."""
MOST_CHANGES = 3
"""How often a file is sent that changes meanwhile."""


class CopyState(ABC):
    def __init__(self, to: str, progress: Progress) -> None:
        self.progress = progress
        self.done: set[str] = set()
        self.result = Copied(to=to)

    @abstractmethod
    async def run(self, files: ContainerFiles) -> Copied:
        """Copy what is not done."""

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
        """Of what is left."""
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
        """`links`: that were not made."""
        self.note(links, "left out, because these links lead elsewhere")
        self.note(tree.others, "left out, because these are neither files nor folders")
        return self.result
