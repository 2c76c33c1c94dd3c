"""The folder of a job's code: which files belong to it, their hash, and their bytes, one file at a time.

Files that git ignores are left out, by each `.gitignore` in the folder and in the repository around it. A
`.tfyardignore` has the same syntax and takes precedence. Links are followed if they stay inside of the folder.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import Match
from typing import TYPE_CHECKING

from msgspec import Struct
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from tfyard.errors import Invalid, TfyardError, Usage
from tfyard.model import Code, Job, Problem
from tfyard.render import CodeFile

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

# fmt: off
NEVER = frozenset({
    ".git", ".hg", ".svn", ".tfyard", ".kube", ".venv", ".tox", ".nox", "__pycache__", ".ipynb_checkpoints",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".DS_Store",
})
# fmt: on
"""Names of files and folders that are always left out: no task needs them."""
KUBECONFIG = re.compile(r"(.*[._-])?kubeconfig(\.(ya?ml|json|conf))?")
"""Names of files with logins, which everybody in the namespace could read with the code."""
ENVIRONMENT = "pyvenv.cfg"
"""File in every virtual environment, by which one is recognized."""
RULES = (".gitignore", ".tfyardignore")
MAX_READ = 16 << 20
"""Maximum number of bytes that are read: far more than fits into a ConfigMap, even compressed."""
CHUNK = 1 << 20
_FOLDER_MARK = "ps_d"
"""pathspec's regex group for the `/` after a matching folder."""

Identity = tuple[int, int]


class FileChanged(TfyardError):
    """A file was changed since the folder was listed."""


class FolderFile(Struct, frozen=True):
    path: str
    """Path relative to the folder, with `/` between the parts."""
    source: str
    size: int
    executable: bool
    stamp: tuple[int, int, int]
    """Device, inode and time of the last change."""


class CodeFolder(Struct, frozen=True):
    path: Path
    files: tuple[FolderFile, ...]
    """The files, sorted by path."""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def largest(self, count: int) -> list[FolderFile]:
        return sorted(self.files, key=lambda file: -file.size)[:count]


def find(folder: Path, output: str | None = None) -> CodeFolder:
    """The files of a folder; raises Invalid with every link that cannot be followed. `output`: a file or folder
    that the command writes to, which is no code; neither is a kubeconfig."""
    try:
        if not folder.is_dir():
            raise Usage(f"code: {folder} is not a folder")
        walk = _Walk(folder.resolve(), _identities(output))
        walk.run()
    except OSError as error:
        raise Usage(f"code: {error.filename or folder}: {error.strerror}") from None
    if walk.problems:
        raise Invalid(walk.problems)
    return CodeFolder(folder, tuple(sorted(walk.files, key=lambda file: file.path)))


def of_code(code: Code, base: Path, output: str | None = None) -> CodeFolder:
    """The folder of a job's code, checked for its requirements file. `base`: the folder of the job file."""
    folder = find(base / code.source, output)
    requirements = code.requirements.removeprefix("./")
    if requirements and all(file.path != requirements for file in folder.files):
        text = f"{requirements} is not among the files of the code"
        fix = f"if a rule leaves it out, write !{requirements} into .tfyardignore"
        raise Invalid([Problem(("requirements",), text, fix)])
    return folder


def read(job: Job, base: Path, output: str | None) -> tuple[CodeFile, ...]:
    """The files of the job's code with their contents, for manifests. `base`: the folder of the job file."""
    if job.code is None or job.code.kind != "folder":
        return ()
    folder = of_code(job.code, base, output)
    if folder.size > MAX_READ:
        raise Invalid([_too_large(folder)])
    return load(folder)


def load(folder: CodeFolder) -> tuple[CodeFile, ...]:
    return tuple(CodeFile(file.path, b"".join(contents(file)), file.executable) for file in folder.files)


def contents(file: FolderFile) -> Iterator[bytes]:
    """The content in parts; raises `FileChanged` if it is not the file that was listed, or changes meanwhile."""
    try:
        with Path(file.source).open("rb", buffering=0) as opened:
            _require_same(file, os.fstat(opened.fileno()))
            while data := opened.read(CHUNK):
                yield data
            _require_same(file, os.fstat(opened.fileno()))
    except FileNotFoundError:
        raise _changed(file) from None
    except OSError as error:
        raise Usage(f"code: {file.path}: {error.strerror}") from None


