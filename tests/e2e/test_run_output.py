"""What tasks write: kept whole in the logs, shown as well as it can be, whatever it is."""

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Event, Yard

pytestmark = pytest.mark.processes

BURST = 100 * 1000 * 1000


def log_of(yard: Yard, name: str = "worker-0.1.log") -> Path:
    (run,) = (yard.folder / ".tfyard" / "runs").iterdir()
    return run / "logs" / name


def peak_memory(pid: int) -> int:
    """Bytes; the most that the process ever had in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def test_a_burst_of_100_mb_is_kept_whole_and_held_in_little_memory(yard: Yard) -> None:
    script = f"""
import sys, time
line = b"x" * 99 + bytes([10])
for _ in range({BURST} // 10_000): sys.stdout.buffer.write(line * 100)
sys.stdout.flush(); time.sleep(1)
"""
    yard.job(script)
    process = yard.start("run", "job.yaml", "-q", "-o", "text")
    peak = 0
    while process.poll() is None:
        try:
            peak = max(peak, peak_memory(process.pid))
        except (FileNotFoundError, ProcessLookupError, AssertionError):
            break
        time.sleep(0.005)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert log_of(yard).stat().st_size == BURST
    assert peak < 150 * 1000 * 1000


def test_a_pipe_gets_every_line_however_fast_they_come(yard: Yard) -> None:
    yard.job("import sys\nsys.stdout.write('line\\n' * 500_000)")
    outcome = yard.run()
    assert len(outcome.lines("worker-0")) == 500_000
    assert not outcome.of("skipped")
    assert yard.tfyard("run", "job.yaml").stdout.count("worker-0 │ line\n") == 500_000


def test_binary_garbage_does_no_harm(yard: Yard) -> None:
    yard.job("import sys\nsys.stdout.buffer.write(bytes(range(256)) * 100 + b'\\nafter\\n')")
    outcome = yard.run()
    assert outcome.code == 0
    assert outcome.lines("worker-0")[-1] == "after"
    assert "\x1b[2J" not in json.dumps(outcome.events)
    assert log_of(yard).read_bytes() == bytes(range(256)) * 100 + b"\nafter\n"


def test_a_line_of_10_mb_is_cut_and_whole_in_the_log(yard: Yard) -> None:
    yard.job("print('y' * 10_000_000); print('after')")
    outcome = yard.run()
    assert outcome.lines("worker-0")[-1] == "after"
    assert max(len(line) for line in outcome.lines("worker-0")) < (1 << 20) + 50
    assert log_of(yard).stat().st_size == 10_000_001 + len("after\n")


def test_a_progress_bar_is_one_line_and_its_metrics_are_told_before_it_ends(yard: Yard) -> None:
    script = """
import os, sys, time
print('Epoch 1/2')
for i in range(1, 4):
    sys.stdout.write(f'\\r{i}/5 1ms/step - loss: {i}'); sys.stdout.flush()
    while not os.path.exists(f'seen-{i}'): time.sleep(.02)
print()
"""

    def seen(event: Event) -> None:
        if event["event"] == "metric" and event["step"]:
            yard.write(f"seen-{event['step']}", "")

    yard.job(script)
    outcome = yard.watch(seen)
    assert outcome.lines("worker-0") == ["Epoch 1/2", "3/5 1ms/step - loss: 3"]
    steps = [(event["epoch"], event["step"], event["unfinished"]) for event in outcome.of("metric")]
    assert [step for step in steps if step[1]] == [(1, 1, True), (1, 2, True), (1, 3, True), (1, 3, False)]
    rows = [json.loads(line) for line in (outcome.directory / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if row["step"]] == [3]


def test_a_last_line_without_an_end_is_shown(yard: Yard) -> None:
    yard.job("import sys; sys.stdout.write('no newline')")
    assert yard.run().lines("worker-0") == ["no newline"]


def test_metrics_are_read_from_the_lines_and_kept(yard: Yard) -> None:
    yard.job("for i in range(0, 30, 10): print(f'Step: {i}, loss: {1 / (i + 1)}')\nprint('it 7 cost 2.5')")
    outcome = yard.run("--metric", r"it (?P<step>\d+) cost (?P<cost>[\d.]+)")
    assert [event["step"] for event in outcome.of("metric")] == [0, 10, 20, 7]
    rows = [json.loads(line) for line in (outcome.directory / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["loss"] == 1.0
    assert rows[-1]["cost"] == 2.5


SUMMARIES = """
import pathlib, sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("summaries/train")
for step in range(3):
    value = Summary.Value(tag="epoch_loss", simple_value=1 / (step + 1))
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))
    writer.flush()
    while step == 0 and not list(pathlib.Path(sys.argv[1]).glob("runs/*/metrics.jsonl")):
        time.sleep(0.05)  # until the file has been found, which only a long training can be sure of
