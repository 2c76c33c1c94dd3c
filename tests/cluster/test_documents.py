"""The five documents that users come from, with their own files; the fifth, 004, is in test_installation.py."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.cli.running import DATA, ROOT, tfyard
from tests.cluster.clusters import Cluster, until
from tests.cluster.jobs import Jobs
from tests.cluster.test_training import said_so_far, wait
from tests.render.test_legacy import SECOND, without_stars

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]
PROJECT = "boc-web-predict"
TEMPLATES = ROOT / "compat"


@pytest.fixture(scope="module")
def older(empty: Cluster) -> Iterator[Cluster]:
    """With the namespace and the shares, which its document makes once."""
    shared = tfyard("template", "plain", str(TEMPLATES / "tf_shared_template.yaml.jinja"))
    assert shared.code == 0, shared.err
    made = empty.shared(shared.out)
    empty.kubectl("apply", "-f", "-", stdin=made)
    yield empty
    empty.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=made)
    empty.kubectl("delete", "namespace", "tensorflow", "--ignore-not-found")
    empty.kubectl("delete", "pod", "asks", "--ignore-not-found")


def share(cluster: Cluster, name: str) -> Path:
    """This project's part of a directory of the NFS server."""
    path = cluster.share("192.168.210.19", f"/dcdp/{name}") / PROJECT
    path.mkdir(exist_ok=True)
    return path


SINGLE = """
import argparse, pathlib, sys
import tensorflow as tf
parser = argparse.ArgumentParser()
for name in "data_dir data_name model_name model_dir model_path model_dict_path log_path".split():
    parser.add_argument(f"--{name}")
given = parser.parse_args()
numbers = [float(line) for line in pathlib.Path(given.data_dir, given.data_name).read_text().split()]
mean = tf.Variable(0.0)
for _ in range(50):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((mean - tf.constant(numbers)) ** 2)
    mean.assign_sub(0.1 * tape.gradient(loss, mean))
tf.train.Checkpoint(mean=mean).save(f"{given.model_path}/model")
print("mean", round(float(mean), 2))
print("not an error", file=sys.stderr)
"""


def test_the_template_for_one_task_trains_from_and_to_the_shares(older: Cluster) -> None:
    done = tfyard("template", "single", str(TEMPLATES / "tf_single_template.yaml.jinja"), PROJECT)
    assert done.code == 0, done.err
    (job,) = (each for each in yaml.safe_load_all(done.out) if each and each["kind"] == "Job")
    words = job["spec"]["template"]["spec"]["containers"][0]["args"][0].split()
    program = next(word for word in words if word.endswith(".py"))
    data = next(word for word in words if word.startswith("--data_name=")).partition("=")[2]
    (share(older, "src") / Path(program).name).write_text(SINGLE)
    (share(older, "data") / data).write_text("1\n2\n6\n")
    older.kubectl("apply", "-f", "-", stdin=done.out)
    name = f"job/{job['metadata']['name']}"
    older.kubectl("-n", "dcdp", "wait", "--for=condition=Complete", "--timeout=3m", name, timeout=200)
    assert "mean 3.0\n" in older.kubectl("-n", "dcdp", "logs", name)
    assert list(share(older, "model").glob("*/model*.index"))
    (output,) = share(older, "log").glob("*.log")
    assert "mean 3.0" in output.read_text()


def test_the_template_for_a_cluster_trains_behind_its_documented_addresses(older: Cluster) -> None:
    for file in ("train.py", "tf_quietly.py"):
        shutil.copy(ROOT / "examples" / "classic" / file, share(older, "src") / file)
    # Its own flags beside those of the template, whose names differ.
    (share(older, "src") / "start.py").write_text(START)
    template = str(TEMPLATES / "tf_cluster_template.yaml.jinja")
    options = ("--set", "train_code_file_name=start.py")
    done = tfyard("template", "cluster", template, PROJECT, "1", "2", *options)
    assert done.code == 0, done.err
    assert f"{PROJECT}-worker-1.dcdp.svc.cluster.local:2222" in done.out
    older.kubectl("apply", "-f", "-", stdin=done.out)
    jobs = [f"job/{PROJECT}-worker-{index}" for index in range(2)]
    older.kubectl("-n", "dcdp", "wait", "--for=condition=Complete", "--timeout=5m", *jobs, timeout=320)
    assert "Done\n" in older.kubectl("-n", "dcdp", "logs", jobs[1])
    assert list((share(older, "model") / "checkpoint").glob("model.ckpt*.index"))
    older.kubectl("delete", "namespace", "dcdp", timeout=120)


START = """
import runpy, sys
from functools import partial
from pathlib import Path
flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
chosen = [f"--{name}={flags[name]}" for name in ("ps_hosts", "worker_hosts", "job_name", "task_index")]
program = str(Path(__file__).with_name("train.py"))
sys.argv = [program, *chosen, "--steps=200", f"--out={flags.get('model_dir', '/tmp')}"]
runpy.run_path(program, run_name="__main__")
"""

