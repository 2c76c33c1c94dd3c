"""What a failed run ends with, and what `tfyard why` says of runs: real programs that are broken."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.e2e.conftest import TIMEOUT, Yard, wait_until
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local.evidence import gather
from tfyard.overview.why import Answer, explain

pytestmark = pytest.mark.processes

AS_NOBODY = "import os\nif os.geteuid() == 0:\n    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
OUT: dict[str, Any] = {"volumes": {"out": {"claim": "results", "at": "/out"}}}
READ_ONLY: dict[str, Any] = {"volumes": {"out": {"claim": "results", "at": "/out", "readOnly": True}}}


class Broken(Struct, frozen=True):
    """A program, the words of its job file, and what is said of its end."""

    program: str
    kind: str
    sentence: str
    words: dict[str, Any] = {}


PROGRAMS = (
    Broken("import panda", "missing-module", "did not find the module panda"),
    Broken("import json\ndef load():\n    json.loads('{')\nload()", "program-error", "/task.py:3)"),
    Broken("open('/nowhere/x.csv')", "missing-file", "did not find the file /nowhere/x.csv"),
    Broken("import sys; sys.exit(5)", "program-error", "ended with exit code 5, and said nothing"),
    Broken("import os; os.abort()", "abort", "SIGABRT"),
    Broken("import os; os.kill(os.getpid(), 11)", "crash", "SIGSEGV"),
    Broken("import os; os.kill(os.getpid(), 9)", "killed", "SIGKILL"),
    Broken("print('x' * 99999, file=open('/dev/full', 'w'))", "no-space", "ran out of disk space"),
    Broken(f"{AS_NOBODY}open('/proc/1/mem')", "permission", "may not write or read /proc/1/mem"),
    Broken(f"{AS_NOBODY}open('/out/x', 'w')", "volume-not-writable", "its volume at /out", OUT),
    Broken("open('/out/x', 'w')", "volume-not-writable", "/out: it is mounted read-only", READ_ONLY),
    Broken("x = bytearray(400_000_000)", "out-of-memory", "limit of 150Mi", {"memory": "150Mi"}),
    Broken("", "command", "`pyhton` is not on this machine", {"run": "pyhton task.py"}),
    Broken("", "command", "`./task.py` may not be executed", {"run": ["./task.py"]}),
    Broken("import time; time.sleep(60)", "deadline", "longer than its deadline of 1s", {"deadline": "1s"}),
)


@pytest.mark.parametrize("broken", PROGRAMS, ids=lambda each: each.kind)
def test_a_run_that_fails_ends_with_its_cause(yard: Yard, broken: Broken) -> None:
    yard.job(broken.program, **broken.words)
    done = yard.tfyard("run", "job.yaml", "-q")
    answer = why(yard)
    assert (answer.code, answer.causes[0].kind) == (1, broken.kind), done.stdout
    assert broken.sentence in answer.sentence
    assert answer.sentence in " ".join(done.stdout.split())


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
        time.sleep(0.1)  # its record follows a moment later
    assert "runs; nothing stands in its way" in told.stdout
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    told = yard.tfyard("why", "--local", "t")
    assert (told.returncode, told.stdout) == (
        1,
        "somebody stopped it, by Ctrl-C or a signal, before it ended\n",
    )


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
    assert "http://127.0.0.1:1: [Errno 111] Connection refused; this is the run t-" in done.stderr
    done = yard.tfyard("why", "nothing", KUBECONFIG=config)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tfyard: http://127.0.0.1:1: [Errno 111] Connection refused\n"


def test_an_unknown_name_and_no_cluster_is_one_line(yard: Yard) -> None:
    done = yard.tfyard("why", "nothing", KUBECONFIG=str(yard.folder / "none"), HOME=str(yard.folder))
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert done.returncode in (1, 2)


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
        assert found.sentence == "loss of worker-0 is not a number, and the training goes on"
        age(yard, minutes=25)
        found = why(yard)
    assert [cause.kind for cause in found.causes] == ["nan-loss", "no-progress"]
    assert found.causes[1].sentence.startswith("worker-0 printed nothing for 25m")


# --- what the real TensorFlow says

IN_STRATEGY = """
import numpy as np, tensorflow as tf
strategy = {strategy}
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=1, verbose=2)
"""
PARAMETER_SERVER = """
import numpy as np, tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
role = resolver.task_type
if role != "chief":
    tf.distribute.Server(resolver.cluster_spec(), role, resolver.task_id, "grpc").join()
with tf.distribute.ParameterServerStrategy(resolver).scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
data = tf.data.Dataset.from_tensors((np.ones((4, 2)), np.ones((4, 1)))).repeat()
model.fit(data, epochs=1, steps_per_epoch=2, verbose=2)
"""
SHAPE = "@tf.function\ndef f(a):\n    return tf.reshape(a, [5])\nf(tf.ones([2, 2]))\n"
NAN = "tf.debugging.check_numerics(tf.math.log(tf.constant(-1.0)), 'loss')"
SERVER = """
import socket
import tensorflow as tf
with socket.create_server(("127.0.0.1", 0)) as taken:
    port = taken.getsockname()[1]
    tf.distribute.Server({"worker": [f"127.0.0.1:{port}"]}, job_name="worker", task_index=0)
"""
TENSORFLOW = (
    Broken(
        IN_STRATEGY.format(strategy="tf.distribute.MultiWorkerMirroredStrategy()"),
        "keras-3",
        "Keras 3 does not train under MultiWorkerMirroredStrategy",
        {"worker": 2},
    ),
    Broken(PARAMETER_SERVER, "keras-3", "or ParameterServerStrategy", {"chief": 1, "worker": 1, "ps": 1}),
    Broken("import tensorflow as tf\ntf.app.run()", "tensorflow-1", "for TensorFlow 1 on TensorFlow 2"),
    Broken("import tensorflow.contrib", "tensorflow-1", "for TensorFlow 1 on TensorFlow 2"),
    Broken(f"import tensorflow as tf\n{SHAPE}", "program-error", "task.py:4)"),
    Broken("import tensorflow as tf\ntf.zeros([1 << 44])", "gpu-memory", "more memory than"),
    Broken(f"import tensorflow as tf\n{NAN}", "nan-loss", "the loss or a tensor is not a number"),
    Broken(SERVER, "address-in-use", "cannot be opened: usually another process has it"),
)


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


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_lost_peer_comes_after_what_ended_the_peer(yard: Yard) -> None:
    reduce = "strategy.run(lambda: tf.distribute.get_replica_context().all_reduce('sum', tf.ones([])))"
    after = f"if second: raise ValueError('bad data')\n{reduce}"
    yard.job(MIRRORED.format(before="", after=after), worker=2, success="all-workers")
    yard.tfyard("run", "job.yaml", "-q")
    assert why(yard).sentence.startswith("worker-1 failed with ValueError: bad data (")
