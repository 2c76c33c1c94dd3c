"""Scripts submitted to a whole cluster: followed, brought back, and left alone."""

import random
import signal
from pathlib import Path

import pytest

from tests.cluster.clusters import Cluster, until
from tests.cluster.jobs import Jobs

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


@pytest.mark.tensorflow
def test_from_a_folder_with_one_script_a_job_trains_and_its_model_is_brought_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    words = ("train.py", "--worker", "2", "--follow", "--on-finish", "out")
    done = cluster.tfyard("submit", *words, cwd=tmp_path)
    assert done.code == 0, done.err
    for worker in ("worker-0", "worker-1"):
        assert any(line.startswith(worker) and "Step: 40, loss: 0." in line for line in done.out.splitlines())
    assert (tmp_path / "out" / "model" / "saved_model.pb").stat().st_size > 0
    assert cluster.get("tfjob", "train")["status"]["phase"] == "Succeeded"
    code = cluster.tfyard("submit", "train.py", "--name", "next", "--dry-run=client", cwd=tmp_path).out
    assert ("binaryData" in code, "train.py: |" in code) == (False, True)  # what came back is no code
    again = cluster.tfyard("submit", "train.py", cwd=tmp_path)
    assert (again.code, again.err.count("\n")) == (1, 1)
    assert "TFJob train has succeeded; `tfyard rerun train` runs it again" in again.err


JOB = """
name: shapes
image: example/shapes:1
code: src
run: python train.py --greeting "$GREETING"
worker: {count: 2, cpu: 100m, memory: 200Mi}
success: all-workers
env: {GREETING: good morning}
volumes: {out: {claim: shapes-out, at: /out, size: 1Gi}}
"""
SHAPES = """
import json, os, pathlib, sys
import shapes
task = json.loads(os.environ["TF_CONFIG"])["task"]
print(*sys.argv[1:], task["index"], flush=True)
pathlib.Path("/out", f"area-{task['index']}").write_text(str(shapes.area(3)))
"""


def test_a_job_file_is_submitted_with_its_code_and_its_outputs_are_brought_back(jobs: Jobs) -> None:
    source = jobs.folder / "src"
    source.mkdir()
    (source / "train.py").write_text(SHAPES)
    (source / "shapes.py").write_text("def area(side):\n    return side * side\n")
    (jobs.folder / "job.yaml").write_text(JOB)
    done = jobs.tfyard("submit", "job.yaml", "--follow", "--on-finish", "results")
    assert done.code == 0, done.err
    assert sorted(done.out.splitlines()) == [
        f"worker-{index} │ --greeting good morning {index}" for index in (0, 1)
    ]
    assert (jobs.folder / "results" / "area-0").read_text() == "9"
    assert jobs.phase("shapes") == "Succeeded"
    kept = {pod["metadata"]["name"] for pod in jobs.get("pods")["items"]}
    assert kept >= {"shapes-worker-0"}


def test_the_exit_code_of_the_job_is_that_of_the_command(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import sys\nprint('no', flush=True)\nsys.exit(7)\n")
    done = cluster.tfyard("submit", "fails.py", "--wait", cwd=tmp_path)
    assert (done.code, "fails: Failed" in done.err) == (7, True)
    other = cluster.tfyard("submit", "fails.py", "--follow", "--name", "again", cwd=tmp_path)
    assert (other.code, other.out) == (7, "no\n")


def test_code_that_is_too_large_for_a_config_map_goes_onto_a_claim_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "weights").write_bytes(random.Random(1).randbytes(1 << 20))
    (tmp_path / "big.py").write_text("import os\nprint(os.path.getsize('weights'), os.listdir())\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model").write_bytes(b"of an earlier job")
    words = ("big.py", "--follow", "--on-finish", "out")
    done = cluster.tfyard("submit", *words, cwd=tmp_path)
    assert (done.code, done.out.startswith("1048576 [")) == (0, True), done.err
    assert "'out'" not in done.out
    assert "goes into the claim tfyard-code" in done.err
    again = cluster.tfyard("submit", *words, "--name", "bigger", cwd=tmp_path)
    assert (again.code, again.out) == (0, done.out), again.err
    assert "is in the claim tfyard-code already, nothing is sent" in again.err


def test_an_interrupt_leaves_the_job_alone_and_says_what_to_do_next(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    with cluster.start_tfyard("submit", "slow.py", "--follow", cwd=tmp_path) as process:
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
    until(lambda: (cluster.get("tfjob", "slow").get("status") or {}).get("phase") == "Running")
    cluster.kubectl("delete", "tfjob", "slow")
    until(lambda: not cluster.get("pods", "-l", "training.kubeflow.org/job-name=slow")["items"])
