"""Runs from Python: real processes, which go with the program that started them."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tfyard
from tfyard import aio
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.sdk import starting

pytestmark = pytest.mark.processes
TRAIN = """
import os, sys, time
for step in range(1, 4):
    print(f"Step: {step}, loss: {1 / step}", flush=True)
while os.path.exists("hold"): time.sleep(.05)
time.sleep(float(os.environ.get("SLEEP", "0")))
sys.exit(os.environ.get("FAIL") and "no data in /nowhere")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def eventually(holds: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_tells_its_lines_its_metrics_and_its_end(folder: Path) -> None:
    run = tfyard.run(tfyard.Job("train.py", worker=2, success="all-workers"))
    lines = list(run.logs(follow=True))
    assert {line.task for line in lines} == {"worker-0", "worker-1"}
    assert next(line.text for line in lines if line.task == "worker-0") == "Step: 1, loss: 1.0"
    assert (lines[0].attempt, lines[0].role, str(lines[0])) == (1, "worker", "Step: 1, loss: 1.0")
    assert run.wait("1m") is run
    assert (run.status, run.exit_code, run.tasks) == ("Succeeded", 0, ["worker-0", "worker-1"])
    assert [(row["task"], row["step"], row["loss"]) for row in run.metrics()][:2] == [
        ("worker-0", 1, 1.0),
        ("worker-0", 2, 0.5),
    ]
    assert {row["task"] for row in run.metrics("worker-1")} == {"worker-1"}
    assert [line.text for line in run.logs(task="worker-1", tail=1)] == [lines[-1].text]
    assert run.directory is not None
    assert (run.directory / "run.json").exists()
    assert run.why().code == 0
    assert repr(run) == f"<Run {run.name} on this machine>"
    assert [each.name for each in tfyard.runs()] == [run.name]
    assert tfyard.find("train").name == tfyard.find(run.name, local=True).name == run.name
    assert "Succeeded" in run.describe()
    assert [each["reason"] for each in run.events()][-1] == "TFJobSucceeded"
    with pytest.raises(tfyard.Usage, match="the job has no task or role 'ps'"):
        run.logs(role="ps")  # at once, not with the first line
    with pytest.raises(tfyard.Usage, match="the job has no task or role 'loss'"):
        run.metrics("loss")
    assert run.metrics("worker") == run.metrics("worker-0", "worker-1")
    with pytest.raises(tfyard.Usage, match=r"until='runing': unknown; did you mean running\?"):
        run.wait(until="runing")  # type: ignore[arg-type]
    with pytest.raises(tfyard.Usage, match=r"^attempt 0: must be a number from 1"):
        run.logs(attempt=0)
    assert [line.text for line in run.logs(since="10m")] == [line.text for line in run.logs()]
    assert all(line.time for line in run.logs())
    with pytest.raises(tfyard.TfyardError, match=f"{run.name} has no summaries in "), run.tensorboard():
        pass


def test_a_failure_is_an_error_whose_text_is_why() -> None:
    run = tfyard.run(tfyard.Job("train.py", env={"FAIL": "1"}))
    with pytest.raises(tfyard.JobFailed) as caught:
        run.wait()
    assert str(caught.value) == str(caught.value.why)
    assert "no data in /nowhere" in str(caught.value)
    assert (caught.value.code, caught.value.why.code, run.exit_code) == (1, 1, 1)
    assert run.why().tasks == ("worker-0",)
    assert run.wait(until="finished").status == "Failed"


def test_a_wait_has_a_timeout_and_the_run_goes_on(folder: Path) -> None:
    (folder / "hold").touch()
    run = tfyard.run("train.py")
    with pytest.raises(tfyard.WaitTimeout, match=r"is \w+, not succeeded"):
        run.wait(0.2)
    assert run.wait("1m", until="running").status == "Running"
    assert run.exec("true").exit_code == 0, "its process can be entered"
    (folder / "hold").unlink()
    assert run.wait("1m").status == "Succeeded"


@pytest.mark.long
def test_words_and_job_files_run_where_they_are_given(folder: Path) -> None:
    assert tfyard.run(tfyard.Job(run="python train.py", name="words")).wait("1m").name.startswith("words-")
    (folder / "sub").mkdir()
    (folder / "sub" / "hello.txt").write_text("hello")
    (folder / "sub" / "job.yaml").write_text(
        "name: file\nimage: a/b:1\ncode: .\nrun: cat hello.txt\nsuccess: all-workers\n"
    )
    run = tfyard.run(tfyard.Job("sub/job.yaml", worker=2, env={"A": "b"})).wait("1m")
    assert sorted((line.task, line.text) for line in run.logs()) == [
        ("worker-0", "hello"),
        ("worker-1", "hello"),
    ]


@pytest.mark.long
def test_the_tasks_have_the_python_of_the_program(folder: Path) -> None:
    (folder / "which.py").write_text("import sys; print(sys.executable)")
    run = tfyard.run("which.py").wait("1m")
    assert Path(next(run.logs()).text).samefile(sys.executable)


@pytest.mark.long
def test_what_a_run_is_given_is_not_among_the_arguments_of_its_process(folder: Path) -> None:
    (folder / "job.yaml").write_text("name: file\nimage: a/b:1\nrun: sleep 600\n")
    run = tfyard.run(tfyard.Job("job.yaml", env={"TOKEN": "hush-hush"}))
    seen = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    run.stop()
    assert "hush-hush" not in seen


def test_what_only_a_run_can_find_wrong_is_the_error_of_the_terminal() -> None:
    with pytest.raises(tfyard.Usage, match=r"^mount data: the job has no volume of this name"):
        tfyard.run("train.py", mount={"data": "."})
    assert not Path(".tfyard").exists()


@pytest.mark.long
def test_messages_for_the_user_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tfyard"):
        tfyard.run(tfyard.Job("train.py", suspend=True)).wait("1m")
        eventually(lambda: "suspend (the job starts at once)" in caplog.text)
    assert "images are not used here" in caplog.text


def test_the_asynchronous_words_do_the_same_beside_the_synchronous_ones() -> None:
    async def main() -> None:
        run = await aio.run(tfyard.Job("train.py", worker=2, success="all-workers"))
        texts = [line.text async for line in run.logs(follow=True, task="worker-1")]
        assert len(texts) == 3
        assert await run.wait("1m") is run
        assert (await run.status, await run.exit_code, len(await run.tasks)) == ("Succeeded", 0, 2)
        assert len(await run.metrics()) == 3
        assert (await run.why()).code == 0
        assert (await aio.find(run.name)).name == (await aio.runs())[0].name == run.name
        job = tfyard.Job("train.py", env={"FAIL": "1"})
        with pytest.raises(tfyard.JobFailed, match="no data"):
            tfyard.run(job).wait()  # the synchronous ones work inside a running event loop, too

    asyncio.run(main())


def test_one_thread_follows_a_hundred_logs(folder: Path) -> None:
    (folder / "hold").touch()
    seen: list[int] = []

    async def follow(run: aio.Run) -> int:
        count = 0
        async for _ in run.logs(follow=True):
            count += 1
            seen.append(count)
        return count

    async def main() -> list[int]:
        run = await aio.run("train.py")
        following = [asyncio.create_task(follow(run)) for _ in range(100)]
        while seen.count(3) < 100:
            await asyncio.sleep(0.05)
        assert threading.active_count() <= before + 1, "that of the process of the run"
        (folder / "hold").unlink()
        return await asyncio.gather(*following)

    before = threading.active_count()
    assert asyncio.run(main()) == [3] * 100


@pytest.mark.long
def test_a_cancelled_wait_ends_at_once_and_the_run_goes_on(folder: Path) -> None:
    (folder / "hold").touch()

    async def main() -> aio.Run:
        run = await aio.run("train.py")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.wait(), 0.3)
        return run

    run = asyncio.run(main())
    (folder / "hold").unlink()
    assert tfyard.find(run.name).wait("1m").status == "Succeeded"


