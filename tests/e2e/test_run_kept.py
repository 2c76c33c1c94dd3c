"""What a run leaves behind, and how it is found again."""

import os
import re
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.conftest import Yard, supervisor_of, wait_until
from tfyard.backends.local import run_directory

pytestmark = pytest.mark.processes

SECRET = """
kind: Secret
apiVersion: v1
metadata: {name: token}
stringData: {token: hunter2}
---
"""


def test_a_killed_run_says_so_and_how_long_it_was_alive(yard: Yard) -> None:
    yard.job("import time; time.sleep(600)", worker=2)
    process = yard.start("run", "job.yaml")
    wait_until(lambda: "worker-1  Running" in yard.tfyard("runs", "show", "t").stdout, "the run is shown")
    assert "Running" in yard.tfyard("runs").stdout
    refused = yard.tfyard("runs", "rm", "t")
    assert (refused.returncode, "is still running" in refused.stderr) == (1, True)
    (directory,) = (yard.folder / ".tfyard" / "runs").iterdir()
    run = run_directory.RunDirectory(directory)
    record = run.load()
    assert record is not None
    wait_until(lambda: age(directory / "run.json", record.started) > 2, "it says that it is alive")
    process.kill()
    process.wait()
    assert "Killed" in yard.tfyard("runs").stdout
    killed = yard.tfyard("runs", "show", "t").stdout
    assert "worker-1  Killed" in killed
    wait_until(lambda: not (directory / "scratch").exists(), "nothing is written any more")
    found = run.load()
    assert found is not None
    assert found.ended is not None
    assert found.ended - found.started > timedelta(seconds=2)
    assert run.load() == found, "it does not go on"


def age(path: Path, since: datetime) -> float:
    """Seconds from then until it was last written."""
    return path.stat().st_mtime - since.timestamp()


def test_a_missing_config_map_is_named_before_there_is_a_run(yard: Yard) -> None:
    yard.job("pass", volumes={"settings": {"configMap": "missing", "at": "/settings"}})
    done = yard.tfyard("run", "job.yaml")
    assert done.returncode == 2
    assert done.stderr == 'tfyard: configmap "missing" not found; put it into the same file\n'
    assert not (yard.folder / ".tfyard").exists()


def test_a_working_directory_of_the_image_is_named_before_there_is_a_run(yard: Yard) -> None:
    yard.job("pass", workdir="/no/such/place")
    done = yard.tfyard("run", "job.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "worker-0: the working directory /no/such/place is in the image" in done.stderr


def test_a_secret_can_be_read_by_nobody_else_and_goes_with_the_run(yard: Yard) -> None:
    script = """
import os, pathlib, stat
(scratch,) = pathlib.Path(os.environ["HERE"]).glob(".tfyard/runs/*/scratch")
print(stat.filemode(scratch.stat().st_mode))
try:
    open("/secrets/token", "a")
except OSError as error:
    print(error.strerror, open("/secrets/token").read())
"""
    token = {"token": {"secret": "token", "at": "/secrets"}}
    yard.job(script, volumes=token, env={"HERE": str(yard.folder)})
    yard.write("job.yaml", SECRET + (yard.folder / "job.yaml").read_text())
    outcome = yard.run()
    assert outcome.lines("worker-0") == ["drwx------", "Read-only file system hunter2"]
    assert not (outcome.directory / "scratch").exists()


@pytest.mark.parametrize("killed", ["tfyard", "supervisor", "both"])
def test_secrets_go_even_if_the_run_is_killed(yard: Yard, killed: str) -> None:
    """At once if one of the two is alive to do it; by the next command if not."""
    token = {"token": {"secret": "token", "at": "/secrets"}}
    yard.job("import time; time.sleep(600)", worker=2, volumes=token)
    yard.write("job.yaml", SECRET + (yard.folder / "job.yaml").read_text())
    process = yard.start("run", "job.yaml", "--attach", "worker-1")
    wait_until(lambda: len(secrets(yard)) == 3, "the Secret is a file of both tasks, and the script is there")
    yard.tfyard("runs", "show", "t")
    assert len(secrets(yard)) == 3, "a run that goes on keeps them"
    supervisor = supervisor_of(process.pid)
    if killed == "both":
        os.kill(supervisor, signal.SIGSTOP)
    for pid in {"tfyard": [process.pid], "supervisor": [supervisor]}.get(killed, [process.pid, supervisor]):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    if killed == "both":
        assert len(secrets(yard)) == 3
        yard.tfyard("runs", "logs", "t")
        assert secrets(yard) == []
    wait_until(lambda: not secrets(yard), "the Secrets are gone")


def secrets(yard: Yard) -> list[Path]:
    """Files of Secrets and scripts with the environment of a task."""
    return [
        Path(folder, name)
        for folder, _, names in os.walk(
            yard.folder / ".tfyard" / "runs"
        )  # which may go while they are looked at
        for name in names
        if name == "token" or re.fullmatch(r"attach-.*\.sh", name)
    ]


@pytest.mark.parametrize("command", [("runs",), ("explain", "worker"), ("validate", "job.yaml")])
def test_a_full_disk_behind_the_output_is_told_in_one_line(yard: Yard, command: tuple[str, ...]) -> None:
    yard.job("pass")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tfyard", *command],
            cwd=yard.folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "tfyard: No space left on device\n")


@pytest.mark.parametrize("options", [(), ("-q",), ("-o", "json")])
def test_a_run_whose_output_is_lost_on_a_full_disk_does_not_end_with_0(
    yard: Yard, options: tuple[str, ...]
) -> None:
    yard.job("print('x')")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tfyard", "run", "job.yaml", *options],
            cwd=yard.folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device: output of the run was lost; `tfyard runs logs t-" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_output_does_not_end_the_run(yard: Yard) -> None:
    yard.job("pass")
    line = f"exec {sys.executable} -m tfyard run job.yaml >&- 2>&-"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=yard.folder, check=False)
    assert done.returncode == 0


def test_ctrl_c_before_anything_has_begun_is_silent() -> None:
    program = """
import os, signal, sys, tfyard.__main__

class Impatient:
    def find_spec(self, *_):
        os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Impatient())
tfyard.__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_a_folder_that_cannot_be_written_to_is_told_with_the_fix(yard: Yard) -> None:
    yard.job("print('x')")
    done = yard.tfyard("run", "job.yaml", TFYARD_HOME="/proc/nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tfyard: /proc/nowhere")
    assert done.stderr.endswith(
        "; set TFYARD_HOME to a folder that can be written to, or run from another folder\n"
    )
    assert yard.tfyard("run", "job.yaml", TFYARD_HOME="elsewhere").returncode == 0
    assert sorted(path.name for path in yard.folder.iterdir()) == ["elsewhere", "job.yaml", "task.py"]
    assert "Succeeded" in yard.tfyard("runs", TFYARD_HOME="elsewhere").stdout
