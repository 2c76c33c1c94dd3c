"""The state of a git tree: what is recorded, what is left out and why; and nothing of the tree holds it up."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.job_input.repository import commit, git, repository
from tests.model.test_secrecy import SECRET
from tfyard.errors import NotPossible, TfyardError
from tfyard.job_input.bounded_process import QuestionLimits
from tfyard.job_input.git import LARGEST_NEW, NO_TREE, read
from tfyard.job_input.git_trees import RecordedCode, checked_out, difference
from tfyard.model.origin import LARGEST_DIFF, CodeState

pytestmark = pytest.mark.processes


def state(folder: Path) -> tuple[CodeState, str]:
    return read(folder, QuestionLimits(30))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return repository(tmp_path / "tree", {"train.py": "print(1)\n", "a/b.txt": "b\n", "gone": "x\n"})


def test_a_clean_tree_has_a_commit_a_branch_and_no_diff(tree: Path) -> None:
    found, diff = state(tree / "a")
    assert (found.commit, found.branch, found.folder) == (git(tree, "rev-parse", "HEAD"), "main", "a")
    assert (found.is_dirty, found.changed, found.problem, diff) == (False, (), "", "")


def test_the_diff_makes_the_tree_of_the_commit_what_it_was(tree: Path, tmp_path: Path) -> None:
    """Changed, staged, deleted and new files, empty ones, without a last line break, executable, with spaces."""
    (tree / "train.py").write_text("print(2)")
    (tree / "gone").unlink()
    (tree / "new file.py").write_text("a\n\nb")
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "empty").touch()
    (tree / "grün.txt").write_text("ü\n")
    (tree / "image.bin").write_bytes(bytes(range(256)))
    git(tree, "add", "image.bin")
    found, diff = state(tree)
    assert (found.is_dirty, len(found.changed), found.missing) == (True, 7, ())
    checked_out(RecordedCode(label="a", state=found, diff=diff), tmp_path / "again")
    again = tmp_path / "again"
    files = {
        path.relative_to(tree) for path in tree.rglob("*") if ".git" not in path.parts and path.is_file()
    }
    assert {path.relative_to(again) for path in again.rglob("*") if path.is_file()} - {Path(".git")} == files
    assert all((again / path).read_bytes() == (tree / path).read_bytes() for path in files)
    assert os.access(again / "run.sh", os.X_OK)


def test_what_is_too_much_or_secret_is_left_out_and_named(tree: Path) -> None:
    (tree / "large.txt").write_text("x" * (LARGEST_NEW + 1))
    (tree / "data.bin").write_bytes(b"\0\1")
    (tree / "latin.txt").write_bytes("ü".encode("latin-1"))
    (tree / "link").symlink_to("train.py")
    (tree / "conf.py").write_text(f'API_KEY = "{SECRET}"\n')
    (tree / ".env").write_text("A=b\n")
    (tree / 'quo"te').write_text("x\n")
    (tree / "train.py").write_text("y" * LARGEST_DIFF + "\n")
    (tree / "fine.py").write_text("pad_token = '[PAD]'\nkey = 'loss'\n")
    found, diff = state(tree)
    why = dict(text.split(": ", 1) for text in found.missing)
    assert why == {
        "large.txt": "a new file of 64 KiB",
        "data.bin": "a new file that is no text",
        "latin.txt": "a new file that is no text",
        "link": "only new files are recorded, no links and folders",
        "conf.py": "it seems to hold a secret",
        ".env": "it seems to hold a secret",
        'quo"te': "its name has special characters",
        "train.py": "the diff would have more than 384 KiB",
    }
    assert [line for line in diff.splitlines() if line.startswith("diff")] == [
        "diff --git a/fine.py b/fine.py"
    ]


def test_trees_that_are_none_or_not_yet_or_detached(tree: Path, tmp_path: Path) -> None:
    assert state(tmp_path)[0].problem == NO_TREE
    assert state(tmp_path / "absent")[0].problem.endswith("is not a folder")
    (tmp_path / "young").mkdir()
    git(tmp_path / "young", "init", "--quiet")
    (tmp_path / "young" / "x").touch()
    young, _ = state(tmp_path / "young")
    assert (young.commit, young.is_dirty, young.problem) == ("", True, "the git tree has no commit yet")
    git(tree, "checkout", "--quiet", "--detach")
    assert state(tree)[0].branch == ""
    assert len(state(tree)[0].commit) == 40


def test_without_git_the_record_says_so(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert state(tree)[0].problem == "git is not installed"


def test_a_submodule_is_named_and_its_changes_are_not_recorded(tree: Path, tmp_path: Path) -> None:
    other = repository(tmp_path / "other", {"lib.py": "1\n"})
    git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "lib")
    commit(tree)
    (tree / "lib" / "lib.py").write_text("2\n")
    found, diff = state(tree)
    assert (found.changed, diff) == (("M lib",), "")
    assert found.missing == ("lib: changes of a submodule are not recorded",)
    assert state(tree / "lib")[0].changed == ("M lib.py",)


def test_the_variables_of_a_hook_do_not_lead_to_another_tree(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other", {"x": "1\n"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert state(tree)[0].root == str(tree)


def test_no_hook_monitor_filter_or_driver_runs_or_holds_it_up(tree: Path, tmp_path: Path) -> None:
    """A monitor and an external diff that would never end are not asked; a filter that never ends is ended."""
    hang = tmp_path / "hang"
    hang.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 600\n")
    hang.chmod(0o755)
    git(tree, "config", "core.fsmonitor", str(hang))
    git(tree, "config", "diff.external", str(hang))
    git(tree, "config", "diff.slow.textconv", str(hang))
    (tree / ".git" / "hooks" / "post-checkout").symlink_to(hang)
    (tree / "train.py").write_text("print(2)\n")
    found, diff = state(tree)
    assert ("+print(2)" in diff, found.missing) == (True, ())
    checked_out(RecordedCode(label="a", state=found, diff=diff), tmp_path / "again")
    assert not (tmp_path / "asked").exists()

    git(tree, "config", "filter.slow.clean", str(hang))
    (tree / ".git" / "info").mkdir(exist_ok=True)
    (tree / ".git" / "info" / "attributes").write_text("* filter=slow\n")
    (tree / "train.py").write_text("print(22)\n")
    found, _ = read(tree, QuestionLimits(2))
    assert "took too long" in found.problem
    assert (tmp_path / "asked").exists(), "it was the filter that held it up"
    left = subprocess.run(["pgrep", "-f", f"{tmp_path}/hang"], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_the_difference_of_the_code_leaves_nothing_in_the_repository(tree: Path) -> None:
    (tree / "train.py").write_text("print(2)\n")
    one = RecordedCode(label="one", state=(first := state(tree))[0], diff=first[1])
    commit(tree)
    (tree / "train.py").write_text("print(3)\n")
    (tree / "new.py").write_text("new\n")
    other = RecordedCode(label="other", state=(last := state(tree))[0], diff=last[1])
    before = sorted(path for path in (tree / ".git").rglob("*"))
    text = difference(one, other, tree.parent)
    assert [line for line in text.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "+new",
        "-print(2)",
        "+print(3)",
    ]
    assert sorted(path for path in (tree / ".git").rglob("*")) == before
    assert difference(one, one, tree) == ""


def test_a_commit_that_is_not_here_is_named_with_where_it_is(tree: Path) -> None:
    here = RecordedCode(label="one", state=state(tree)[0], diff="")
    gone = CodeState(commit="c" * 40, remote="https://h/x.git")
    with pytest.raises(
        NotPossible, match=r"commit cccccccccccc of other is in no git tree here.*https://h/x.git"
    ):
        difference(here, RecordedCode(label="other", state=gone, diff=""), tree)
    with pytest.raises(NotPossible, match="the code of other is not known: no commit was recorded"):
        difference(here, RecordedCode(label="other", state=CodeState(), diff=""), tree)


def test_odd_settings_of_the_user_change_neither_the_diff_nor_what_it_becomes(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "gitconfig"
    odd.write_text(
        "[color]\nui = always\ndiff = always\nstatus = always\n[diff]\ncontext = 0\ninterHunkContext = 9\n"
        "noprefix = true\nmnemonicPrefix = true\norderFile = /nonexistent\nsuppressBlankEmpty = true\n"
        "algorithm = histogram\nsubmodule = log\nrenames = copies\nwsErrorHighlight = all\n"
        "[status]\nrenames = copies\nshowUntrackedFiles = no\nrelativePaths = true\n[core]\nquotePath = true\n"
        "autocrlf = true\nwhitespace = cr-at-eol\n[apply]\nwhitespace = error\nignoreWhitespace = change\n"
        "[submodule]\nrecurse = true\n[alias]\nstatus = !false\ndiff = !false\n[checkout]\nworkers = 0\n"
    )
    (tree / "a" / "b.txt").write_bytes(b"one\r\ntwo\r\n\r\nthree \r\nfour\r\nfive\r\n")
    commit(tree)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(odd))
    (tree / "a" / "b.txt").write_bytes(b"one\r\ntwo\r\n\r\nthree!\t \r\nfour\r\nfive\r\n")
    git(tree, "mv", "gone", "moved")
    (tree / "moved").write_text("x\ny\n")
    (tree / "copied").write_text("x\n")
    git(tree, "add", "copied")
    found, diff = state(tree)
    assert found.problem == ""
    assert found.changed == ("M a/b.txt", "A copied", "D gone", "AM moved")
    assert (found.missing, found.problem, "\x1b" in diff) == ((), "", False)
    file = tmp_path / "code.diff"
    file.write_text(diff, encoding="utf-8", newline="")
    again = tmp_path / "again"
    checked_out(RecordedCode(label="a", state=found, diff=diff), again)
    assert (again / "a" / "b.txt").read_bytes().split(b"\r\n")[3] == b"three!\t "
    assert state(again)[1] == diff


def test_where_not_all_can_be_known_the_commit_and_the_branch_are(tree: Path) -> None:
    expected = git(tree, "rev-parse", "HEAD")
    (tree / ".git" / "index").write_text("damaged")
    found, diff = state(tree)
    assert (found.commit, found.branch, found.is_dirty, diff) == (expected, "main", None, "")
    assert found.problem.startswith("not all changes are known: ")


def test_a_diff_that_does_not_apply_leaves_no_worktree(tree: Path, tmp_path: Path) -> None:
    wrong = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-never\n+there\n"
    with pytest.raises(TfyardError, match="git apply"):
        checked_out(RecordedCode(label="a", state=state(tree)[0], diff=wrong), tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert "again" not in git(tree, "worktree", "list")
