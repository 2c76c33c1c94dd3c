"""Recorded code as trees of git: what differs between two of them, and one of them as a folder again.

Nothing is left in the user's repository but the worktree that was asked for: objects and indexes are temporary.
"""

import tempfile
from pathlib import Path

from msgspec import Struct

from tfyard.errors import NotPossible, TfyardError
from tfyard.job_input.bounded_process import QuestionLimits
from tfyard.job_input.git import GitTree
from tfyard.model.origin import CodeState

LONGEST = 120.0
"""Seconds; a large tree is read twice."""
MOST_READ = 64 << 20
INDEPENDENT = ("--binary", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")


class RecordedCode(Struct, frozen=True, kw_only=True):
    """The code of one job."""

    label: str
    state: CodeState
    diff: str


def difference(one: RecordedCode, other: RecordedCode, here: Path) -> str:
    """The difference between the code of two jobs, as `git diff` writes it. `here`: a folder of the repository, if
    the recorded one is not on this machine."""
    for code in (one, other):
        if not code.state.commit:
            raise NotPossible(
                f"the code of {code.label} is not known: {code.state.problem or 'no commit was recorded'}"
            )
    limits = QuestionLimits(LONGEST)
    tree = _repository([one, other], here, limits)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "objects").mkdir()
        objects = _answer_of(tree, "rev-parse", "--path-format=absolute", "--git-path", "objects")
        apart = {"GIT_OBJECT_DIRECTORY": str(folder / "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        scratch = GitTree(tree.folder, limits, apart, MOST_READ)
        sides = [_written(scratch, code, folder / f"index-{turn}") for turn, code in enumerate((one, other))]
        return _answer_of(scratch, "diff", *INDEPENDENT, "--color=never", *sides, strip=False)


def checked_out(code: RecordedCode, at: Path) -> None:
    """Makes a worktree with the recorded commit and diff. Its branch is none, and no hook runs."""
    limits = QuestionLimits(LONGEST)
    tree = _repository([code], Path(code.state.root or "."), limits)
    at.parent.mkdir(parents=True, exist_ok=True)
    _answer_of(tree, "worktree", "add", "--detach", "--force", str(at.absolute()), code.state.commit)
    if not code.diff:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".diff", encoding="utf-8", newline="") as file:
        file.write(code.diff)
        file.flush()
        try:
            _answer_of(GitTree(at, limits), "apply", "--index", "--whitespace=nowarn", file.name)
        except TfyardError:
            tree.ask("worktree", "remove", "--force", str(at.absolute()))
            raise


def _written(tree: GitTree, code: RecordedCode, index: Path) -> str:
    """The hash of the tree of a commit with its diff."""
    own = GitTree(tree.folder, tree.limits, {**tree.variables, "GIT_INDEX_FILE": str(index)})
    _answer_of(own, "read-tree", code.state.commit)
    if code.diff:
        file = index.with_suffix(".diff")
        file.write_bytes(code.diff.encode())
        _answer_of(own, "apply", "--cached", "--whitespace=nowarn", str(file))
    return _answer_of(own, "write-tree")


def _repository(codes: list[RecordedCode], here: Path, limits: QuestionLimits) -> GitTree:
    """A tree on this machine that has all these commits."""
    folders = [*(Path(code.state.root) for code in codes if code.state.root), here]
    missing = codes[0]
    for folder in dict.fromkeys(folders):
        tree = GitTree(folder, limits)
        lacking = [
            code for code in codes if tree.ask("cat-file", "-e", f"{code.state.commit}^{{commit}}").problem
        ]
        if not lacking:
            return GitTree(Path(_answer_of(tree, "rev-parse", "--show-toplevel")), limits)
        missing = lacking[0]
    way = f"fetch it ({missing.state.remote})" if missing.state.remote else "fetch it"
    text = f"commit {missing.state.commit[:12]} of {missing.label} is in no git tree here"
    raise NotPossible(f"{text}; call this in its repository, or {way}")


def _answer_of(tree: GitTree, *words: str, strip: bool = True) -> str:
    answer = tree.ask(*words)
    if answer.problem:
        raise TfyardError(f"git {words[0]}: {answer.problem}")
    text = answer.out.decode(errors="replace")
    return text.strip() if strip else text