CONFIG = {
    "imports": [
        {"name": "tensorflow-cluster", "path": "tensorflow-cluster.jinja"},
        {"name": "jupyter-service", "path": "jupyter-service.jinja"},
    ],
    "resources": [
        {
            "type": "tensorflow-cluster",
            "properties": {
                "namespace": "tensorflow",
                "jobs": [{"name": "ps", "num_tasks": 1}, {"name": "workers", "num_tasks": 2}],
            },
        },
        {"type": "jupyter-service", "properties": {"namespace": "tensorflow", "password": "open"}},
    ],
}


def serves(box: Cluster, task: str) -> bool:
    return "serves at" in said_so_far(box, task, "tensorflow")


ASKS = """
import urllib.request
import tensorflow as tf
v1 = tf.compat.v1
with tf.Graph().as_default():
    with v1.device("/job:ps/task:0"):
        shared = v1.get_variable("shared", initializer=20.0, use_resource=True)
    with v1.device("/job:workers/task:1"):
        result = shared.assign_add(1.0) * 2.0
    with v1.Session("grpc://workers-0.tensorflow.svc.cluster.local:8080") as session:
        session.run(v1.global_variables_initializer())
        print("computed", session.run(result), flush=True)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
page = opener.open("http://jupyter.tensorflow:8888/login").read().decode()
print("login page", "password" in page)
"""


def test_the_config_of_the_workshop_gives_a_cluster_that_computes_and_a_notebook_server(
    older: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    done = tfyard("render", str(tmp_path / "config.yaml"))
    assert done.code == 0, done.err
    older.kubectl("create", "namespace", "tensorflow")
    older.kubectl("apply", "-f", "-", stdin=done.out)
    tasks = ("pod/ps-0", "pod/workers-0", "pod/workers-1")
    until(lambda: len(older.get("-n", "tensorflow", "pods")["items"]) >= len(tasks) + 1, 60)
    for task in tasks:
        until(partial(serves, older, task), 120)
    older.kubectl("-n", "tensorflow", "rollout", "status", "deployment/jupyter", "--timeout=2m", timeout=130)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks"},
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{"name": "main", "image": "any", "command": ["python", "-c", ASKS]}],
        },
    }
    older.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    phase = "--for=jsonpath={.status.phase}=Succeeded"
    older.kubectl("wait", phase, "--timeout=3m", "pod/asks", timeout=200)
    assert "computed 42.0\nlogin page True\n" in older.kubectl("logs", "asks")


# --- 001: exercises of a workshop


def test_exercise_1_trains_and_its_pod_is_found_and_read(cluster: Cluster) -> None:
    job = (DATA / "seeds" / "001-module6-ex1-gpu.yaml").read_text().replace("<DOCKER_USERNAME>", "alice")
    cluster.kubectl("create", "-f", "-", stdin=job)
    wait(cluster, "tfjob/module6-ex1-gpu")
    assert "module6-ex1-gpu" in cluster.kubectl("get", "tfjob")
    (pod,) = cluster.get("pods", "-l", "training.kubeflow.org/job-name=module6-ex1-gpu")["items"]
    assert "done " in cluster.kubectl("logs", pod["metadata"]["name"])
    cluster.kubectl("delete", "tfjob/module6-ex1-gpu")


CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "azurefile"},
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "azurefile",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def test_exercise_2_leaves_model_and_summaries_in_its_part_of_the_claim(cluster: Cluster) -> None:
    job = (DATA / "seeds" / "001-module6-ex2-azurefile.yaml").read_text()
    cluster.kubectl("apply", "-f", "-", stdin=f"{yaml.safe_dump(CLAIM)}\n---\n{job}")
    wait(cluster, "tfjob/module6-ex2-gpu")
    (claim,) = cluster.claims.glob("default_azurefile_*")
    part = claim / "module6-ex2-gpu"
    assert list((part / "model").glob("ckpt*.index"))
    assert list((part / "logs").glob("events.out.tfevents*"))
    cluster.kubectl("delete", "tfjob/module6-ex2-gpu", "pvc/azurefile")


# --- 003: a cluster by hand


def test_a_program_of_2016_trains_from_the_share_that_its_manifests_mount(jobs: Jobs) -> None:
    """As the page says: converted into a job file, which is told that it is for an old TensorFlow."""
    share = jobs.cluster.share("10.10.10.39", "/home/xuerq/nfs")
    program = share / "deep_recommend_system-master" / "distributed"
    program.mkdir(parents=True)
    shutil.copy(DATA / "tensorflow-0" / "train.py", program / "cancer_classifier.py")
    (manifest,) = without_stars(SECOND, jobs.folder)
    assert tfyard("convert", manifest, "--to", "jobfile", "-o", "job.yaml", cwd=jobs.folder).code == 0
    job = jobs.folder / "job.yaml"
    job.write_text(f"{job.read_text()}tf1: true\n")
    rendered = tfyard("render", job)
    assert rendered.code == 0, rendered.err
    jobs.kubectl("apply", "-f", "-", stdin=jobs.cluster.shared(rendered.out))
    jobs.until_phase("tensorflow", "Succeeded")
    assert "Step" in jobs.tfyard("logs", "tensorflow", "worker-0").out
    shutil.rmtree(program.parent)