# --- what changes a run

COUNTS = """
import pathlib, sys, time
path = pathlib.Path("/out/count")
count = int(path.read_text()) + 1 if path.exists() else 1
(new := path.with_name(f"count.{time.time_ns()}")).write_text(str(count))
new.replace(path)  # two tasks may do this at the same time
print("start", count, flush=True)
time.sleep(0 if len(sys.argv) > 1 or count > 2 else 600)
"""


def lines(run: tfyard.Run) -> list[str]:
    return [line.text for line in run.logs()]


@pytest.mark.long
def test_a_run_is_restarted_stopped_resumed_repeated_and_deleted(folder: Path) -> None:
    (folder / "count.py").write_text(COUNTS)
    job = tfyard.Job("count.py", volumes={"out": {"claim": "out", "size": "1Gi", "at": "/out"}})
    run = tfyard.run(job)
    eventually(lambda: lines(run) == ["start 1"])
    assert run.restart("worker-0") is run
    eventually(lambda: lines(run) == ["start 2"])
    assert run.stop().status == "Stopped"
    with pytest.raises(tfyard.JobFailed):
        run.wait()
    resumed = run.resume()
    assert resumed.name != run.name
    assert lines(resumed.wait("1m")) == ["start 3"]
    again = run.rerun(worker=2, env={"A": "b"}).wait("1m")
    assert again.tasks == ["worker-0", "worker-1"]
    assert int((again.get("/out/count", to=folder / "got")).read_text()) >= 4
    brought = again.get("/out")
    assert (brought.resolve(), (brought / "count").exists()) == ((folder / "out").resolve(), True)
    assert (brought / ".gitignore").read_text().endswith("\n*\n"), "it is not code of the next job"
    with pytest.raises(tfyard.Usage, match=r"^worker=x: must be a number from 0 to 100000, as in worker=4"):
        again.rerun(worker="x")  # type: ignore[arg-type]
    with pytest.raises(tfyard.Usage, match=r"^name='No': must be lower-case"):
        again.rerun(name="No")
    with pytest.raises(tfyard.NotPossible, match="whose tasks know each other from the start"):
        again.scale(worker=3)
    with pytest.raises(tfyard.Usage, match="is not on a volume that is kept"):
        again.get("/elsewhere", to=folder)
    again.delete()
    assert again.directory is not None
    assert not again.directory.exists()
    with pytest.raises(tfyard.JobDeleted):
        again.wait()


