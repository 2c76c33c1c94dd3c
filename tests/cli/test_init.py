import json
from pathlib import Path

import pytest

from tests.cli.running import ROOT, tfyard


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("mnist", "mnist"),
        ("My Project_2", "my-project-2"),
        ("on", "on"),
        ("123", "training"),
        ("2024-exp", "exp"),
        ("Mein Ünï Ördner", "mein-n-rdner"),
    ],
)
def test_it_writes_a_valid_file_named_after_the_folder(folder: str, name: str, tmp_path: Path) -> None:
    here = tmp_path / folder
    here.mkdir()
    assert tfyard("init", cwd=here).code == 0
    done = tfyard("validate", "job.yaml", cwd=here)
    assert (done.code, done.out) == (0, f"job.yaml: {name} is valid: 2 Worker\n")


def test_the_schema_stands_where_the_first_line_says(tmp_path: Path) -> None:
    tfyard("init", "my.yaml", "--name", "first", cwd=tmp_path)
    first, *lines = (tmp_path / "my.yaml").read_text().splitlines()
    place = first.removeprefix("# yaml-language-server: $schema=")
    published = (ROOT / "schemas" / "jobfile.json").read_text()
    assert (tmp_path / place).read_text() == published
    assert json.loads(published)["title"] == "tfyard job file, version 1"
    assert "name: first" in lines


def test_the_commented_lines_are_valid_when_uncommented(tmp_path: Path) -> None:
    tfyard("init", "--name", "a", cwd=tmp_path)
    _, rest = (tmp_path / "job.yaml").read_text().split("name: a\n")
    lines = [line.removeprefix("# ") for line in rest.splitlines() if not line.startswith("worker: 2")]
    (tmp_path / "full.yaml").write_text("name: a\n" + "\n".join(lines) + "\n")
    done = tfyard("validate", "full.yaml", cwd=tmp_path)
    assert (done.code, done.out) == (0, "full.yaml: a is valid: 1 Chief, 4 Worker, 1 PS, 1 Evaluator\n")


def test_it_writes_to_standard_output(tmp_path: Path) -> None:
    done = tfyard("init", "-", "--name", "a", cwd=tmp_path)
    assert (done.code, "\nname: a\n" in done.out, list(tmp_path.iterdir())) == (0, True, [])


def test_it_overwrites_nothing_unless_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("mine")
    done = tfyard("init", cwd=tmp_path)
    assert (done.code, done.err) == (2, "tfyard: job.yaml exists; --force overwrites it\n")
    assert (tmp_path / "job.yaml").read_text() == "mine"
    assert tfyard("init", "--force", cwd=tmp_path).code == 0


@pytest.mark.parametrize("args", [["no/job.yaml"], ["--name", "Bad Name"], ["a", "b"]])
def test_a_usage_error_exits_with_2_and_writes_nothing(args: list[str], tmp_path: Path) -> None:
    done = tfyard("init", *args, cwd=tmp_path)
    assert (done.code, list(tmp_path.iterdir())) == (2, [])


def test_a_file_where_the_schema_belongs_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / ".tfyard").write_text("")
    done = tfyard("init", cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1)
