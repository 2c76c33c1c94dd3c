"""Programs written for TensorFlow 1, run with the TensorFlow 2 that is installed."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.running import DATA
from tests.e2e.conftest import Yard
from tests.e2e.test_run_tensorflow import example

BEFORE_1 = DATA / "tensorflow-0"
pytestmark = [pytest.mark.processes, pytest.mark.tensorflow]

EXPRESSIONS = {
    "tf.contrib.slim": "tf.contrib ended with TensorFlow 1. Instead of contrib.slim",
    "tf.layers.dense": "tf.layers.dense needs the package tf_keras, which is not installed: pip install tf_keras",
    "tf.nn.rnn_cell.GRUCell": "tf.nn.rnn_cell.GRUCell needs the package tf_keras",
    "tf.estimator.Estimator": "tf.estimator ended with TensorFlow 2.15",
    "tf.konstant": "module 'tensorflow' has no attribute 'konstant'",
}
IMPORTS = {
    "from tensorflow.examples.tutorials.mnist import input_data": "of tutorials.mnist.input_data: tf.keras",
    "import tensorflow.contrib.slim as slim": "`import tf_slim as slim`",
    "from tensorflow.python.framework import graph_util": "",
    "import tensorflow.compat.v2 as tf2": "",
}
PROGRAM = f"""\
import tensorflow as tf
from tensorflow import flags
assert flags is tf.app.flags is tf.flags and tf.train.Server and tf.app.run and not tf.executing_eagerly()
for expression in {list(EXPRESSIONS)}:
    try:
        eval(expression)
    except AttributeError as error:
        print(f"{{expression}}: {{error}}")
for line in {list(IMPORTS)}:
    try:
        exec(line)
        print(f"{{line}}:")
    except ModuleNotFoundError as error:
        print(f"{{line}}: {{error}}")
x = tf.placeholder(tf.float32, [None])
with tf.Session() as session:
    print("sum:", session.run(tf.reduce_sum(x), {{x: [1, 2]}}))
"""


def test_what_tensorflow_2_cannot_give_is_told_with_what_replaced_it(yard: Yard) -> None:
    yard.write("old.py", PROGRAM)
    done = yard.tfyard("run", "old.py", "--tf1")
    assert done.returncode == 0, done.stdout
    for asked, text in (EXPRESSIONS | IMPORTS).items():
        (line,) = [line for line in done.stdout.splitlines() if f"│ {asked}:" in line]
        assert text in line
    assert "sum: 3.0" in done.stdout


def test_what_1_0_renamed_or_reordered_is_understood_and_what_1_0_accepts_is_not_changed(yard: Yard) -> None:
    done = yard.tfyard("run", str(BEFORE_1 / "forms.py"), "--tf1", TF_CPP_MIN_LOG_LEVEL="3")
    assert "worker-0 │ forms that failed: 0" in done.stdout, done.stdout
    assert done.returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("options", ["", " --sync"])
def test_a_distributed_program_from_before_1_0_trains_unchanged(yard: Yard, options: str) -> None:
    hosts = "--ps_hosts=$PS_HOSTS --worker_hosts=$WORKER_HOSTS --job_name=$JOB_NAME --task_index=$TASK_INDEX"
    command = f"python train.py {hosts} --steps 400{options}"
    env = {"TF_CPP_MIN_LOG_LEVEL": 3, "OMP_NUM_THREADS": 1, "TF_NUM_INTRAOP_THREADS": 1}
    yard.job("", worker=2, ps=1, run=command, env=env, tf1=True)
    shutil.copy(BEFORE_1 / "train.py", yard.folder)
    outcome = yard.run()
    assert outcome.code == 0, outcome.events[-5:]
    assert outcome.of("metric", "worker-0")[-1]["values"]["accuracy"] > 0.9


TENSORFLOW_2 = """\
import types
__version__ = "2.21.0"
v1 = types.ModuleType("v1")
v1.__path__, v1.app, v1.disable_v2_behavior = [], "that of TensorFlow 1", lambda: None
compat = types.SimpleNamespace(v1=v1)
"""


def test_what_is_rendered_for_a_cluster_gives_pods_the_same_module(yard: Yard) -> None:
    """The ConfigMap becomes files here as it does in a pod. A small TensorFlow will do for that."""
    yard.write("lib/tensorflow/__init__.py", TENSORFLOW_2)
    yard.job("import tensorflow as tf; print(tf.app)", tf1=True, env={"PYTHONPATH": str(yard.folder / "lib")})
    rendered = yard.tfyard("render", "job.yaml").stdout
    yard.write("rendered.yaml", rendered)
    done = yard.tfyard("run", "rendered.yaml")
    assert "worker-0 │ that of TensorFlow 1" in done.stdout, done.stdout + done.stderr
    assert "kind: ConfigMap" in rendered
    assert "/tfyard-tf1:$(TFYARD_PYTHONPATH)" in rendered


@pytest.fixture
def load() -> Iterator[None]:
    """As many busy processes as would make a step of the training wait for its turn."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    yield
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.usefixtures("load")
def test_it_trains_to_its_end_on_a_loaded_machine(yard: Yard) -> None:
    """The walk of document 003 (tests/documents) trains the same program with fewer steps."""
    example(yard, "cancer", "tf1.yaml", 3000)
    outcome = yard.run()
    assert outcome.code == 0, outcome.events[-5:]
    assert outcome.of("metric")[-1]["values"]["auc"] >= 0.976
