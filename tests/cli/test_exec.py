"""`tfyard exec` in tasks of a run on this machine; in those of a cluster: tests/cluster."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.running import tfyard

JOB = """
name: t
image: a
run: sleep 600
worker: 2
volumes: {out: {claim: results, at: /out}}
"""


@pytest.mark.processes
def test_a_command_in_a_task_of_a_run_sees_what_the_task_sees(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    command = [sys.executable, "-m", "tfyard", "run", "job.yaml", "-q"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            words = (
                "t",
                "worker-1",
                "--local",
                "--",
                "sh",
                "-c",
                "echo $TF_CONFIG; echo hi > /out/said; exit 6",
            )
            end = time.monotonic() + 60
            while (done := tfyard("exec", *words, cwd=tmp_path)).code != 6:
                assert time.monotonic() < end, done.err
                time.sleep(0.1)
            assert '"index": 1' in done.out or '"index":1' in done.out
            assert (tmp_path / ".tfyard/volumes/results/said").read_text() == "hi\n"
            every = tfyard("exec", "--all", "t", "--local", "--", "pwd", cwd=tmp_path)
            assert (every.code, len(every.out.splitlines())) == (0, 2)
            assert [line[:11] for line in sorted(every.out.splitlines())] == ["worker-0 │ ", "worker-1 │ "]
            assert tfyard("exec", "t", "--local", "--", "true", cwd=tmp_path).code == 2
            missing = tfyard("exec", "t", "worker-0", "--local", "--", "no-such-program", cwd=tmp_path)
            assert (missing.code, "no-such-program" in missing.err) == (127, True)
        finally:
            run.send_signal(signal.SIGINT)
            run.wait()
    over = tfyard("exec", "t", "worker-0", "--local", "--", "true", cwd=tmp_path)
    assert (over.code, "has ended" in over.err) == (1, True)
