"""`tfyard logs` of tasks that run, that have ended, and that were started again."""

import json
import re

import pytest

from tests.cluster.jobs import Jobs

pytestmark = [pytest.mark.cluster, pytest.mark.long]
JOB = """
name: first
image: example/train:1
code: .
run: [python, train.py]
worker: 1
restart: {restart}
volumes: {{out: {{claim: out, at: /out, size: 1Gi}}}}
"""
ENDS = """
import pathlib, sys, time
for number in range(3):
    print("line", number, flush=True)
print("to the other stream", file=sys.stderr, flush=True)
while not pathlib.Path("/out/go").exists():
    time.sleep(0.1)
print("last", flush=True)
sys.exit(5)
"""
BEGUN = ["line 0", "line 1", "line 2", "to the other stream"]
STARTS_AGAIN = """
import pathlib, sys, time
runs = pathlib.Path("/out/runs")
number = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(number))
for line in range(100):
    print("run", number, "line", line, flush=True)
time.sleep(2)  # so that who follows has read it before the pod is replaced
sys.exit({code} if number < {runs} else 0)
"""


def submit(jobs: Jobs, program: str, restart: str, *options: str) -> str:
    """What is printed."""
    (jobs.folder / "train.py").write_text(program)
    return jobs.submit(JOB.format(restart=restart), *options)


def test_a_log_is_followed_while_it_is_written_and_kept_afterwards(jobs: Jobs) -> None:
    submit(jobs, ENDS, "never")
    with jobs.start("logs", "-f", "first") as logs:
        try:
            assert logs.stdout
            begun = [logs.stdout.readline().rstrip() for _ in BEGUN]
            assert sorted(begun) == BEGUN  # a node keeps lines whole, and the order of each stream
            running = jobs.tfyard("logs", "first", "--tail", "2")
            assert (running.code, running.out.splitlines()) == (0, begun[-2:])
            (jobs.claim("out") / "go").touch()
            rest, errors = logs.communicate(timeout=60)
        finally:
            logs.kill()
    assert rest.splitlines()[-1] == "last"
    assert (logs.returncode, errors.splitlines()[-1].startswith("tfyard: first: Failed: ")) == (5, True)
    whole = jobs.tfyard("logs", "first")
    assert (whole.code, len(whole.out.splitlines())) == (0, 5)
    timed = jobs.tfyard("logs", "first", "-t", "--tail", "1").out
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z last\n", timed), timed
    assert jobs.kubectl("logs", "first-worker-0").splitlines() == whole.out.splitlines()


@pytest.mark.parametrize(("restart", "code"), [("on-failure", 1), ("exit-code", 137)])
def test_no_line_is_lost_or_doubled_when_a_program_is_started_again(
    jobs: Jobs, restart: str, code: int
) -> None:
    """In the same pod, and in a new one."""
    followed = submit(jobs, STARTS_AGAIN.format(code=code, runs=3), restart, "--follow")
    runs = [f"run {run} line {line}" for run in (1, 2, 3) for line in range(100)]
    assert [line.rpartition("│ ")[2] for line in followed.splitlines()] == runs
    assert jobs.tfyard("logs", "first", "--no-prefix").out.splitlines() == runs[200:]
    everything = jobs.tfyard("logs", "first", "--all-attempts", "-o", "json").out.splitlines()
    rows = [json.loads(row) for row in everything]
    ends = [row for row in rows if row.get("event") == "ending" or row.get("text") == "run 2 line 99"]
    assert any("run 2 line 99" in row.get("message", row.get("text", "")) for row in ends), ends
    assert [row["text"] for row in rows if row.get("text", "").startswith("run 3")] == runs[200:]


def test_the_log_of_a_program_that_is_out_of_retries_stays(jobs: Jobs) -> None:
    """Its pod backs off at the end of the job: a kubelet calls it running."""
    submit(jobs, "print('try', flush=True)\nraise SystemExit(3)\n", "on-failure\nretries: 1")
    jobs.until_phase("first", "Failed")
    done = jobs.tfyard("logs", "first", "-f")
    assert (done.code, done.out) == (3, "try\n"), done.err
    jobs.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/first-worker-0", "--timeout=60s")
    assert jobs.kubectl("logs", "first-worker-0") == "try\n"
