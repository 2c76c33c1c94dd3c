"""The workflows of the repository: what a release may do, and that nothing of others runs in them unpinned."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import ROOT
from tests.programs import Call

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
BY_NAME = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
MAY: dict[str, dict[str, str]] = {
    "image": {"contents": "read", "id-token": "write"},
    "pypi": {"contents": "read", "id-token": "write"},
    "publish": {"contents": "write", "id-token": "write"},
}
"""Job -> its permissions, where it has more than reading."""


@pytest.mark.processes
def test_actionlint_finds_nothing(calling: Call) -> None:
    done = calling("actionlint", "-no-color", "-shellcheck=", *map(str, FILES))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.processes
def test_zizmor_finds_nothing() -> None:
    program = shutil.which("zizmor", path=str(Path(sys.executable).parent)) or "zizmor"
    command = [program, "--offline", "--no-progress", "--quiet", str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_of_others_are_pinned_by_digest_and_say_their_version(path: Path) -> None:
    for line in re.findall(r"uses: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
        pinned = re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)
        assert pinned or line.startswith("./.github/"), line


def test_the_same_action_has_the_same_digest_everywhere() -> None:
    lines = {
        line for path in FILES for line in re.findall(r"uses: ([^.].*)$", path.read_text(), re.MULTILINE)
    }
    assert len({line.partition("@")[0] for line in lines}) == len(lines)


def test_jobs_may_read_and_only_those_that_publish_more() -> None:
    for name, workflow in BY_NAME.items():
        assert workflow["permissions"] == {}, name
        for job, does in workflow["jobs"].items():
            assert does["permissions"] == MAY.get(job, {"contents": "read"}), f"{name}: {job}"


def test_what_publishes_waits_for_the_tests_and_for_a_person() -> None:
    jobs: dict[str, Any] = BY_NAME["release"]["jobs"]
    chain = ["publish", "pypi", "image", "build", "test"]
    assert [jobs[job]["needs"] for job in chain[:-1]] == chain[1:]
    assert {job for job in jobs if jobs[job].get("environment") == "release"} == set(MAY)
    secret = [job for job in jobs if "secrets." in str(jobs[job])]
    assert secret == ["image"]


def test_what_is_signed_is_built_of_main_by_packages_whose_hashes_are_known() -> None:
    for job in BY_NAME["release"]["jobs"].values():
        for step in job.get("steps", ()):
            for line in re.findall(r"pip install .*", step.get("run", "")):
                assert "--require-hashes" in line
    build = BY_NAME["release"]["jobs"]["build"]["steps"]
    assert build[0]["with"]["fetch-depth"] == 0
    assert build[1]["run"] == 'git merge-base --is-ancestor "$GITHUB_SHA" origin/main'
    locked = (ROOT / "requirements" / "release.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name in (re.match(r"[\w-]+", each)[0] for each in [*project["dependencies"], "hatchling"]):
        assert re.search(rf"^{name}==", locked, re.MULTILINE), name


def test_the_image_runs_before_it_is_signed() -> None:
    (script,) = (
        step["run"]
        for step in BY_NAME["release"]["jobs"]["image"]["steps"]
        if "cosign sign " in step.get("run", "")
    )
    assert 0 < script.find("docker run") < script.find("cosign sign ")


def test_the_tests_of_a_release_are_those_of_every_change() -> None:
    assert BY_NAME["release"]["jobs"]["test"]["uses"].partition(" ")[0] == "./.github/workflows/test.yml"
    assert BY_NAME["test"]["jobs"]["test"]["strategy"]["matrix"]["tests"] == ["test", "test-long"]
