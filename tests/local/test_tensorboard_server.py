"""Where the summaries of a run are, also after its end."""

from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import TfyardError
from tfyard.local.tensorboard_server import folder

pytestmark = pytest.mark.processes

JOB = """
name: t
image: a
run: mkdir -p /out/logs && touch /out/logs/events.out.tfevents.1
volumes: {out: {claim: results, at: /out}}
"""


def ran(here: Path, job: str = JOB) -> RunDirectory:
    (here / "job.yaml").write_text(job)
    assert tfyard("run", "job.yaml", "-q", cwd=here).code == 0
    return RunDirectory(next((here / ".tfyard" / "runs").iterdir()))


def test_summaries_are_where_the_job_says_or_where_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ran(tmp_path)
    record = run.load()
    assert record
    volume = tmp_path / ".tfyard" / "volumes" / "results"
    assert folder(run, record) == volume
    assert folder(run, record, "/out/logs") == volume / "logs"
    assert folder(run, record, str(tmp_path)) == tmp_path
    missing = tfyard("cp", f"t:{tmp_path}/job.yaml", "x", "--local", cwd=tmp_path)
    assert missing.err.endswith(f"{tmp_path}/job.yaml is on this machine: no run is needed to copy it\n")
    options = run.path / "asked.json"
    before = options.read_text()
    options.write_text(before.replace('"tensorboard": null', f'"tensorboard": "{tmp_path}"'))
    assert folder(run, record) == tmp_path, "the folder that --tensorboard gave"
    options.write_text(before)
    job = run.path / "job.yaml"
    job.write_text(f"{job.read_text()}tensorboard: /out/logs\n")
    assert folder(run, record) == volume / "logs"


def test_a_run_without_summaries_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ran(tmp_path, "name: t\nimage: a\nrun: 'true'\n")
    record = run.load()
    assert record
    with pytest.raises(TfyardError, match=r"has no summaries in .*work; --logdir DIR says where they are"):
        folder(run, record)
