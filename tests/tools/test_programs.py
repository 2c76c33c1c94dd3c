"""Programs of others come from PATH or into the cache, and are never installed."""

from pathlib import Path

import pytest

from tfyard.controlplane.binaries import MissingBinaries
from tools import programs


@pytest.mark.processes
def test_a_package_is_got_by_apt_and_unpacked_into_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt and dpkg are stood in for, because the real ones need Debian's mirror."""
    for name, script in {
        "apt-get": "touch prometheus_2_amd64.deb",
        "dpkg-deb": "mkdir -p $3/usr/bin; echo : > $3/usr/bin/promtool; chmod +x $3/usr/bin/promtool",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingBinaries, match="run `make promtool`"):
        programs.locate("promtool")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.obtain("promtool") == str(tmp_path / "cache/tfyard/programs/promtool")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert programs.obtain("promtool") == programs.locate("promtool")
    assert [each.name for each in (tmp_path / "cache/tfyard/programs").iterdir()] == ["promtool"]


def test_where_a_program_cannot_be_had_the_message_says_which_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")
    assert programs.main(["promtool"]) == MissingBinaries.exit_code
    assert "tests will be skipped: cannot get promtool: " in capsys.readouterr().err