writer.close()
"""


@pytest.mark.tensorflow  # keeps the file of its summaries open; TensorBoard alone opens it for each write
def test_a_program_that_only_writes_summaries_has_metrics(yard: Yard) -> None:
    (yard.folder / "summaries.py").write_text(SUMMARIES)
    done = yard.tfyard("run", "summaries.py", "-o", "json", "--", str(yard.folder / ".tfyard"))
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "metric"]
    assert [(each["task"], each["epoch"], each["values"]) for each in metrics] == [
        ("worker-0", epoch, {"loss": pytest.approx(1 / epoch)}) for epoch in (1, 2, 3)
    ]
    assert "epochs 1 to 3" in yard.tfyard("metrics", "@latest").stdout


def test_a_program_that_writes_summaries_at_its_very_end_has_metrics_of_this_run_alone(yard: Yard) -> None:
    """Nothing had time to see that its file was open. What was written before the run is of another one."""
    at_once = SUMMARIES[: SUMMARIES.index("    while step == 0")] + "writer.close()\n"
    (yard.folder / "summaries.py").write_text(at_once.replace('"summaries/train"', "sys.argv[1]"))
    for number, name in enumerate(("a", "b"), start=1):
        done = yard.tfyard("run", "summaries.py", "-o", "json", "--", f"logs/{name}/train")
        assert done.returncode == 0, done.stdout + done.stderr
        metrics = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "metric"]
        assert [each["epoch"] for each in metrics] == [1, 2, 3], f"run {number}"


def test_the_summary_shows_each_task_the_reason_and_the_loss(yard: Yard) -> None:
    script = "for i in range(20): print(f'Step: {i}, loss: {20 - i}')\nraise SystemExit('out of ideas')"
    yard.job(script, worker=1)
    done = yard.tfyard("run", "job.yaml")
    assert done.returncode == 1
    assert re.search(r"worker-0  Failed   1          0         \d", done.stdout)
    assert "out of ideas" in done.stdout
    assert "loss worker-0, steps 0 to 19" in done.stdout
    assert "kubectl" not in done.stdout


def test_a_job_that_has_succeeded_is_shown_the_way_to_a_cluster(yard: Yard) -> None:
    yard.job("print('x')")
    yard.write("my job.yaml", (yard.folder / "job.yaml").read_text())
    out = yard.tfyard("run", "my job.yaml").stdout
    assert "on a cluster: tfyard submit 'my job.yaml' --follow\n" in out
    assert "kubectl" not in yard.tfyard("run", "my job.yaml", "-q").stdout


def test_past_runs_are_listed_shown_removed_and_their_logs_printed(yard: Yard) -> None:
    yard.job("print('Step: 1, loss: 2')", worker=2, success="all-workers")
    yard.tfyard("run", "job.yaml", "-q")
    listed = yard.tfyard("runs").stdout
    assert "Succeeded" in listed
    name = listed.splitlines()[1].split()[0]
    assert "worker-1  Succeeded" in yard.tfyard("runs", "show", name).stdout
    assert yard.tfyard("runs", "logs", name, "worker-1").stdout == "Step: 1, loss: 2\n"
    assert "worker-0.1 │ Step: 1, loss: 2" in yard.tfyard("runs", "logs", "t").stdout
    assert yard.tfyard("runs", "show", "nobody").returncode == 1
    told = json.loads(yard.tfyard("runs", "show", name, "-o", "json").stdout)
    assert [task["outcome"] for task in told["tasks"]] == ["Succeeded"] * 2
    assert (told["phase"], told["metrics"]) == ("Succeeded", {"loss": 2.0})
    assert yard.tfyard("runs", "rm", name).stdout == f"removed {name}\n"
    assert not (yard.folder / told["directory"]).exists()
    assert yard.tfyard("runs", "rm", name).returncode == 1


def test_every_attempt_has_a_log_of_its_own(yard: Yard) -> None:
    script = """
import os, sys
first = not os.path.exists('x'); open('x', 'w')
print('first' if first else 'second')
sys.exit(200 * first)
"""
    yard.job(script, restart="exit-code")
    assert yard.run().code == 0
    assert log_of(yard, "worker-0.1.log").read_text() == "first\n"
    assert log_of(yard, "worker-0.2.log").read_text() == "second\n"


def test_a_restart_is_told_once(yard: Yard) -> None:
    script = "import os, sys\nfirst = not os.path.exists('x'); open('x', 'w'); sys.exit(200 * first)"
    yard.job(script, restart="exit-code")
    out = yard.tfyard("run", "job.yaml").stdout
    assert out.count("is restarting") == 1
    assert "warning: job t is restarting because Worker replica(s) failed." in out


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_full_disk_does_not_end_the_training_and_its_end_is_known(
    yard: Yard, code: int, phase: str
) -> None:
    disk = yard.folder / ".tfyard"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        script = f"""
