"""What is known of a run on this machine."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local.evidence import gather
from tfyard.model.run_record import RunRecord
from tfyard.overview.why import explain

NOW = datetime(2024, 11, 16, 4, tzinfo=UTC)


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 4), ("Stopped", 1)])
def test_the_record_says_how_a_run_ended_if_its_status_cannot_be_read(
    tmp_path: Path, phase: str, code: int
) -> None:
    (tmp_path / "status.json").write_bytes(b'{"conditions": [')
    record = RunRecord(name="j-1", job="j", started=NOW, ended=NOW, phase=phase)
    assert explain(gather(RunDirectory(tmp_path), record), NOW).code == code
