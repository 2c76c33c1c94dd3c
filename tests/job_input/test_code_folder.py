"""Which files belong to a job's code, and their hash."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from tfyard.errors import Invalid
from tfyard.job_input import code_folder
from tfyard.job_input.code_folder import FileChanged, find

TREE = (
    *("a/b/c.py", "a/b/d.txt", "a/c.py", "b/a/d.txt", "b/c.py", "c.py", "d.txt", "x y/b", "a/x y/c.py"),
    *("keep/a/c.py", "#x", "a/a/a"),
)
RULES = (
    *("*\n!*/\n!*.py", "**\n!**/\n!*.py", "a/*\n!a/b", "a/\n!a/b/c.py", "*\n!keep/", "a/**\n!a/c.py", "**/b"),
    *(
        "a/**\n!a/b/\n!a/b/c.py",
        "/b",
        "b/",
        "a/**/c.py",
        "*.py\n!/c.py",
        "\\#x\n# c.py\n!",
        "x\\ y",
        "d.txt  ",
    ),
    *(
        "[ab]",
        "a/*/",
        "**/",
        "!c.py",
        "*",
        "a/b",
        "/*\n!/a\n/a/*\n!/a/b",
        "?.py",
        "a//b",
        "**a",
        "a**b",
        "a/a/",
    ),
    *("**/b/**/", "d.txt\r\n", "\ufeffd.txt", "a/b/c.py\n!c.py", "[", "\\", "a/../c.py"),
)
PARTS = ("a", "b", "c.py", "d.txt", "*", "**", "?", "[ab]", "keep", "x y", "*.py")


def write(folder: Path, *paths: str, text: str = "x") -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def paths(folder: Path) -> list[str]:
    return [file.path for file in find(folder).files]


def of_git(folder: Path) -> list[str]:
    command = ["git", "-C", folder, "-c", "core.excludesFile=", "ls-files", "-zco", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout
    return sorted(os.fsdecode(path) for path in listed.split(b"\0") if path)


def repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", folder], check=True)
    return write(folder, *TREE)


def generated(seed: int) -> dict[str, str]:
    chance = random.Random(seed)

    def rule() -> str:
        parts = "/".join(chance.choice(PARTS) for _ in range(chance.randint(1, 3)))
        ends = [chance.choice(["", "", text]) for text in ("!", "/", "/")]
        return f"{ends[0]}{ends[1]}{parts}{ends[2]}"

    places = ["", chance.choice(["a/", "b/", "a/b/"])]
    return {f"{place}.gitignore": "\n".join(rule() for _ in range(chance.randint(1, 4))) for place in places}


@pytest.mark.processes
def test_the_files_are_those_that_git_would_add(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    for rules in ({".gitignore": rule} for rule in RULES):
        check(folder, rules)
    for seed in range(100):
        check(folder, generated(seed))


def check(folder: Path, rules: dict[str, str]) -> None:
    for file, text in rules.items():
        (folder / file).write_text(text, newline="")
    assert paths(folder) == of_git(folder), rules
    for file in rules:
        (folder / file).unlink()


def test_caches_and_environments_are_never_code_and_tfyardignore_takes_precedence(
    tmp_path: Path,
) -> None:
    caches = (".git/config", "a/__pycache__/x.pyc", ".venv/x", ".tfyard/runs/x", ".pytest_cache/x")
    write(tmp_path, "train.py", "out/weights", "out/small", "env/lib/x.py", "env/pyvenv.cfg", *caches)
    (tmp_path / ".gitignore").write_text("out/*\n!__pycache__\n")
    (tmp_path / ".tfyardignore").write_text("!out/small\n.*ignore\n")
    assert paths(tmp_path) == ["out/small", "train.py"]


def test_a_kubeconfig_is_never_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logins = (
        "kubeconfig",
        "kubeconfig.yaml",
        "dev/team.kubeconfig",
        "dev_kubeconfig.yml",
        ".kube/config",
        "cluster.yaml",
    )
    write(tmp_path, "train.py", "read_kubeconfig.py", "kubeconfig.md", *logins)
    (tmp_path / ".tfyardignore").write_text("!kubeconfig\n.*ignore\n")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/nothing:{tmp_path}/cluster.yaml")
    assert paths(tmp_path) == ["kubeconfig.md", "read_kubeconfig.py", "train.py"]


def test_the_rules_of_the_repository_around_the_folder_hold_unless_they_are_about_the_folder(
    tmp_path: Path,
) -> None:
    write(tmp_path, ".git/HEAD", "src/train.py", "src/data/a.bin", "build/code/train.py", "build/code/a.bin")
    (tmp_path / ".gitignore").write_text("*.bin\nbuild/\n/train.py\n")
    assert paths(tmp_path / "src") == ["train.py"]
    assert paths(tmp_path / "build" / "code") == ["a.bin", "train.py"]


def test_links_inside_are_followed_and_those_that_lead_nowhere_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "lib/a.py")
    (tmp_path / "linked").symlink_to("lib")
    (tmp_path / "one.py").symlink_to("lib/a.py")
    (tmp_path / ".#lock").symlink_to("me@here.1")
    os.mkfifo(tmp_path / "pipe")
    assert paths(tmp_path) == ["lib/a.py", "linked/a.py", "one.py"]


def test_every_link_that_cannot_be_followed_is_named_at_once(tmp_path: Path) -> None:
    code = write(tmp_path / "code", "train.py", "a/x", "b/x", "ignored", "line\nbreak")
    write(tmp_path, "data/secret")
    (code / "data").symlink_to(tmp_path / "data")
    (code / "key").symlink_to("../data/secret")
    (code / "a" / "to_b").symlink_to("../b")
    (code / "b" / "to_a").symlink_to("../a")
    (code / "b" / "up").symlink_to("..")
    with pytest.raises(Invalid) as refused:
        find(code)
    said = sorted(problem.message for problem in refused.value.problems)
    assert [text for text in said if "leads out of the folder" in text] == [
        f"the link data leads out of the folder, to {tmp_path}/data",
        f"the link key leads out of the folder, to {tmp_path}/data/secret",
    ]
    assert "the link b/up leads to a folder that it is in" in said
    assert "the name 'line\\nbreak' has a line break" in said
    (code / ".gitignore").write_text("data\nkey\nto_?\nup\nline*\n")
    assert paths(code) == [".gitignore", "a/x", "b/x", "ignored", "train.py"]


def digest(folder: Path) -> str:
    found = find(folder)
    return code_folder.digest(found, code_folder.sums(found))


def test_the_hash_is_of_names_modes_and_contents_and_of_nothing_else(tmp_path: Path) -> None:
    one, other = (write(tmp_path / name, "train.py", "lib/a.py") for name in ("one", "other"))
    os.utime(other / "train.py", (1, 1))
    (other / "train.py").chmod(0o600)
    assert digest(one) == digest(other) == "a9e56b03b7aed46f05085d5acdd3f673"
    known = {digest(one)}
    (other / "train.py").chmod(0o700)
    known.add(digest(other))
    (other / "train.py").rename(other / "main.py")
    known.add(digest(other))
    (other / "main.py").write_text("y")
    known.add(digest(other))
    assert len(known) == 4


@pytest.mark.parametrize("change", ["written", "replaced", "grown", "gone"])
def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path, change: str) -> None:
    write(tmp_path, "weights", text="x" * (3 << 20))
    os.utime(tmp_path / "weights", (1, 1))  # the clock of a file system may stand still for some milliseconds
    (file,) = find(tmp_path).files
    parts = code_folder.contents(file)
    if change == "replaced":
        write(tmp_path, "new", text="x" * (3 << 20))
        (tmp_path / "new").rename(tmp_path / "weights")
    elif change == "gone":
        (tmp_path / "weights").unlink()
    else:
        assert len(next(parts)) == code_folder.CHUNK
        with (tmp_path / "weights").open("r+" if change == "written" else "a") as output:
            output.write("y")
    with pytest.raises(FileChanged, match="weights was changed while it was being read"):
        list(parts)
