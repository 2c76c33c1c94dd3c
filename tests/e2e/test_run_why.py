"""What a failed run ends with, and what `tfyard why` says of runs: real programs that are broken."""

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.broken_programs import BEGINNERS, PROGRAMS, TENSORFLOW, Broken
from tests.e2e.conftest import TIMEOUT, Yard, wait_until
from tests.wording import is_said
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local.evidence import gather
from tfyard.overview.why import Answer, explain

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("broken", PROGRAMS, ids=lambda each: each.kind)
def test_a_run_that_fails_ends_with_its_cause(yard: Yard, broken: Broken) -> None:
    yard.job(broken.program, **broken.words)
    done = yard.tfyard("run", "job.yaml", "-q")
    answer = why(yard)
    assert (answer.code, answer.causes[0].kind) == (1, broken.kind), done.stdout
    assert is_said(broken.sentence, answer.sentence), answer.sentence
    assert is_said(broken.fix, answer.causes[0].fix), answer.causes[0].fix
    assert answer.sentence in " ".join(done.stdout.split())


@pytest.mark.long
@pytest.mark.parametrize("broken", BEGINNERS, ids=lambda each: each.kind)
def test_mistakes_of_beginners_are_told_as_an_expert_would(yard: Yard, broken: Broken) -> None:
    test_a_run_that_fails_ends_with_its_cause(yard, broken)


@pytest.mark.parametrize(
    ("env", "text"),
    [({"A=B": "1"}, "'A=B' cannot be the name of a variable"), ({"A": "1\0"}, "the variable A has a NUL")],
)
def test_variables_that_no_program_can_have_are_refused_before_anything_starts(
    yard: Yard, env: dict[str, str], text: str
) -> None:
    yard.job("", env=env)
    done = yard.tfyard("run", "job.yaml")
    assert (done.returncode, list(yard.folder.glob(".tfyard/runs/*"))) == (2, [])
    assert text in done.stderr


def test_a_traceback_of_a_run_that_succeeded_is_no_cause(yard: Yard) -> None:
    yard.job("import traceback\ntry:\n    {}[1]\nexcept KeyError:\n    traceback.print_exc()")
    assert yard.tfyard("run", "job.yaml", "-q").returncode == 0
    assert (why(yard).code, why(yard).causes) == (0, ())


EVALUATION = """
import json, os, pathlib, sys, time
if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "evaluator":
    status = next(pathlib.Path(sys.argv[1]).glob(".tfyard/runs/*/status.json"))
    while '"Succeeded"' not in status.read_text():
        time.sleep(0.02)
    raise ValueError("no such metric")
"""


def test_a_run_that_succeeds_without_one_of_its_tasks_says_why_that_failed(yard: Yard) -> None:
    run = ["python", "task.py", str(yard.folder)]
    yard.job(EVALUATION, run=run, worker=1, evaluator={"grace": "1m"})
    done = yard.tfyard("run", "job.yaml", "-q")
    answer = why(yard)
    failed = "evaluator-0 failed with ValueError: no such metric"
    assert (done.returncode, answer.code, answer.state) == (0, 0, "fine")
    assert f" has succeeded, though not all of its tasks: {failed}" in answer.sentence
    assert answer.sentence in " ".join(done.stdout.split())
    assert "; evaluator-0 failed (tfyard why t-" in yard.tfyard("describe", "--local", "t").stdout


def test_an_init_container_that_fails_is_named_and_its_log_is_shown(yard: Yard) -> None:
    line = "echo looking; echo there is no data >&2; exit 3"
    step = {"name": "prepare", "image": "example/train:1", "command": ["sh", "-c", line]}
    yard.job("print('trained')", overlay={"spec": {"initContainers": [step]}})
    done = yard.tfyard("run", "job.yaml", "-q")
    answer = why(yard)
    assert answer.sentence == "worker-0 ended with exit code 3: there is no data (its init container prepare)"
    assert answer.causes[0].fix == "correct the init container prepare in the pod template"
    assert answer.sentence in " ".join(done.stdout.split())
    logs = yard.tfyard("logs", "--local", "t")
    assert logs.stdout.splitlines() == ["looking", "there is no data"]
    assert "its init container prepare failed (exit code 3)" in logs.stderr
    assert "Error in init container prepare" in yard.tfyard("describe", "--local", "t").stdout


