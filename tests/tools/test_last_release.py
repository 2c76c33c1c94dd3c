"""The state from which upgrades are tested: where it is looked for, and the errors where it is not."""

import subprocess
from pathlib import Path

import pytest

from tfyard.controlplane.binaries import MissingBinaries
from tools import last_release


def test_what_is_missing_is_told_from_a_history_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole, shallow, none = (tmp_path / name for name in ("whole", "shallow", "none"))
    none.mkdir()
    subprocess.run(["git", "init", "-q", whole], check=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for message in ("one", "two"):
        command = ["git", *author, "commit", "-q", "--allow-empty", "-m", message]
        subprocess.run(command, cwd=whole, check=True)
    subprocess.run(["git", "clone", "-q", "--depth=1", whole.as_uri(), shallow], check=True)
    for folder in (none, shallow):
        monkeypatch.setattr(last_release, "HERE", folder)
        with pytest.raises(last_release.NoHistory, match="no clone with its whole history"):
            last_release.locate()
    monkeypatch.setattr(last_release, "HERE", whole)
    with pytest.raises(MissingBinaries, match="run `make last-release`"):
        last_release.locate()
    last_release.folder().mkdir(parents=True)  # an installation that was interrupted
    with pytest.raises(MissingBinaries):
        last_release.locate()
    (last_release.folder() / last_release.DONE).touch()
    assert last_release.locate().parent.parent.name.startswith(last_release.COMMIT[:12])