def sums(folder: CodeFolder) -> list[str]:
    """The SHA-256 of each file, in the order of the files."""
    return [_sum(contents(file)) for file in folder.files]


def digest(folder: CodeFolder, checksums: Iterable[str]) -> str:
    """One hash of all names, modes and contents: 128 bits, in hexadecimal. `checksums`: the result of `sums`."""
    whole = hashlib.sha256()
    for file, content in zip(folder.files, checksums, strict=True):
        mode = "755" if file.executable else "644"
        whole.update(f"{mode} {content} ".encode() + os.fsencode(file.path) + b"\0")
    return whole.hexdigest()[:32]


def _sum(parts: Iterable[bytes]) -> str:
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part)
    return checksum.hexdigest()


def _require_same(file: FolderFile, now: os.stat_result) -> None:
    if (_stamp(now), now.st_size) != (file.stamp, file.size):
        raise _changed(file)


def _changed(file: FolderFile) -> FileChanged:
    return FileChanged(f"code: {file.path} was changed while it was being read; try again")


class _Walk:
    """One walk through a folder. Paths of rules begin at `top`, the repository that the folder is in."""

    def __init__(self, root: Path, ours: set[Identity]) -> None:
        self.root, self._ours = root, ours
        self.files: list[FolderFile] = []
        self.problems: list[Problem] = []
        self._top = _repository(root)
        self._prefix = f"{root.relative_to(self._top).as_posix()}/" if root != self._top else ""

    def run(self) -> None:
        waiting: list[tuple[Path, str, tuple[Rules, ...], tuple[Path, ...]]]
        waiting = [(self.root, "", self._rules_above(), (self.root,))]
        while waiting:
            directory, path, rules, chain = waiting.pop()
            rules = (*rules, *_rules_of(directory, self._prefix + path))
            with os.scandir(directory) as entries:
                for entry in entries:
                    target = self._visit(entry, path + entry.name, rules, chain)
                    if target is not None:
                        waiting.append((target, f"{path}{entry.name}/", rules, (*chain, target)))

    def _rules_above(self) -> tuple["Rules", ...]:
        """Rules of the repository around the folder; none if they leave out the folder itself."""
        above: tuple[Rules, ...] = ()
        parts = self._prefix.split("/")[:-1]
        for depth in range(len(parts)):
            key = "".join(f"{part}/" for part in parts[:depth])
            above = (*above, *_rules_of(self._top / key, key))
            if _is_ignored(f"{key}{parts[depth]}/", above):
                return ()
        return above

    def _visit(
        self, entry: os.DirEntry[str], path: str, rules: tuple["Rules", ...], chain: tuple[Path, ...]
    ) -> Path | None:
        """Add a file; for a folder, return the path to enter."""
        is_folder = entry.is_dir()
        if (
            entry.name in NEVER
            or KUBECONFIG.fullmatch(entry.name)
            or _is_ignored(self._prefix + path + "/" * is_folder, rules)
        ):
            return None
        if "\n" in path:
            self._object(f"the name {path!r} has a line break", "rename it, or name it in .tfyardignore")
            return None
        target = Path(entry.path).resolve() if entry.is_symlink() else Path(entry.path)
        if not (is_folder or entry.is_file()):
            return None  # a socket, a pipe, or a link to nothing, as editors make them
        if entry.is_symlink() and not self._is_followed(path, target, chain):
            return None
        if is_folder:
            return None if (target / ENVIRONMENT).exists() or self._is_ours(target.stat()) else target
        self._add(path, target)
        return None

    def _is_followed(self, path: str, target: Path, chain: tuple[Path, ...]) -> bool:
        """Whether a link stays inside: other files must not be published with the code."""
        fix = "copy what it leads to into the folder, remove the link, or name it in .tfyardignore"
        if not target.is_relative_to(self.root):
            self._object(f"the link {path} leads out of the folder, to {target}", fix)
        elif target in chain:
            self._object(f"the link {path} leads to a folder that it is in", "remove the link")
        else:
            return True
        return False

    def _is_ours(self, stat: os.stat_result) -> bool:
        return _identity(stat) in self._ours

    def _object(self, text: str, fix: str) -> None:
        self.problems.append(Problem(("code",), text, fix))

    def _add(self, path: str, source: Path) -> None:
        stat = source.stat()
        if not self._is_ours(stat):
            is_program = bool(stat.st_mode & 0o100)
            self.files.append(FolderFile(path, str(source), stat.st_size, is_program, _stamp(stat)))


