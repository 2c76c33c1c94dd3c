"""What a failed run ends with, and what `tfyard why` says of runs: real programs that are broken."""

import json
import signal
import socket
import time

import pytest

from tests.e2e.conftest import Yard

pytestmark = pytest.mark.processes

PROGRAMS = {
    "import panda": ("missing-module", "did not find the module panda"),
    "import json\ndef load():\n    json.loads('{')\nload()": ("program-error", "/task.py:3)"),
    "open('/nowhere/x.csv')": ("missing-file", "did not find the file /nowhere/x.csv"),
    "import os; os.abort()": ("abort", "SIGABRT"),
    "import sys; sys.exit(5)": ("program-error", "ended with exit code 5, and said nothing"),
}


@pytest.mark.parametrize(
    ("program", "expected"), PROGRAMS.items(), ids=[kind for kind, _ in PROGRAMS.values()]
)
def test_a_run_that_fails_ends_with_its_cause(yard: Yard, program: str, expected: tuple[str, str]) -> None:
    kind, words = expected
    yard.job(program)
    done = yard.tfyard("run", "job.yaml", "-q")
    assert words in done.stdout
    told = yard.tfyard("why", "--local", "t", "-o", "json")
    answer = json.loads(told.stdout)
    assert (told.returncode, answer["code"], answer["causes"][0]["kind"]) == (1, 1, kind)
    assert answer["sentence"] in " ".join(done.stdout.split())


def test_a_port_that_another_process_has(yard: Yard) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        yard.job(f"import socket; socket.create_server(('127.0.0.1', {port}))")
        done = yard.tfyard("run", "job.yaml", "-q")
    assert "is in use by another process" in done.stdout


def test_a_command_that_does_not_exist(yard: Yard) -> None:
    yard.job("", run="pyhton task.py")
    assert "`pyhton` is not on this machine" in yard.tfyard("run", "job.yaml", "-q").stdout


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


@pytest.mark.tensorflow
@pytest.mark.long
def test_what_the_real_tensorflow_says_is_understood(yard: Yard) -> None:
    keras = """
import numpy as np, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=1, verbose=2)
"""
    yard.job(keras, worker=2)
    assert (
        "Keras 3 does not train under MultiWorkerMirroredStrategy"
        in yard.tfyard("run", "job.yaml", "-q").stdout
    )
    yard.job("import tensorflow as tf\ntf.app.run()")
    assert "a program for TensorFlow 1 on TensorFlow 2" in yard.tfyard("run", "job.yaml", "-q").stdout
    shape = "import tensorflow as tf\n@tf.function\ndef f(a):\n    return tf.reshape(a, [5])\nf(tf.ones([2, 2]))\n"
    yard.job(shape)
    assert "task.py:4)" in yard.tfyard("run", "job.yaml", "-q").stdout
