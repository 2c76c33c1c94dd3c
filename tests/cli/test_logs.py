"""`tfyard logs`: of jobs on the real API server, and of runs on this machine."""

import asyncio
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.cli.running import Result, read_terminal, tfyard
from tests.cli.test_describe import allow
from tests.cli.test_get import SLOW
from tests.cli.test_main import imported
from tests.kubelet.plain_containers import node
from tests.remote.log_job import AT, LogJob, ended, failed, running
from tfyard.cli.log_printer import LINES_PER_FLUSH, LineStyle, Printer
from tfyard.kube import Access, ClusterEntry, kubeconfig
from tfyard.logs.lines import Lines, Remark, Start
from tfyard.node.log_times import RECORD
from tfyard.testing import ControlPlane

BROKEN = "raise KeyError('shard')"


@pytest.mark.cluster
async def test_logs_of_all_tasks_and_attempts(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async def run(*args: str, config: Path = control_plane.kubeconfig) -> Result:
        env = {"KUBECONFIG": str(config)}
        return await asyncio.to_thread(tfyard, *args, "-n", namespace, cwd=tmp_path, **env)

    async with node(control_plane, namespace, tmp_path) as box:
        job = LogJob(box)
        await job.create()
        gone = {"task": "worker-0", "attempt": 1, "exitCode": 9, "reason": "Evicted", "message": "last words"}
        await job.set_status(startTime=AT, endings=[{**gone, "started": AT, "finished": AT}])
        for index, attempt in ((0, 1), (1, 0)):
            await job.create_pod(index, attempt)
        await (await job.start(0, "print('before')")).wait()
        await (await job.start(0, f"print('now')\nprint('\\x1b[31mred\\x1b[0m')\n{BROKEN}")).wait()
        await job.set_pod(0, ended(1), 1, lastState=ended(137, "OOMKilled"))
        await job.set_pod(1, {"waiting": {"reason": "ErrImagePull", "message": "no such image"}})

        plain = await run("logs", "first")
        assert plain.code == 0
        assert plain.out.splitlines()[:2] == ["worker-0#2.1 │ now", "worker-0#2.1 │ red"]
        assert plain.err == "worker-1 ── has not started: ErrImagePull: no such image\n"
        one = await run("logs", "first", "worker-0", "--tail", "1")
        assert one.out == "KeyError: 'shard'\n"
        whole = await run("logs", "first", "worker", "--grep", "shard", "--no-prefix")
        assert whole.out.splitlines()[0] == "Traceback (most recent call last):"
        assert (await run("logs", "-t", "relative", "first", "worker-0", "--grep", "now")).out[0] in "+"
        rows = [
            json.loads(row)
            for row in (
                await run("logs", "first", "worker-0", "--all-attempts", "-o", "json")
            ).out.splitlines()
        ]
        assert [(row["attempt"], row["restart"], row.get("event", "line")) for row in rows][:4] == [
            (1, 0, "ending"),
            (2, 0, "line"),
            (2, 0, "ended"),
            (2, 1, "line"),
        ]
        assert "last words" in rows[0]["message"]
        assert [row["text"] for row in rows if row.get("restart") == 0 and "text" in row] == ["before"]
        old = await run("logs", "first", "worker-0", "--attempt", "2.0")
        assert old.out == "before\n"
        wrong = await run("logs", "frist")
        assert (wrong.code, "did you mean first?" in wrong.err) == (1, True)
        assert "did you mean worker?" in (await run("logs", "first", "wroker")).err
        viewer = control_plane.write_kubeconfig(control_plane.access("viewer"), "viewer")
        rules = [
            {
                "apiGroups": ["kubeflow.org", ""],
                "resources": ["tfjobs", "pods"],
                "verbs": ["get", "list", "watch"],
            }
        ]
        allow(control_plane, namespace, "viewer", rules)
        await job.set_pod(1, running())
        for args, right in (
            (("logs", "first"), "get pods/log"),
            (("logs", "-f", "first"), "get pods/log"),
            (("top", "first"), "get pods/log"),
            (("metrics", "first"), "get pods/log"),
            (("exec", "-n", namespace, "first", "worker-1", "--", "true"), "get pods/exec"),
            (("exec", "-n", namespace, "first", "--all", "--", "true"), "get pods/exec"),
            (("cp", "first:worker-1:/tmp/x", "x"), "get pods/exec"),
        ):
            refused = await run(*args, config=viewer)
            assert (refused.code, refused.err.count("\n")) == (1, 1 + ("--all" in args)), refused.err
            assert f"viewer may not {right} in the namespace {namespace}; an administrator" in refused.err
        await job.set_pod(1, {"waiting": {"reason": "ErrImagePull", "message": "no such image"}})
        await job.set_status(**failed("worker-0", 7))
        over = await run("logs", "-f", "first")
        assert (over.code, over.err.splitlines()[-1]) == (7, "tfyard: first: Failed: worker-0 failed")
        assert over.out == plain.out


LINES = ["line 0", "line 1", "line 2", "last"]


@pytest.mark.processes
def test_logs_of_a_run_are_read_and_followed_to_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, time\nfor n in range(3): print('line', n)\n"
        "while not os.path.exists(os.environ['GO']): time.sleep(.05)\nprint('last')\nraise SystemExit(5)"
    )
    command = [sys.executable, "-m", "tfyard", "run", "train.py", "-q", "--env", f"GO={tmp_path / 'go'}"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as run:
        try:
            follow = [sys.executable, "-m", "tfyard", "logs", "-f", "train", "--local"]
            while not (indexes := list(tmp_path.glob(".tfyard/runs/*/logs/.*.times"))):
                assert run.poll() is None
                time.sleep(0.02)
            with subprocess.Popen(follow, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as logs:
                assert logs.stdout is not None
                assert logs.stdout.readline() == "line 0\n"
                while indexes[0].stat().st_size < 2 * RECORD.size:  # the start, and the first lines
                    assert run.poll() is None
                    time.sleep(0.02)
                (tmp_path / "go").touch()
                assert logs.stdout.read() == "line 1\nline 2\nlast\n"
                assert logs.wait(60) == 5
            assert run.wait(60) == 5
        finally:
            run.kill()
    assert tfyard("logs", "train", "--local", "--tail", "2", cwd=tmp_path).out == "line 2\nlast\n"
    again = tfyard("logs", "-f", "train", "--local", "--tail", "2", cwd=tmp_path)
    assert (again.code, again.out) == (5, "line 2\nlast\n")
    assert tfyard(
        "logs", "train", "worker", "--local", "--prefix", "--all-attempts", cwd=tmp_path
    ).out.startswith("worker-0 │ line 0\n")
    timed = tfyard("logs", "train", "--local", "-t", "--since", "5m", cwd=tmp_path)
    stamp = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch("".join(rf"{stamp} {text}\n" for text in LINES), timed.out), timed.out
    relative = tfyard("logs", "train", "--local", "-t", "relative", cwd=tmp_path)
    assert re.fullmatch("".join(rf"\+00:00:\d\d {text}\n" for text in LINES), relative.out), relative.out
    rows = [
        json.loads(row)
        for row in tfyard("logs", "train", "--local", "-o", "json", cwd=tmp_path).out.splitlines()
    ]
    times = [datetime.fromisoformat(row["time"]) for row in rows]
    assert [row["text"] for row in rows] == LINES
    assert times == sorted(times)
    assert times[-1] > times[0]  # the last line was written later
    for index in tmp_path.glob(".tfyard/runs/*/logs/.*.times"):
        index.unlink()  # as a run of an older tfyard
    old = tfyard("logs", "train", "--local", "-t", "--since", "5m", cwd=tmp_path)
    assert (old.code, old.out.splitlines()) == (0, LINES)
    assert old.err == (
        "tfyard: no times were recorded for the lines of worker-0; of a log that was written to since then, "
        "everything is shown\n"
    )


@pytest.mark.processes
def test_a_run_that_is_deleted_while_it_is_followed_is_reported(tmp_path: Path) -> None:
    run = tmp_path / ".tfyard" / "runs" / "x"
    (run / "logs").mkdir(parents=True)
    tasks = [{"name": "worker-0", "outcome": "Running"}]
    record = {"name": "x", "job": "x", "started": AT, "phase": "Running", "pid": os.getpid(), "tasks": tasks}
    (run / "run.json").write_text(json.dumps(record))
    (run / "logs" / "worker-0.1.log").write_text("a line\n")
    follow = [sys.executable, "-m", "tfyard", "logs", "-f", "x", "--local"]
    with subprocess.Popen(
        follow, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as logs:
        assert logs.stdout is not None
        assert logs.stdout.readline() == "a line\n"
        shutil.rmtree(run)
        _, errors = logs.communicate(timeout=60)
    assert (logs.returncode, errors) == (3, "tfyard: x was deleted\n")


@pytest.mark.parametrize(
    "args",
    [
        *(("--since", "soon"), ("--grep", "("), ("--attempt", "0"), ("--attempt", "1", "--all-attempts")),
        *(("--mlflow", "http://a"), ("--mlflow", "a", "-f")),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path: Path, args: tuple[str, ...]) -> None:
    run = tmp_path / ".tfyard" / "runs" / "x"
    (run / "logs").mkdir(parents=True)
    record = {"name": "x", "job": "x", "started": AT, "ended": AT, "phase": "Failed"}
    (run / "run.json").write_text(json.dumps(record))
    done = tfyard("logs", "x", "--local", *args, cwd=tmp_path)
    assert (done.code, done.err.count("\n"), args[0].strip("-") in done.err) == (2, 1, True), done.err


def test_a_run_reports_itself_to_mlflow(tmp_path: Path) -> None:
    run = tmp_path / ".tfyard" / "runs" / "x"
    (run / "logs").mkdir(parents=True)
    record = {"name": "x", "job": "x", "started": AT, "ended": AT, "phase": "Failed"}
    (run / "run.json").write_text(json.dumps(record))
    done = tfyard("logs", "-f", "x", "--local", "--mlflow", "http://a", cwd=tmp_path)
    assert (done.code, done.err.count("\n"), "a run on this machine reports itself" in done.err) == (
        1,
        1,
        True,
    )


def test_nothing_slow_is_imported_without_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(kubeconfig.dump(Access(ClusterEntry(server="http://127.0.0.1:1"))))
    monkeypatch.chdir(tmp_path)
    assert not SLOW & imported("logs", "x", "--kubeconfig", "config")


def test_a_flood_on_a_screen_costs_lines_that_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    printer = Printer(["worker-0"], LineStyle(may_skip=True))
    flood = [b"%d" % n for n in range(10_000)]
    printer.show(Lines(Start("worker-0"), flood))
    printer.show(Lines(Start("worker-0"), flood))
    printer.close()
    out, err = capfd.readouterr()
    shown = out.splitlines()
    assert shown[-1] == "worker-0 │ 9999"
    skipped = sum(int(found.replace(",", "")) for found in re.findall(r"… ([\d,]+) lines skipped", err))
    assert len(shown) + skipped == 20_000
    assert len(shown) <= 2 * LINES_PER_FLUSH


def test_notices_of_tensorflow_are_folded_while_a_submitted_job_is_followed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    printer, start = Printer(["worker-0"], LineStyle(folds=True)), Start("worker-0")
    notice = b"I0000 00:00:1769853600.123456   12345 gpu_device.cc:2022] Created device"
    printer.show(Lines(start, [notice, b"step 1", notice], [b"a", b"b", b"c"]))
    printer.show(Remark(kind="ended", text="ended: exit code 0", start=start))
    printer.close()
    out, err = capfd.readouterr()
    assert out == "worker-0 │ step 1\n"
    assert "2 lines of TensorFlow's runtime; --verbose shows them" in err


def test_on_a_terminal_each_row_of_a_long_line_has_its_task_in_its_colour(tmp_path: Path) -> None:
    run = tmp_path / ".tfyard" / "runs" / "x"
    (run / "logs").mkdir(parents=True)
    tasks = [{"name": f"worker-{n}", "outcome": "Failed"} for n in range(2)]
    record = {"name": "x", "job": "x", "started": AT, "ended": AT, "phase": "Failed", "tasks": tasks}
    (run / "run.json").write_text(json.dumps(record))
    (run / "logs" / "worker-1.1.log").write_bytes(b"a" * 30 + b"\x1b]0;title\x07" + b"b" * 60 + b"\n")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 51, 0, 0))
    command = [sys.executable, "-m", "tfyard", "logs", "x", "--local"]
    env = {**os.environ, "TERM": "xterm"}
    env.pop("NO_COLOR", None)
    subprocess.run(command, cwd=tmp_path, stdout=slave, check=True, env=env)
    os.close(slave)
    shown = read_terminal(master)
    label = "\x1b[32mworker-1 │ \x1b[0m"
    rows = ["a" * 30 + "b" * 10, "b" * 40, "b" * 10]
    assert shown == "".join(f"{label}{row}\r\n" for row in rows)