def _stamp(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


def _identities(output: str | None) -> set[Identity]:
    """Identity of the output file, even if it is the `> file` of a shell, and of the kubeconfigs in use."""
    names = [output or "", *os.environ.get("KUBECONFIG", "").split(os.pathsep)]
    outputs = {_identity(Path(name).stat()) for name in names if name and Path(name).exists()}
    try:
        return outputs | {_identity(os.fstat(sys.stdout.fileno()))}
    except (OSError, ValueError):
        return outputs  # a stdout that is not a file cannot be in the folder


def _identity(stat: os.stat_result) -> Identity:
    return stat.st_dev, stat.st_ino


def _too_large(folder: CodeFolder) -> Problem:
    names = ", ".join(f"{file.path} ({file.size:,} bytes)" for file in folder.largest(3))
    text = f"the folder has {folder.size:,} bytes, and a ConfigMap takes 1 MiB"
    fix = (
        "leave data out by .gitignore or .tfyardignore, send the job with `tfyard submit`,"
        f" or give a git or http(s) address; the largest files: {names}"
    )
    return Problem(("code",), text, fix)


# --- what git ignores


def _repository(root: Path) -> Path:
    return next((each for each in (root, *root.parents) if (each / ".git").exists()), root)


def _rules_of(directory: Path, key: str) -> list["Rules"]:
    """The rules of one folder. A link is not read: git does not either."""
    files = [file for name in RULES if (file := directory / name).is_file() and not file.is_symlink()]
    return [Rules(os.fsdecode(file.read_bytes()), key) for file in files]


def _is_ignored(path: str, rules: tuple["Rules", ...]) -> bool:
    """Whether a path is ignored: the deepest rules with a matching pattern decide."""
    decisions = (each.ignores(path) for each in reversed(rules))
    return bool(next((is_ignored for is_ignored in decisions if is_ignored is not None), False))


class Rules:
    """The rules of one file in the folder `folder`, which ends with `/` and is empty at the top.

    pathspec translates the patterns. This class finds the one that decides, for one path at a time on the way
    down, as git does: it reads rules such as `*`, `!*/`, `!*.py` so, because it does not enter a folder that is
    left out."""

    def __init__(self, text: str, folder: str = "") -> None:
        lines = text.removeprefix("\ufeff").split("\n")
        self.folder = folder
        self._patterns = [pattern for line in lines if (pattern := _pattern(line.removesuffix("\r")))]

    def ignores(self, path: str) -> bool | None:
        """Whether the rules leave out this path from the top; a folder's ends with `/`. None: neither."""
        inside = path.removeprefix(self.folder)
        return next((each.include for each in reversed(self._patterns) if _is_about(each, inside)), None)


def _pattern(line: str) -> "GitIgnoreSpecPattern | None":
    """The pattern of a line; None for comments, and for lines that git cannot read either."""
    try:
        pattern = GitIgnoreSpecPattern(f"{line}*/" if line.endswith("/**/") else line)  # as git reads it
    except ValueError:
        return None
    return pattern if pattern.include is not None else None


def _is_about(pattern: "GitIgnoreSpecPattern", path: str) -> bool:
    """Whether a pattern matches the path itself: not a folder above it, which was decided before, and not only
    what is inside of it, as `folder/**` does."""
    assert pattern.regex is not None
    for match in pattern.regex.finditer(path):
        has_mark = bool(match.groupdict().get(_FOLDER_MARK))
        is_whole = match.end(_FOLDER_MARK) == len(path) if has_mark else not _ends_with_slash(match)
        if is_whole:
            return True
    return False


def _ends_with_slash(match: Match[str]) -> bool:
    return match.string.endswith("/") and match.end() == len(match.string)