def test_an_init_container_that_does_not_end_is_named_while_it_runs(yard: Yard) -> None:
    step = {"name": "prepare", "image": "example/train:1", "command": ["sh", "-c", "echo looking; sleep 600"]}
    yard.job("print('trained')", worker=2, overlay={"spec": {"initContainers": [step]}})
    running = yard.start("run", "job.yaml")
    wait_until(lambda: yard.tfyard("why", "--local", "@latest").returncode == 3, "it is told")
    told = yard.tfyard("why", "--local", "@latest").stdout.splitlines()
    waits = "worker-0 and worker-1 wait for the init container prepare to end; it has run for "
    assert told[0].startswith(waits), told
    assert re.search(r"`tfyard logs t-\S+ --local`$", told[1]), told
    assert "looking" in " ".join(told[2:])
    described = yard.tfyard("describe", "--local", "@latest").stdout
    assert re.search(r"worker-1 +1 +Preparing .*in init container prepare", described), described
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    assert "it was interrupted" in yard.tfyard("why", "--local", "@latest").stdout, out


def test_each_task_of_a_run_that_failed_is_listed_by_how_it_ended_itself(yard: Yard) -> None:
    yard.job("raise SystemExit(3)", worker=2)
    yard.tfyard("run", "job.yaml", "-q")
    told = json.loads(yard.tfyard("runs", "show", "@latest", "-o", "json").stdout)
    outcomes = sorted(task["outcome"] for task in told["tasks"])  # the end of one may have stopped the other
    words = {"Failed": "0/2, 2 failed", "Stopped": "0/2, 1 failed, 1 stopped"}[outcomes[1]]
    assert outcomes[0] == "Failed"
    assert f"{words}  " in yard.tfyard("get", "--local").stdout
    yard.job(EARLY, worker=2)
    yard.tfyard("run", "job.yaml", "-q")
    assert "1/2, 1 stopped" in yard.tfyard("get", "--local").stdout
    told = yard.tfyard("why", "--local", "@latest")
    assert "worker-1 still ran, and was stopped, when worker-0 ended" in told.stdout
    assert "`success: all-workers`" in told.stdout


EARLY = """
import json, os, time
time.sleep(60 * json.loads(os.environ["TF_CONFIG"])["task"]["index"])
"""


def why(yard: Yard) -> Answer:
    """As the command says it."""
    (folder,) = (yard.folder / ".tfyard" / "runs").iterdir()
    directory = RunDirectory(folder)
    record = directory.load()
    assert record is not None
    return explain(gather(directory, record), datetime.now(UTC))


def test_the_command_says_it_as_json(yard: Yard) -> None:
    yard.job("import panda")
    yard.tfyard("run", "job.yaml", "-q")
    told = yard.tfyard("why", "--local", "t", "-o", "json")
    answer = json.loads(told.stdout)
    assert (told.returncode, answer["code"], answer["causes"][0]["kind"]) == (1, 1, "missing-module")


def test_a_port_that_another_process_has(yard: Yard) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        yard.job(f"import socket; socket.create_server(('127.0.0.1', {port}))")
        done = yard.tfyard("run", "job.yaml", "-q")
    assert "is in use by another process" in done.stdout


def test_used_up_retries_come_after_what_used_them_up(yard: Yard) -> None:
    yard.job("raise KeyError('x')", restart="on-failure", retries=1)
    yard.tfyard("run", "job.yaml", "-q")
    found = json.loads(yard.tfyard("why", "--local", "t", "-o", "json").stdout)
    assert [cause["kind"] for cause in found["causes"]] == ["program-error", "retries"]
    assert len(found["causes"][1]["evidence"]) == 2