def test_a_run_is_stopped_and_its_folder_may_be_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tfyard.run(tfyard.Job("train.py", env={"SLEEP": "600"}))
    monkeypatch.chdir("/")
    assert next(line.text for line in run.logs(follow=True) if "Step: 3" in line.text)
    done = run.exec('echo "$SLEEP"; echo bad >&2; exit 3')  # in the only task
    assert (done.exit_code, done.stdout, done.stderr) == (3, "600\n", "bad\n")
    listed = asyncio.run(aio.Run(run).exec(["ls", "train.py"], task="worker-0"))
    assert listed == tfyard.Executed(0, "train.py\n", "")
    with pytest.raises(tfyard.Usage, match="the job has no task or role 'ps-0'"):
        run.exec("true", task="ps-0")
    with pytest.raises(
        tfyard.TfyardError, match=r"runs on this machine: its ports are at 127\.0\.0\.1 already"
    ):
        run.port_forward("worker-0", 80)
    assert run.stop().status == "Stopped"
    with pytest.raises(tfyard.TfyardError, match=r"worker-0 of train-.* is not running"):
        run.exec("true")
    assert run.exit_code == 130
    run.delete()
    assert list((folder / ".tfyard" / "runs").iterdir()) == []


# --- the end of the program

PROGRAM = """
import os, signal, sys, tfyard
run = tfyard.run(tfyard.Job("train.py", env={"SLEEP": "600", "MARK": os.getcwd()}))
print(run.directory, flush=True)
for line in run.logs(follow=True):
    if line.text.startswith("Step: 3"):
        break
print("ready", flush=True)
sys.stdin.readline()
"""


@contextmanager
def started(ending: str) -> Iterator[tuple["subprocess.Popen[str]", RunDirectory]]:
    command = [sys.executable, "-c", PROGRAM + ending]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True) as process:
        run = RunDirectory(Path(line_of(process).strip()))
        try:
            assert line_of(process) == "ready\n"
            assert has_processes(run)
            assert process.stdin is not None
            process.stdin.close()
            yield process, run
        finally:
            process.kill()
    eventually(lambda: (record := run.load()) is not None and record.ended)
    eventually(lambda: not has_processes(run))


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def has_processes(run: RunDirectory) -> bool:
    """Of its tasks, by a variable that the program sets for them."""
    mark = f"MARK={run.path.parent.parent.parent}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environ.read_bytes():
                return True
        except OSError:  # it has ended, or is another user's
            continue
    return False


LONG = pytest.mark.long


@LONG
@pytest.mark.parametrize("ending", ["", "raise ValueError"])
def test_a_program_that_ends_stops_its_runs(ending: str) -> None:
    with started(ending) as (process, run):
        process.wait(60)
        assert not has_processes(run), "it waits for them"
    record = run.load()
    assert record is not None
    assert (record.phase, record.exit_code) == ("Interrupted", 130)


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=LONG)])
def test_a_program_that_is_killed_leaves_nothing(number: int) -> None:
    with started(f"os.kill(os.getpid(), {number})") as (process, run):
        assert process.wait(60) == -number
    assert (record := run.load()) is not None
    assert record.phase == "Interrupted"


def test_ctrl_c_ends_the_wait_and_not_the_run() -> None:
    ending = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
try:
    print("waiting", flush=True)
    run.wait()
except KeyboardInterrupt:
    print(run.status, flush=True)
"""
    with started(ending) as (process, _):
        assert line_of(process) == "waiting\n"
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        assert line_of(process) == "Running\n"
        process.wait(60)


@LONG
def test_a_run_of_a_program_under_nohup_outlives_a_hang_up(folder: Path) -> None:
    (folder / "train.py").write_text("import os, time\nwhile not os.path.exists('go'): time.sleep(.02)")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = tfyard.run(tfyard.Job("train.py"))
        child = list(starting._running)[-1]
        for _ in range(10):
            child.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        (folder / "go").touch()
        assert run.wait("1m").status == "Succeeded"
    finally:
        signal.signal(signal.SIGHUP, before)


@LONG
def test_a_fork_of_the_program_leaves_its_runs_alone() -> None:
    ending = """
if os.fork() == 0:
    sys.exit(0)
os.wait()
print(run.status, flush=True)
"""
    with started(ending) as (process, _):
        assert line_of(process) == "Running\n"
        process.wait(60)
