"""`tfyard run train.py` does what `python train.py` does: the same folder, files, interpreter and text."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Yard

pytestmark = pytest.mark.processes

PROJECT = {
    "src/train.py": """
import os, sys, helper
here = os.path.dirname(__file__)
print(os.getcwd(), __file__, sys.argv[1:], helper.WORD)
print(open("data/x.csv").read(), open(here + "/../data/x.csv").read())
open("out.txt", "w")
""",
    "src/helper.py": "WORD = 'helped'",
    "src/__init__.py": "",
    "src/module.py": """
import os, sys
from src import helper
print(os.getcwd(), __file__, sys.argv[1:], helper.WORD)
""",
    "data/x.csv": "1,2",
}


@pytest.fixture
def project(yard: Yard) -> Yard:
    for name, text in PROJECT.items():
        yard.write(name, text)
    return yard


def lines(out: str, task: str = "worker-0") -> list[str]:
    return [line.partition(" │ ")[2] for line in out.splitlines() if line.startswith(f"{task} │ ")]


def test_a_script_keeps_the_working_directory_and_its_path_and_its_saved_job_too(project: Yard) -> None:
    done = project.tfyard("run", "src/train.py", "--save", "deploy.yaml", "--", "$$", "$(HOME)")
    again = project.tfyard("run", "deploy.yaml")
    folder = project.folder
    for run in (done, again):
        assert lines(run.stdout)[:2] == [
            f"{folder} {folder}/src/train.py ['$$', '$(HOME)'] helped",
            "1,2 1,2",
        ], run.stdout + run.stderr
    assert (folder / "out.txt").exists()
    assert not (folder / "src" / "out.txt").exists()


def test_a_module_is_run_as_python_runs_it(project: Yard) -> None:
    done = project.tfyard("run", "-m", "src.module", "--worker", "2", "--", "--steps", "3")
    expected = f"{project.folder} {project.folder}/src/module.py ['--steps', '3'] helped"
    assert lines(done.stdout)[0] == expected, done.stdout + done.stderr
    assert done.stdout.startswith("module: 2 Worker")


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param("python train.py", "{0} {0}/train.py", id="its own path"),
        pytest.param(
            "python /code/train.py", "/code /code/train.py", id="the mount path, if a command names it"
        ),
    ],
)
def test_the_code_of_a_job_file_keeps_its_path_and_a_dry_run_says_which(
    yard: Yard, run: str, expected: str
) -> None:
    yard.write("mine/train.py", "import os; print(os.getcwd(), __file__, os.listdir('/code'))")
    yard.write("job.yaml", f"name: t\nimage: a\ncode: mine\nrun: {run}\n")
    outcome = yard.run()
    folder, path, listed = outcome.lines("worker-0")[0].split(" ", 2)
    assert f"{folder} {path}" == expected.format(yard.folder / "mine")
    assert "train.py" in listed
    (process,) = json.loads(yard.tfyard("run", "job.yaml", "--dry-run", "-o", "json").stdout)
    assert process["directory"] == folder


def test_a_shell_line_arrives_as_it_is_written(yard: Yard) -> None:
    yard.write("job.yaml", "name: t\nimage: a\nrun: echo $(echo in) $((1 + 2)); test $$ -gt 1 && echo pid\n")
    assert yard.run().lines("worker-0") == ["in 3", "pid"]


# The interpreter.


def environment(folder: Path) -> Path:
    """Something that looks like an active virtual environment, without TensorFlow in it."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nME={folder.name} exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    return folder


def test_python_is_that_of_the_active_environment_and_the_first_line_names_it(yard: Yard) -> None:
    active, other = environment(yard.folder / "venv"), environment(yard.folder / "other")
    yard.write("train.py", "import os; print(os.environ['ME'])")
    done = yard.tfyard("run", "train.py", VIRTUAL_ENV=str(active))
    assert lines(done.stdout)[0] == "venv"
    assert f"; python is {active}/bin/python (VIRTUAL_ENV); " in done.stdout.splitlines()[0]
    done = yard.tfyard("run", "train.py", "--python", "other", VIRTUAL_ENV=str(active))
    assert lines(done.stdout)[0] == "other"
    assert f"; python is {other}/bin/python (--python); " in done.stdout.splitlines()[0]


def test_a_module_that_is_not_found_is_told_with_the_interpreter_once(yard: Yard) -> None:
    active = environment(yard.folder / "venv")
    yard.write("train.py", "import tensorflow")
    done = yard.tfyard("run", "train.py", "--worker", "2", VIRTUAL_ENV=str(active))
    assert done.returncode == 1
    text = f"python is {active}/bin/python (VIRTUAL_ENV), which does not find tensorflow; activate"
    assert done.stdout.count(text) == 1


# What is asked for on the command line.


def test_a_script_can_be_given_what_a_job_file_says(yard: Yard) -> None:
    yard.write("train.py", "import sys; sys.exit(200)")
    done = yard.tfyard("run", "train.py", "--restart", "exit-code", "--retries", "2", "--save", "job.yaml")
    assert done.returncode == 200
    assert done.stdout.count("worker-0 ── ended with code 200") == 3
    assert "restart: exit-code\nretries: 2\n" in (yard.folder / "job.yaml").read_text()
    yard.write("slow.py", "import time; time.sleep(1000)")
    assert yard.tfyard("run", "slow.py", "--deadline", "1s").returncode == 124
    yard.write("big.py", "import time; x = bytearray(300_000_000); time.sleep(1000)")
    assert yard.tfyard("run", "big.py", "--memory", "150Mi").returncode == 137


# Dry runs.

PODS = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: t}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          initContainers: [{name: fetch, image: a, command: [fetch], env: [{name: STEP, value: first}]}]
          containers:
          - name: tensorflow
            image: a
            command: [python, train.py, --token=$(TOKEN)]
            env:
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: token}}}
            - {name: OTHER, valueFrom: {secretKeyRef: {name: keys, key: other}}}
            - {name: URL, value: "https://$(TOKEN)@host"}
          - {name: proxy, image: a, command: [proxy], envFrom: [{secretRef: {name: keys}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {token: hunter2, other: hunter3}
"""


def test_a_dry_run_shows_every_container_with_its_own_environment_and_no_secret(yard: Yard) -> None:
    yard.write("job.yaml", PODS)
    told = yard.tfyard("run", "job.yaml", "--dry-run", "--env", "OTHER=hunter4")
    assert "worker-1, init container fetch:\n" in told.stdout
    assert "worker-1, container proxy:\n" in told.stdout
    assert "  URL='https://<secret keys/token>@host'\n" in told.stdout
    done = yard.tfyard("run", "job.yaml", "--dry-run", "--env", "OTHER=hunter4", "-o", "json")
    assert "hunter" not in told.stdout + done.stdout
    processes = {(process["task"], process["container"]): process for process in json.loads(done.stdout)}
    assert list(processes) == [
        (f"worker-{i}", name) for i in (0, 1) for name in ("fetch", "tensorflow", "proxy")
    ]
    fetch, main, proxy = (processes["worker-1", name] for name in ("fetch", "tensorflow", "proxy"))
    assert (fetch["isInit"], main["isInit"]) == (True, False)
    assert fetch["env"]["STEP"] == "first"
    assert main["command"][-1] == "--token=<secret keys/token>"
    assert json.loads(main["env"]["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}
    assert proxy["env"]["token"] == "<secret keys/token>"
    assert "TF_CONFIG" not in proxy["env"]
    assert os.environ["PATH"] not in done.stdout