def test_a_run_is_fine_while_it_runs_and_interrupted_afterwards(yard: Yard) -> None:
    yard.job("import time; print('Step: 1, loss: 0.5', flush=True); time.sleep(60)")
    running = yard.start("run", "job.yaml")
    while "Step: 1" not in (line := running.stdout.readline() if running.stdout else ""):
        assert line
    while (told := yard.tfyard("why", "--local", "t")).returncode:
        assert running.poll() is None
        time.sleep(0.1)  # its record follows a moment later
    assert "runs; nothing blocks it" in told.stdout
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    told = yard.tfyard("why", "--local", "t")
    assert (told.returncode, told.stdout) == (
        1,
        "it was interrupted by Ctrl-C or a signal before it ended\nmore: tfyard explain why.interrupted\n",
    )


def test_a_run_that_its_user_restarted_and_then_stopped_was_stopped(yard: Yard) -> None:
    yard.job("import time; print('Step: 1', flush=True); time.sleep(60)")
    running = yard.start("run", "job.yaml", "-o", "json")
    assert running.stdout is not None
    while '"started"' not in (line := running.stdout.readline()):
        assert line
    wait_until(
        lambda: yard.tfyard("restart", "--local", "t", "--all", "--yes").returncode == 0, "it is restarted"
    )
    assert yard.tfyard("stop", "--local", "t", "--yes").returncode == 0
    running.communicate(timeout=60)
    told = yard.tfyard("why", "--local", "t")
    assert told.returncode == 1
    first, *others, _ = told.stdout.splitlines()
    assert first == "it was stopped by `tfyard stop`; `tfyard resume` continues it"
    assert [line.partition(": ")[2] for line in others] == ["worker-0: restarted by `tfyard restart`"]


# --- fixes, typed as they are printed


def fix(yard: Yard, *words: str) -> str:
    """What `tfyard why` prints for a run that fails."""
    assert yard.tfyard("run", *words, "-q").returncode
    told = yard.tfyard("why", "--local", "@latest").stdout
    return next(line.removeprefix("fix: ") for line in told.splitlines() if line.startswith("fix: "))


def test_who_ran_a_script_gets_options_and_who_ran_a_job_file_gets_its_words(yard: Yard) -> None:
    yard.job("import os; os.environ['BUCKET']")
    assert fix(yard, "task.py") == "--env BUCKET=…"
    assert yard.tfyard("run", "task.py", "--env", "BUCKET=…", "-q").returncode == 0
    yard.job("import time; time.sleep(60)", deadline="1s")
    assert fix(yard, "task.py", "--deadline", "1s") == "a longer `--deadline`"
    assert fix(yard, "job.yaml") == "job file: a longer `deadline:`"
    assert yard.tfyard("rerun", "--local", "@latest", "-q").returncode
    assert "fix: job file: a longer `deadline:`" in yard.tfyard("why", "--local", "@latest").stdout


def test_the_fix_for_a_module_beside_the_folder_of_the_program_is_to_run_it_as_a_module(yard: Yard) -> None:
    yard.write("pkg/train.py", "import pkg.data")
    yard.write("pkg/data.py", "")
    yard.write("job.yaml", "name: t\nimage: none\ncode: .\nrun: python pkg/train.py\nworker: 1\n")
    own = "name the interpreter that has it with --python, or activate its environment; if it is your own code, "
    assert fix(yard, "job.yaml") == f"{own}job file: `run: python -m pkg.train`"
    yard.write("job.yaml", "name: t\nimage: none\ncode: .\nrun: python -m pkg.train\nworker: 1\n")
    assert yard.tfyard("run", "job.yaml", "-q").returncode == 0
    assert fix(yard, "pkg/train.py") == f"{own}`-m pkg.train`"
    assert yard.tfyard("run", "-m", "pkg.train", "-q").returncode == 0


ABSENT = """
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
"""


def test_without_its_cluster_the_run_of_that_name_is_meant_and_that_is_said(yard: Yard) -> None:
    config = str(yard.write("config", ABSENT))
    yard.job("raise KeyError(1)")
    yard.tfyard("run", "job.yaml", "-q")
    done = yard.tfyard("why", "t", KUBECONFIG=config)
    assert done.returncode == 1
    assert done.stdout.startswith("worker-0 failed with KeyError: 1")
    assert "http://127.0.0.1:1: Connection refused; this is the run t-" in done.stderr
    done = yard.tfyard("why", "nothing", KUBECONFIG=config)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tfyard: http://127.0.0.1:1: Connection refused\n"


