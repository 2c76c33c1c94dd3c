"""`tfyard tensorboard`: the real TensorBoard over a run, through a port of this machine."""

import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.cli.running import tfyard
from tests.cli.test_main import imported, roots
from tfyard import find

WRITE = """
import tensorflow as tf
with tf.summary.create_file_writer("/out/logs").as_default():
    tf.summary.scalar("loss", 0.5, step=1)
"""
JOB = """
name: t
image: a
code: .
run: python write.py
volumes: {out: {claim: results, at: /out}}
tensorboard: /out/logs
"""


@pytest.mark.long
@pytest.mark.tensorflow
def test_tensorboard_of_a_run_that_has_ended_stops_after_a_time_without_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "write.py").write_text(WRITE)
    (tmp_path / "job.yaml").write_text(JOB)
    assert tfyard("run", "job.yaml", "-q", cwd=tmp_path).code == 0
    words = ("tensorboard", "t", "--local", "--no-browser", "--idle", "3s")
    command = [sys.executable, "-m", "tfyard", *words]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        title, _, url = process.stdout.readline().decode().strip().partition(": ")
        assert title.startswith("TensorBoard of t-")
        with urlopen(f"{url}data/plugin/scalars/tags") as answer:
            assert b"loss" in answer.read()
        _, errors = process.communicate()
    assert (process.returncode, errors.decode()) == (
        0,
        "tfyard: no request for 3s: stopping (--idle 0 never stops)\n",
    )
    monkeypatch.chdir(tmp_path)
    with find("t", local=True).tensorboard() as url, urlopen(f"{url}data/plugin/scalars/tags") as answer:
        assert b"loss" in answer.read()
    with pytest.raises(URLError, match="Connection refused"):
        urlopen(url)


def test_a_wrong_duration_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = tfyard("tensorboard", "t", "--idle", "soon", cwd=tmp_path)
    assert (done.code, done.err) == (
        2,
        "tfyard: --idle soon: must be a duration, for example 30m, or 0\n",
    )


def test_runs_need_no_extra() -> None:
    assert "aiohttp" not in roots(imported("tensorboard", "no-such-run", "--local"))
