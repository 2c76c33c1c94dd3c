"""`make release-dry-run`: all files of a release but the image, and what keeps a version from being released."""

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.helm import Helm
from tfyard import __version__
from tools import release


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a release is judged by."""
    for name in ("CHANGELOG.md", "charts/tfyard/Chart.yaml", f"schemas/crds-{__version__}.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_that_keeps_a_version_from_being_released_is_said_at_once(tree: Path) -> None:
    found = release.problems(tree, "9.9.9", "v9.9.8")
    assert [line.partition(":")[0] for line in found] == [
        "charts/tfyard/Chart.yaml",
        "charts/tfyard/Chart.yaml",
        "the tag is v9.9.8, and the package is 9.9.9",
        "CHANGELOG.md",
        "schemas/crds-9.9.9.json is missing",
    ]


def test_what_is_said_to_be_unreleased_keeps_a_tag_from_being_released_and_nothing_else(tree: Path) -> None:
    text = (tree / "CHANGELOG.md").read_text()
    (tree / "CHANGELOG.md").write_text(
        text.replace("## Unreleased\n", "## Unreleased\n\n- It has changed.\n")
    )
    assert release.problems(tree, __version__, "") == []
    (problem,) = release.problems(tree, __version__, f"v{__version__}")
    assert "`## Unreleased`" in problem


def test_a_version_with_its_section_and_its_tag_is_ready(tree: Path) -> None:
    section = f"## {__version__}\n\n- The first one.\n\n## 0.0.1\n\n- Another one.\n"
    (tree / "CHANGELOG.md").write_text(f"# Changelog\n\n## Unreleased\n\n{section}")
    assert release.problems(tree, __version__, f"v{__version__}") == []
    assert release.notes(tree, __version__) == "- The first one."


@pytest.mark.long
@pytest.mark.processes
def test_a_dry_run_builds_and_tries_all_files_without_a_network(helm: Helm, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    command = [sys.executable, "-m", "tools.release", str(folder)]
    done = subprocess.run(without_network(command), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"the wheel says: tfyard {__version__}" in done.stdout
    built = [f"tfyard-{__version__}{end}" for end in ("-py3-none-any.whl", ".tar.gz", ".tgz")]
    others = ["install.yaml", "sbom.json"]
    assert sorted(each.name for each in folder.iterdir()) == sorted(
        [*built, *others, "SHA256SUMS", "notes.md"]
    )
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in [*built, *others]
    }
    with tarfile.open(folder / f"tfyard-{__version__}.tar.gz") as sources:
        assert f"tfyard-{__version__}/LICENSE" in sources.getnames()
    assert f"version: {__version__}" in helm("show", "chart", str(folder / f"tfyard-{__version__}.tgz"))


def without_network(command: list[str]) -> list[str]:
    """In a network namespace of its own, where the system allows one."""
    apart = ["unshare", "--user", "--map-root-user", "--net"]
    allowed = subprocess.run([*apart, "true"], capture_output=True, check=False).returncode == 0
    return [*apart, *command] if allowed else command