def test_an_unknown_name_and_no_cluster_is_one_line(yard: Yard) -> None:
    done = yard.tfyard("why", "nothing", KUBECONFIG=str(yard.folder / "none"), HOME=str(yard.folder))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


# --- of runs that go on


@contextmanager
def running(yard: Yard, program: str, **words: Any) -> Iterator[None]:
    """Until the block ends; `program` has printed something."""
    yard.job(program, **words)
    process = yard.start("run", "job.yaml")
    try:
        wait_until(lambda: any(path.stat().st_size for path in logs(yard)), "a first line", TIMEOUT)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def logs(yard: Yard) -> list[Path]:
    return [*yard.folder.glob(".tfyard/runs/*/logs/*.log")]


def age(yard: Yard, minutes: float) -> None:
    """As if the logs had been written so long ago."""
    then = time.time() - 60 * minutes
    for path in logs(yard):
        os.utime(path, (then, then))


def test_a_run_whose_loss_is_not_a_number_and_one_that_is_silent(yard: Yard) -> None:
    program = "import time; print('Step: 10, loss:', float('nan'), flush=True); time.sleep(600)"
    with running(yard, program):
        wait_until(lambda: why(yard).code == 3, "its record follows a moment later")
        found = why(yard)
        assert found.sentence == "loss of worker-0 is not a number, and the training continues"
        age(yard, minutes=25)
        found = why(yard)
    assert [cause.kind for cause in found.causes] == ["nan-loss", "no-progress"]
    assert found.causes[1].sentence.startswith("worker-0 printed nothing for 25m")


# --- what the real TensorFlow says


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.parametrize("broken", TENSORFLOW, ids=lambda each: each.kind)
def test_what_the_real_tensorflow_says_is_understood(yard: Yard, broken: Broken) -> None:
    test_a_run_that_fails_ends_with_its_cause(yard, broken)


MIRRORED = """
import json, os, time
second = json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1
{before}
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
{after}
"""


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_peer_that_never_connects_is_named(yard: Yard) -> None:
    program = MIRRORED.format(before="time.sleep(600 if second else 0)", after="")

    def waits() -> bool:
        age(yard, minutes=5)
        return any(cause.kind == "peers" for cause in why(yard).causes)

    with running(yard, program, worker=2):
        wait_until(waits, "it says whom it waits for", TIMEOUT)
        found = why(yard)
    assert (found.code, found.sentence) == (3, "worker-0 waits for worker-1 to connect")


SERVED = """
import json, os, time
cluster = json.loads(os.environ["TF_CONFIG"])
task = cluster["task"]
if task["type"] == "ps":
    print("loading", flush=True)
    time.sleep(600)
import tensorflow as tf
if task["type"] == "worker":
    tf.distribute.Server(cluster["cluster"], job_name="worker", task_index=task["index"]).join()
tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
"""


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_parameter_server_that_does_not_serve_is_named_after_two_minutes(yard: Yard) -> None:
    def waits() -> bool:
        age(yard, minutes=3)
        return any(cause.kind == "peers" for cause in why(yard).causes)

    with running(yard, SERVED, chief=1, worker=1, ps=1):
        wait_until(waits, "it says whom it waits for", TIMEOUT)
        found = why(yard)
    told = "no TensorFlow server of ps-0 has started yet, so chief-0 and worker-0 cannot go on"
    assert (found.code, found.sentence) == (3, told)
    assert found.causes[0].evidence[0].text == "loading"


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_lost_peer_comes_after_what_ended_the_peer(yard: Yard) -> None:
    reduce = "strategy.run(lambda: tf.distribute.get_replica_context().all_reduce('sum', tf.ones([])))"
    after = f"if second: raise ValueError('bad data')\n{reduce}"
    yard.job(MIRRORED.format(before="", after=after), worker=2, success="all-workers")
    yard.tfyard("run", "job.yaml", "-q")
    assert why(yard).sentence.startswith("worker-1 failed with ValueError: bad data (")
