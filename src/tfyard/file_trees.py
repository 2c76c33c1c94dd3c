"""Trees of files that are copied from one place to another: their content, their destination, and writing them.

A name is a path relative to its tree, with `/` between its parts; bytes that are not UTF-8 are kept as in Python's
own paths (surrogateescape). Names may come from an untrusted place, so nothing is written outside of the chosen
folder, and a file gets its name only when it is complete.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from msgspec import Struct

from tfyard.errors import TfyardError, Usage

PART = ".part"
MOST_NAMED = 5
LONGEST_NAME = 255
"""Maximum length of a file's name in bytes, in the file systems of Linux."""


class CopyError(TfyardError):
    """Files cannot be copied."""


class Tree(Struct, frozen=True, kw_only=True):
    files: dict[str, int] = {}
    """Name -> size in bytes."""
    folders: tuple[str, ...] = ()
    links: dict[str, str] = {}
    """Name of a symbolic link -> its target."""
    others: tuple[str, ...] = ()
    """Sockets, pipes and devices, which cannot be copied."""
    is_file: bool = False
    """Whether the tree is a single file, not a folder."""

    @property
    def size(self) -> int:
        return sum(self.files.values())


class Copied(Struct, frozen=True, kw_only=True):
    to: str
    files: int = 0
    """Number of files that were sent; `same` counts those that were there already."""
    size: int = 0
    same: int = 0
    notes: tuple[str, ...] = ()
    """Files that were left out, each with the reason."""
    problems: tuple[str, ...] = ()
    """Files that could not be copied, each with the reason."""


class CopyProgress(Protocol):
    def begin(self, files: int, size: int) -> None:
        """Called when the number and size of all files are known; again after an interruption."""

    def advance(self, size: int) -> None:
        """Called with the number of bytes that are copied, or were there; negative if some must be sent again."""

    def say(self, text: str) -> None: ...


class Silent:
    """A progress that is not shown."""

    def begin(self, files: int, size: int) -> None: ...

    def advance(self, size: int) -> None: ...

    def say(self, text: str) -> None: ...


# --- names


def is_safe(name: str) -> bool:
    """Whether a name stays in its tree."""
    return "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


def stays_inside(name: str, target: str) -> bool:
    """Whether a link of that name leads to something in its tree. `..` is allowed only in front: after a name,
    which may be a link itself, its meaning is unknown."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((count for count, part in enumerate(parts) if part != ".."), len(parts))
    is_plain = ".." not in parts[up:]
    return bool(target) and not target.startswith("/") and is_plain and up <= name.count("/")


def parents(names: Iterable[str]) -> list[str]:
    """All folders above these names, parents first."""
    folders: set[str] = set()
    for name in names:
        while (name := name.rpartition("/")[0]) and name not in folders:
            folders.add(name)
    return sorted(folders)


def some(names: Iterable[str]) -> str:
    """The first few names, for a message."""
    texts = [shown(name) for name in names]
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more


def shown(name: str) -> str:
    """A name as text on a terminal."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


# --- what is in a folder of this machine


def walk(path: Path) -> Tree:
    """The tree of a folder or a file."""
    try:
        if not path.is_dir():
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise Usage(f"{path} is neither a file nor a folder")
            return Tree(files={path.resolve().name: status.st_size}, is_file=True)
        return _sorted(path, sorted(_entries(path, "")))
    except OSError as error:
        raise Usage(f"{error.filename}: {error.strerror}") from None


