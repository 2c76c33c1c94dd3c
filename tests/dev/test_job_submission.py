"""Scripts submitted to a whole cluster: followed, brought back, and left alone."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tests.dev.running_box import TestBox, until

pytestmark = pytest.mark.cluster
TRAIN = """
import json, os
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    slope, bias = tf.Variable(0.0), tf.Variable(0.0)
x = tf.linspace(0.0, 1.0, 32)
y = 3.0 * x + 1.0


@tf.function
def step():
    def replica():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((slope * x + bias - y) ** 2)
        gradients = tape.gradient(loss, [slope, bias])
        gradients = tf.distribute.get_replica_context().all_reduce("mean", gradients)
        slope.assign_sub(0.5 * gradients[0])
        bias.assign_sub(0.5 * gradients[1])
        return loss
    return strategy.reduce("mean", strategy.run(replica), axis=None)


for number in range(1, 41):
    loss = float(step())
    if number % 20 == 0:
        print(f"Step: {number}, loss: {loss:.4f}", flush=True)
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
    model = tf.Module()
    model.slope = tf.Variable(float(slope.numpy()))
    tf.saved_model.save(model, os.path.join(os.environ.get("TFYARD_OUT", "out"), "model"))
"""


def submit(box: TestBox, folder: Path, *words: str) -> "subprocess.Popen[str]":
    environ = {**os.environ, "KUBECONFIG": str(box.folder.kubeconfig)}
    command = [sys.executable, "-m", "tfyard", "submit", *words]
    return subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.tensorflow
def test_from_a_folder_with_one_script_a_job_trains_and_its_model_is_brought_back(
    box: TestBox, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    words = ("train.py", "--worker", "2", "--follow", "--on-finish", "out")
    done = tfyard("submit", *words, cwd=tmp_path, KUBECONFIG=str(box.folder.kubeconfig))
    assert done.code == 0, done.err
    for worker in ("worker-0", "worker-1"):
        assert any(line.startswith(worker) and "Step: 40, loss: 0." in line for line in done.out.splitlines())
    assert (tmp_path / "out" / "model" / "saved_model.pb").stat().st_size > 0
    assert box.get("tfjob", "train")["status"]["phase"] == "Succeeded"
    code = tfyard("submit", "train.py", "--name", "next", "--dry-run=client", cwd=tmp_path).out
    assert ("binaryData" in code, "train.py: |" in code) == (False, True)  # what came back is no code
    again = tfyard("submit", "train.py", cwd=tmp_path, KUBECONFIG=str(box.folder.kubeconfig))
    assert (again.code, again.err.count("\n")) == (1, 1)
    assert "TFJob train has succeeded; `tfyard rerun train` runs it again" in again.err


def test_the_exit_code_of_the_job_is_that_of_the_command(box: TestBox, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import sys\nprint('no', flush=True)\nsys.exit(7)\n")
    kubeconfig = str(box.folder.kubeconfig)
    done = tfyard("submit", "fails.py", "--wait", cwd=tmp_path, KUBECONFIG=kubeconfig)
    assert (done.code, "fails: Failed" in done.err) == (7, True)
    other = tfyard("submit", "fails.py", "--follow", "--name", "again", cwd=tmp_path, KUBECONFIG=kubeconfig)
    assert (other.code, other.out) == (7, "no\n")


def test_code_that_is_too_large_for_a_config_map_goes_onto_a_claim_once(box: TestBox, tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(random.Random(1).randbytes(1 << 20))
    (tmp_path / "big.py").write_text("import os\nprint(os.path.getsize('weights'), os.listdir())\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model").write_bytes(b"of an earlier job")
    words, kubeconfig = ("big.py", "--follow", "--on-finish", "out"), str(box.folder.kubeconfig)
    done = tfyard("submit", *words, cwd=tmp_path, KUBECONFIG=kubeconfig)
    assert (done.code, done.out.startswith("1048576 [")) == (0, True), done.err
    assert "'out'" not in done.out
    assert "goes into the claim tfyard-code" in done.err
    again = tfyard("submit", *words, "--name", "bigger", cwd=tmp_path, KUBECONFIG=kubeconfig)
    assert (again.code, again.out) == (0, done.out), again.err
    assert "is in the claim tfyard-code already, nothing is sent" in again.err


def test_an_interrupt_leaves_the_job_alone_and_says_what_to_do_next(box: TestBox, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    with submit(box, tmp_path, "slow.py", "--follow") as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err.endswith(
        "tfyard: the job keeps running; next:\n  tfyard logs -f slow\n  tfyard stop slow\n  tfyard delete slow\n"
    )
    until(lambda: (box.get("tfjob", "slow").get("status") or {}).get("phase") == "Running")
    box.kubectl("delete", "tfjob", "slow")
    until(lambda: not box.get("pods", "-l", "training.kubeflow.org/job-name=slow")["items"])
