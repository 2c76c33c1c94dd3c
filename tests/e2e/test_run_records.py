"""What a run records of its code and its surroundings, and runs compared and repeated by their records."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Yard
from tests.job_input.repository import commit, git, repository
from tests.model.test_secrecy import SECRET
from tfyard.backends.local import run_names
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import runs
from tfyard.model.run_record import RunRecord

pytestmark = pytest.mark.processes
PROGRAM = """\
import sys
loss = float(sys.argv[sys.argv.index("--lr") + 1])
for step in (1, 2, 3): print("step", step, "loss", loss / step)
"""


@pytest.fixture
def code(yard: Yard) -> Path:
    return repository(yard.folder, {"train.py": PROGRAM, ".gitignore": ".tfyard\n"})


def record(yard: Yard, name: str = "@latest") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        yard.tfyard("describe", name, "--record", "--local", "-o", "json").stdout
    )
    return found


def test_two_runs_are_compared_and_the_first_is_repeated_exactly(yard: Yard, code: Path) -> None:
    (code / "train.py").write_text(f"{PROGRAM}print('as it was')\n")
    (code / "conf.py").write_text(f'password = "{SECRET}"\n')
    first = yard.tfyard("run", "-q", "train.py", "--", "--lr", "1", "--api-key", SECRET)
    assert first.returncode == 0, first.stderr
    one = record(yard)
    assert SECRET not in json.dumps(one)
    assert one["origin"]["parameters"] == {"lr": "1"}
    assert one["origin"]["code"]["missing"] == ["conf.py: it seems to hold a secret"]
    assert one["origin"]["software"]["python"] == sys.version.split()[0]
    assert one["origin"]["software"]["packages"]["msgspec"]
    name = str(one["name"])
    for file in ("record.json", "code.diff"):
        assert (yard.folder / ".tfyard" / "runs" / name / file).stat().st_mode & 0o077 == 0, (
            "for its user only"
        )

    (code / "conf.py").unlink()
    (code / "train.py").write_text(PROGRAM)
    commit(code)
    yard.tfyard("run", "-q", "train.py", "--", "--lr", "2")
    shown = yard.tfyard("compare", "train", "--local").stdout
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "parameters lr 1 2" in lines
    assert "loss best 0.3333 at step 3 0.6667 at step 3" in lines
    difference = yard.tfyard("compare", "train", "--local", "--diff")
    assert "-print('as it was')" in difference.stdout
    assert "conf.py: it seems to hold a secret" in difference.stderr
    assert yard.tfyard("compare", "train", "--local", "--plot", "x.svg").returncode == 0
    assert (yard.folder / "x.svg").read_text().count("<polyline") == 2
    (yard.folder / "x.svg").unlink()

    again = yard.tfyard("rerun", name, "--exact", "--local")
    assert again.returncode == 0, again.stderr
    assert "as it was" in again.stdout
    assert "not the same: conf.py: it seems to hold a secret" in again.stdout + again.stderr
    latest = record(yard)
    assert latest["diff"] == one["diff"]
    assert latest["origin"]["code"]["commit"] == one["origin"]["code"]["commit"]
    assert (code / "train.py").read_text() == PROGRAM, "the user's tree is as it was"
    assert yard.tfyard("rerun", name, "--exact", "--local").returncode == 0
    assert len(list((yard.folder / ".tfyard" / "worktrees").glob("*[!l]"))) == 1, (
        "an unchanged worktree is used again"
    )


def test_a_run_outside_of_a_git_tree_says_so_and_cannot_be_repeated_exactly(yard: Yard) -> None:
    (yard.folder / "train.py").write_text(PROGRAM)
    yard.tfyard("run", "-q", "train.py", "--", "--lr", "1")
    assert record(yard)["origin"]["code"]["problem"] == "not in a git tree"
    refused = yard.tfyard("rerun", "train", "--exact", "--local")
    assert (refused.returncode, "its code is unknown: not in a git tree" in refused.stderr) == (1, True), (
        refused
    )
    alone = yard.tfyard("compare", "train", "--local")
    assert (alone.returncode, "there is no job before it" in alone.stderr) == (2, True)


def test_a_script_elsewhere_is_recorded_with_its_tree_and_repeated_from_it(
    yard: Yard, tmp_path: Path
) -> None:
    tree = repository(tmp_path / "elsewhere", {"src/train.py": PROGRAM})
    (tree / "src" / "train.py").write_bytes(f"{PROGRAM}print('as it was')\n".replace("\n", "\r\n").encode())
    yard.tfyard("run", "-q", str(tree / "src" / "train.py"), "--", "--lr", "1")
    one = record(yard)["origin"]["code"]
    assert (one["commit"], one["changed"]) == (git(tree, "rev-parse", "HEAD"), ["M src/train.py"])
    (tree / "src" / "train.py").write_text("raise SystemExit('this is not what was run')\n")
    again = yard.tfyard("rerun", "train", "--exact", "--local")
    assert (again.returncode, "as it was" in again.stdout) == (0, True), again.stderr


def test_records_that_are_corrupt_are_named_and_skipped(yard: Yard) -> None:
    (yard.folder / "train.py").write_text(PROGRAM)
    for _ in range(2):
        yard.tfyard("run", "-q", "train.py", "--", "--lr", "1")
    older, newer = sorted((yard.folder / ".tfyard" / "runs").iterdir())
    (newer / "record.json").write_text('{"command": 1}')
    compared = yard.tfyard("compare", "train", "--local")
    assert compared.returncode == 0
    assert "record.json is corrupt" in compared.stdout
    refused = yard.tfyard("rerun", newer.name, "--exact", "--local")
    assert "its code is unknown: .tfyard/runs/" in refused.stderr
    assert "record.json is corrupt" in refused.stderr
    (older / "run.json").write_text("{")
    listed = yard.tfyard("runs")
    assert f"{older.name} is skipped: its record" in listed.stderr
    assert newer.name in listed.stdout
    assert f"{older.name} is skipped" in yard.tfyard("get", "--local").stderr
    assert "is corrupt" in yard.tfyard("compare", older.name, newer.name, "--local").stderr


def test_a_run_does_not_wait_for_a_git_that_hangs(yard: Yard, code: Path) -> None:
    """The first task has started and ended while git is held up by a filter."""
    hang = yard.write("hang", "#!/bin/sh\nexec sleep 600\n")
    hang.chmod(0o755)
    subprocess.run(["git", "config", "filter.slow.clean", str(hang)], cwd=code, check=True)
    (code / ".git" / "info" / "attributes").write_text("* filter=slow\n")
    (code / "train.py").write_text(f"{PROGRAM}#\n")
    done = yard.tfyard("run", "-q", "train.py", "--", "--lr", "1")
    assert done.returncode == 0, done.stderr
    found = record(yard)
    assert "took too long" in found["origin"]["code"]["problem"]
    assert found["origin"]["code"]["commit"] == git(code, "rev-parse", "HEAD"), "git knows that at once"
    assert "not committed  " not in yard.tfyard("describe", "@latest", "--record", "--local").stdout
    assert found["origin"]["parameters"] == {"lr": "1"}


def test_among_ten_thousand_runs_only_the_records_that_are_needed_are_read(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = yard.folder / ".tfyard"
    for number in range(10_000):
        stamp = f"2026010{1 + number // 5000}-{number % 5000 + 100000:06}"
        path = home / "runs" / f"{'mnist' if number % 2 else 'other'}-{stamp}"
        path.mkdir(parents=True)
        text = f'{{"name": "{path.name}", "job": "{path.name.partition("-")[0]}"'
        (path / "run.json").write_text(
            f'{text}, "started": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:01:00Z"}}'
        )
    read: list[str] = []
    load = RunDirectory.load

    def counted(run: RunDirectory) -> RunRecord | None:
        read.append(run.name)
        return load(run)

    monkeypatch.setattr(RunDirectory, "load", counted)
    newest = run_names.find_run("mnist", home)
    assert newest.name == "mnist-20260102-104999"
    assert next(run_names.runs_of("mnist", home, before=newest.name)).name == "mnist-20260102-104997"
    assert run_names.find_run("other-20260101-100000", home).name == "other-20260101-100000"
    assert len(read) == 2
    compared = yard.tfyard("compare", "mnist", "--local", "-o", "csv")
    assert compared.stdout.startswith("section,name,mnist-20260102-104997,mnist-20260102-104999"), (
        compared.stderr
    )
    listed = yard.tfyard("runs", TFYARD_KEEP_RUNS="all")
    assert len(listed.stdout.splitlines()) == 10_001
    read.clear()
    assert len(runs.listed(datetime.now(UTC), home)) == 10_000
    assert len(read) == 10_000, "each record is read once"


def test_names_of_files_do_not_reach_the_terminal_as_control_characters(yard: Yard, code: Path) -> None:
    (code / "\x1b]0;title\x07.py").touch()
    yard.tfyard("run", "-q", "train.py", "--", "--lr", "1")
    yard.tfyard("run", "-q", "train.py", "--", "--lr", "2")
    for words in (["compare", "train"], ["compare", "train", "--diff"], ["rerun", "train", "--exact"]):
        said = yard.tfyard(*words, "--local")
        assert "^[]0;title.py: its name has special characters" in said.stdout + said.stderr
        assert "\x1b" not in said.stdout + said.stderr