import os, time
try: print('z' * 1_000_000, flush=True)
except OSError: pass
time.sleep(1); open('done', 'w'); os._exit({code})
"""
        yard.job(script)
        done = yard.tfyard("run", "job.yaml")
        assert (yard.folder / "done").exists()
        assert done.returncode == code, done.stderr
        assert "the run continues, but its logs and its record are incomplete" in done.stdout
        assert re.search(r"\ndisk: .*No space left on device; logs and record are incomplete", done.stdout)
        assert "Traceback" not in done.stderr
        _, *told = yard.tfyard("runs").stdout.splitlines()[1].split()
        assert (told[0], told[-1]) == (phase, str(code))
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)  # a process that ends may still be in it


def test_a_reader_that_goes_away_does_not_hang_or_fail_the_run(yard: Yard) -> None:
    yard.job("import time\nfor i in range(30): print('line', i, flush=True); time.sleep(.05)", worker=2)
    process = yard.start("run", "job.yaml")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) in (0, 120)  # 120: Python could not flush what nobody reads
    (run,) = (yard.folder / ".tfyard" / "runs").iterdir()
    assert json.loads((run / "run.json").read_text())["phase"] == "Succeeded"
    process.stdout = None


@pytest.mark.parametrize(
    ("losses", "last"),
    [
        pytest.param(["0.5", "inf", "2"], "2", id="for a moment"),
        pytest.param(["0.5", "0.6", "0.7", "nan"], "nan", id="at the end"),
        pytest.param(["inf", "inf", "inf"], "inf", id="from the start"),
        pytest.param(["1e400", "-inf", "1e308", "-1e308", "1"], "1", id="beyond what a float can hold"),
    ],
)
def test_a_training_that_diverges_is_told_as_such_then_and_later(
    yard: Yard, losses: list[str], last: str
) -> None:
    yard.job(f"for step, loss in enumerate({losses}): print(f'Step: {{step}}, loss: {{loss}}')")
    done = yard.tfyard("run", "job.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    shown = yard.tfyard("runs", "show", "t")
    assert (shown.returncode, shown.stderr) == (0, "")
    for out in (done.stdout, shown.stdout):
        assert f"last: loss {last}\n" in out
    told = [event["values"]["loss"] for event in yard.run().of("metric")]
    assert [float(loss) for loss in told if loss != "nan"] == [
        float(loss) for loss in losses if loss != "nan"
    ]


def test_the_curve_leaves_out_what_is_not_finite_and_says_so(yard: Yard) -> None:
    yard.job("for step, loss in enumerate([3, 2, 1, 'nan']): print(f'Step: {step}, loss: {loss}')")
    out = yard.tfyard("run", "job.yaml").stdout
    assert "loss worker-0, steps 0 to 3, without those that are nan or inf\n" in out
    assert "  1 ┤█" in out


KERAS = (
    r"\r\x1b[1m 1/10\x1b[0m \x1b[32m━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m13s\x1b[0m 1s/step - loss: 1.0000\x08\x08\x08"
    r"\r\x1b[1m10/10\x1b[0m \x1b[32m━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m2s\x1b[0m 10ms/step - loss: 0.8394"
)


def test_the_coloured_bars_of_keras_are_read_and_shown_plainly_and_kept_as_they_are(yard: Yard) -> None:
    yard.job(f"for epoch in range(1, 4): print(f'Epoch {{epoch}}/3'); print('{KERAS}')")
    out = yard.tfyard("run", "job.yaml").stdout
    assert "worker-0 │ 10/10 ━━━ 2s 10ms/step - loss: 0.8394\n" in out
    assert "\x1b" not in out
    assert "last: loss 0.8394\n" in out
    assert "loss worker-0, epochs 1 to 3\n" in out
    assert "loss worker-0, epochs 1 to 3\n" in yard.tfyard("runs", "show", "t").stdout
    assert b"\x1b[32m" in log_of(yard).read_bytes()


def test_quiet_json_has_no_log_lines_but_everything_else(yard: Yard) -> None:
    yard.job("import sys\nprint('Step: 1, loss: 2')\nsys.stdout.write('line\\n' * 2_000_000)")
    outcome = yard.run("-q")
    assert not outcome.of("log")
    assert not outcome.of("skipped")
    assert outcome.of("ended")
    assert outcome.events[-1]["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("roles", "leader"),
    [
        pytest.param({"worker": 2, "ps": 1}, "worker-0", id="the first worker"),
        pytest.param({"chief": 1, "worker": 1, "evaluator": 1}, "chief-0", id="the chief where there is one"),
    ],
)
def test_the_leading_task_speaks_for_the_training(yard: Yard, roles: dict[str, int], leader: str) -> None:
    script = f"""
import os, time
def wait(count):
    while len([name for name in os.listdir() if name.endswith('.said')]) < count: time.sleep(.05)
me = os.environ['ME']
if me != '{leader}': wait(1); time.sleep(.5)
for step in range(3): print(f'Step: {{step}}, loss: {{1 if me == "{leader}" else 9}}', flush=True)
open(me + '.said', 'w')
wait(3); time.sleep(.5)
"""
    yard.job(script, env={"ME": "$(JOB_NAME)-$(TASK_INDEX)"}, **roles)
    for out in (yard.tfyard("run", "job.yaml").stdout, yard.tfyard("runs", "show", "t").stdout):
        assert "last: loss 1\n" in out
        assert f"loss {leader}, steps 0 to 2\n" in out