def _entries(folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    """(name, mode) of all entries; links to folders are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name, mode = f"{prefix}{entry.name}", entry.stat(follow_symlinks=False).st_mode
            yield name, mode
            if stat.S_ISDIR(mode):
                yield from _entries(Path(entry.path), f"{name}/")


def _sorted(root: Path, entries: list[tuple[str, int]]) -> Tree:
    kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    files, folders, links = ([name for name, mode in entries if is_kind(mode)] for is_kind in kinds)
    return Tree(
        files={name: (root / name).stat().st_size for name in files},
        folders=tuple(folders),
        links={name: str((root / name).readlink()) for name in links},
        others=tuple(name for name, mode in entries if not any(is_kind(mode) for is_kind in kinds)),
    )


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- the destination


def goes_into(to: str) -> bool:
    """Whether a destination means a folder to put something into: `folder/`, `.` and `..` do."""
    return to.rpartition("/")[2] in ("", ".", "..")


@contextmanager
def ignored_by_git(folder: Path) -> Iterator[None]:
    """If the block makes this folder, git ignores it, and it is not part of the code of the next job."""
    is_new = not folder.exists()
    try:
        yield
    finally:
        if is_new and folder.is_dir():
            (folder / ".gitignore").write_text("# Outputs of a job, brought here by tfyard.\n*\n")


class Landing:
    """A place on this machine that a tree is copied to: `root` is the folder, or for a single file the file."""

    def __init__(self, root: Path, tree: Tree) -> None:
        self.root, self.tree = root, tree

    def path(self, name: str) -> Path:
        return self.root if self.tree.is_file else self.root / name

    def prepare(self) -> None:
        """Make the tree's folders; raises CopyError, before anything is changed, if the destination has other
        things of the same names."""
        if conflicts := list(self._conflicts()):
            raise CopyError("; ".join(conflicts[:MOST_NAMED]))
        (self.root.parent if self.tree.is_file else self.root).mkdir(parents=True, exist_ok=True)
        for name in self._folders():
            self.path(name).mkdir(exist_ok=True)

    def has(self, name: str, sha256: str) -> bool:
        """Whether the file is there, with this content."""
        path = self.path(name)
        if path.is_symlink() or not path.is_file() or path.stat().st_size != self.tree.files[name]:
            return False
        return digest(path) == sha256

    @contextmanager
    def part(self, name: str) -> Iterator["Part"]:
        """A file to write to; it is removed if it was not finished."""
        part = Part(self.path(name), self._part_path(name))
        try:
            yield part
        finally:
            part.close()

    def link(self) -> list[str]:
        """Make the tree's symbolic links, after all files: nothing is written through them. Links that lead out of
        the tree are left out, and returned."""
        left = [name for name, target in self.tree.links.items() if not stays_inside(name, target)]
        for name in self.tree.links.keys() - set(left):
            path, target = self.path(name), self.tree.links[name]
            if not (path.is_symlink() and path.readlink() == Path(target)):
                path.unlink(missing_ok=True)
                path.symlink_to(target)
        return sorted(left)

    def _folders(self) -> list[str]:
        tree = self.tree
        return [] if tree.is_file else sorted({*tree.folders, *parents((*tree.files, *tree.links))})

    def _conflicts(self) -> Iterator[str]:
        """Conflicts with what is at the destination. A link to a folder is one, too, except for the root."""
        if not self.tree.is_file and self.root.exists() and not self.root.is_dir():
            yield f"{self.root} is a file, and would become a folder"
        for name in self._folders():
            path = self.path(name)
            if path.is_symlink() or (path.exists() and not path.is_dir()):
                kind = "link" if path.is_symlink() else "file"
                yield f"{shown(str(path))} is a {kind}, and would become a folder"
        for name in (*self.tree.files, *self.tree.links):
            path = self.path(name)
            if path.is_dir() and not path.is_symlink():
                yield f"{shown(str(path))} is a folder, and would become a file"

    def _part_path(self, name: str) -> Path:
        """A path for the unfinished file, whose name is not in the tree and not too long."""
        folder, _, last = name.rpartition("/")
        part = os.fsdecode(os.fsencode(last)[: LONGEST_NAME - 4 * len(PART)]) + PART
        while (f"{folder}/{part}" if folder else part) in self.tree.files:
            part += PART
        return self.path(name).with_name(part)


class Part:
    """A file that gets its name when it is complete."""

    def __init__(self, path: Path, part: Path) -> None:
        self._path, self._part = path, part
        part.unlink(missing_ok=True)  # it may be a link
        self._file: BinaryIO = part.open("xb")
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def finish(self, sha256: str, mode: int, modified: float) -> bool:
        """Give the file its name, if its content has this SHA-256."""
        if self._hash.hexdigest() != sha256:
            return False
        self._file.close()
        if mode & 0o100:
            self._part.chmod(self._part.stat().st_mode | 0o111 & ~_umask())
        os.utime(self._part, (modified, modified))
        self._part.replace(self._path)
        return True

    def close(self) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)


def _umask() -> int:
    """The umask, which can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
