"""The state of the code's git tree: commit, branch, and what is not committed.

git is asked only for what it knows by itself: no hooks, no file system monitor, no network, and never for long.
Whatever is wrong with the tree becomes a sentence in the record.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard.job_input.bounded_process import ProgramAnswer, QuestionLimits, ask
from tfyard.model.origin import LARGEST_DIFF, CodeState
from tfyard.model.secrecy import reveals, scrubbed

LONGEST = 10.0
"""Seconds for all questions together."""
MOST_READ = 4 << 20
"""Bytes of one answer; the rest is not read."""
LARGEST_NEW, MOST_NEW = 64 << 10, 500
"""Bytes of a file that git does not know yet, and the number of such files, that become part of the diff."""
MOST_NAMED = 200
"""Changed files that are named; more are counted."""
SETTINGS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false", "core.pager=cat"),
    *("color.ui=false", "color.diff=false", "submodule.recurse=false", "apply.ignoreWhitespace=no"),
    *("diff.noprefix=false", "diff.mnemonicPrefix=false", "diff.relative=false", "diff.context=3"),
    *("diff.orderFile=/dev/null", "diff.suppressBlankEmpty=false"),
)
NONE: Mapping[str, str] = {}
QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "true",
    "LC_ALL": "C",
}
KEPT_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")
DIFF = (
    *("diff", "HEAD", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"),
    *("--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/"),
)
STATUS = (
    *("status", "--porcelain=v2", "-z", "--no-renames"),
    *("--untracked-files=all", "--ignore-submodules=untracked"),
)
PLACE = ("rev-parse", "--show-toplevel", "--show-prefix", "HEAD")
"""Asked first, because git knows it at once: the status may take too long, or fail."""
NO_TREE = "not in a git tree"

_STRANGE = re.compile(r'["\\\x00-\x1f\x7f]')
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)


class Uncommitted(Struct, frozen=True):
    path: str
    mark: str
    """The letters of `git status --short`: M, A, D, ??, …"""
    is_submodule: bool = False

    def __str__(self) -> str:
        return f"{self.mark} {self.path}"


class GitTree:
    """A folder of which git is asked questions, all of them within the same limits."""

    def __init__(
        self, folder: Path, limits: QuestionLimits, variables: Mapping[str, str] = NONE, most: int = MOST_READ
    ) -> None:
        self.folder, self.limits, self.variables, self._most = folder, limits, variables, most

    def ask(self, *words: str) -> ProgramAnswer:
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        env = {**environment(), **self.variables}
        answer = ask(["git", *settings, *words], env, self.folder, self.limits, self._most)
        return ProgramAnswer(answer.out, answer.problem and _reason(answer.problem))


def environment() -> dict[str, str]:
    """Variables of git: none that names another tree, as a hook that has started us would have set."""
    own = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("GIT_") or name in KEPT_VARIABLES
    }
    return {**own, **QUIET}


def read(folder: Path, limits: QuestionLimits) -> tuple[CodeState, str]:
    """The state of the tree around a folder, and its diff: what `git apply` adds to the commit."""
    if not folder.is_dir():
        return CodeState(problem=f"{folder} is not a folder"), ""
    tree = GitTree(folder, limits)
    where = tree.ask(*PLACE)
    root, prefix, commit = [*where.out.decode(errors="replace").split("\n"), "", ""][:3]
    if not root:
        return CodeState(problem=where.problem or NO_TREE), ""
    tree.folder = Path(root)
    branch = tree.ask("symbolic-ref", "--quiet", "HEAD").out.decode(errors="replace").strip()
    answer = tree.ask(*STATUS)
    changes = _status(answer.out)
    state = CodeState(
        commit="" if where.problem else commit,
        branch=branch.removeprefix("refs/heads/"),
        remote=_remote(tree),
        root=root,
        folder=prefix.rstrip("/"),
        is_dirty=None if answer.problem and not changes else bool(changes),
        changed=tuple(_named(changes)),
        problem=answer.problem and f"not all changes are known: {answer.problem}",
    )
    if not state.commit:
        return replace(state, problem=state.problem or "the git tree has no commit yet"), ""
    return _with_diff(tree, state, changes)


def _with_diff(tree: GitTree, state: CodeState, changes: Sequence[Uncommitted]) -> tuple[CodeState, str]:
    """The state with what is missing in the diff, and the diff: as much of it as a record may hold."""
    parts, missing, size = list[str](), list[str](), 0
    diff = tree.ask(*DIFF) if any(change.mark != "??" for change in changes) else ProgramAnswer(b"")
    sections = dict(_sections(diff))
    for number, change in enumerate(changes):
        text, why = _part(tree.folder, change, sections, diff.problem, is_late=number >= MOST_NEW)
        if not why and size + len(text.encode()) > LARGEST_DIFF:
            why = f"the diff would have more than {LARGEST_DIFF >> 10} KiB"
        if why:
            missing.append(f"{scrubbed(change.path)}: {why}")
            continue
        parts.append(text)
        size += len(text.encode())
    if len(missing) > MOST_NAMED:
        missing[MOST_NAMED:] = [f"{len(missing) - MOST_NAMED} more files"]
    return replace(state, missing=tuple(missing)), "".join(parts)


def _part(
    root: Path, change: Uncommitted, sections: dict[str, bytes], problem: str, *, is_late: bool
) -> tuple[str, str]:
    """The diff of one file; or why there is none."""
    if change.is_submodule:
        return "", "changes of a submodule are not recorded"
    if _STRANGE.search(change.path):
        return "", "its name has special characters"
    if change.mark == "??":
        text, why = ("", "there are too many new files") if is_late else _new_file(root, change.path)
    else:
        section = sections.get(change.path)
        text, why = _text(section) if section is not None else ("", problem or "git has no diff of it")
    if not why and reveals(change.path, text):
        return "", "it seems to hold a secret"
    return text, why


def _text(data: bytes) -> tuple[str, str]:
    try:
        return data.decode(), ""
    except UnicodeDecodeError:
        return "", "it is not UTF-8"


def _new_file(root: Path, path: str) -> tuple[str, str]:
    """The diff of a file that git does not know yet."""
    file = root / path
    try:
        if file.is_symlink() or not file.is_file():
            return "", "only new files are recorded, no links and folders"
        if (size := file.stat().st_size) > LARGEST_NEW:
            return "", f"a new file of {size >> 10} KiB"
        data, mode = file.read_bytes(), "100755" if os.access(file, os.X_OK) else "100644"
    except OSError as error:
        return "", error.strerror or "it cannot be read"
    text, why = _text(data)
    if why or "\0" in text:
        return "", "a new file that is no text"
    head = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n"
    if not text:
        return f"{head}index {'0' * 40}..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n", ""
    lines = text.split("\n")
    ending = "" if lines[-1] == "" else "\n\\ No newline at end of file"
    lines = lines[:-1] if lines[-1] == "" else lines
    body = "".join(f"\n+{line}" for line in lines)
    return f"{head}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@{body}{ending}\n", ""


def _sections(diff: ProgramAnswer) -> Iterator[tuple[str, bytes]]:
    """Path -> its part of the diff. If the answer is not whole, neither is its last part, which is dropped."""
    starts = [match.start() for match in _SECTION.finditer(diff.out)]
    ends = [*starts[1:], len(diff.out)]
    if diff.problem:
        starts = starts[:-1]
    for start, end in zip(starts, ends, strict=False):
        head = diff.out[start:end].split(b"\n", 1)[0].decode(errors="replace").removeprefix("diff --git ")
        yield head[len(head) // 2 + 1 :].removeprefix("b/"), diff.out[start:end]


def _status(out: bytes) -> list[Uncommitted]:
    """The changes of `git status --porcelain=v2 -z`."""
    changes = list[Uncommitted]()
    for field in out.decode("utf-8", "surrogateescape").split("\0")[:-1]:  # the last one is empty, or cut
        kind, _, rest = field.partition(" ")
        if kind == "?":
            changes.append(Uncommitted(_printable(rest), "??"))
        elif kind in "1u" and (words := rest.split(" ", 7 if kind == "1" else 9)):
            mark = words[0].replace(".", "").strip() or "M"
            changes.append(Uncommitted(_printable(words[-1]), mark[:2], words[1].startswith("S")))
    return changes


def _printable(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\ufffd", "\x7f")


def _named(changes: Sequence[Uncommitted]) -> Iterator[str]:
    yield from (scrubbed(str(change)).replace("\x7f", "?") for change in changes[:MOST_NAMED])
    if len(changes) > MOST_NAMED:
        yield f"and {len(changes) - MOST_NAMED} more"


def _remote(tree: GitTree) -> str:
    """The address of `origin`, or else of the first remote, without credentials."""
    answer = tree.ask("config", "--get-regexp", r"^remote\..*\.url$")
    pairs = [line.partition(" ") for line in answer.out.decode(errors="replace").splitlines()]
    urls = {name.removeprefix("remote.").removesuffix(".url"): url for name, _, url in pairs}
    return scrubbed(urls.get("origin") or next(iter(urls.values()), ""))


def _reason(errors: str) -> str:
    """The reason in git's own words, in one line."""
    if "not a git repository" in errors:
        return NO_TREE
    first = next(
        (line for line in errors.splitlines() if line.startswith("fatal:")), errors.partition("\n")[0]
    )
    return scrubbed(first.removeprefix("fatal: "))[:200]
