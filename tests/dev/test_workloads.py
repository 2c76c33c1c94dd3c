"""What else runs on the cluster: other forms of jobs, other strategies, the seeds' documents; and disruptions."""

import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import DATA, ROOT
from tests.dev.running_box import TestBox, command_line, running, until
from tests.dev.test_jobs import CANCER, GOOD_AUC, apply, auc, environment, said_so_far, wait
from tfyard.controlplane.binaries import locate

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]
MNIST = ROOT / "examples" / "mnist"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    options = ("--pretend", "nvidia.com/gpu=4", "--pretend", "alpha.kubernetes.io/nvidia-gpu=4")
    with running(tmp_path_factory.mktemp("state"), *options) as box:
        yield box


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    with running(tmp_path_factory.mktemp("bare"), "--no-operator", name="bare") as box:
        yield box


def model(box: TestBox) -> list[Path]:
    return list((box.folder.data / "claims").glob("default_cancer_*/model/saved_model.pb"))


def test_plain_jobs_need_no_operator(bare: TestBox) -> None:
    apply(bare, str(CANCER), "--as", "plain")
    bare.kubectl("wait", "--for=condition=Complete", "--timeout=4m", "job/cancer", timeout=300)
    (chief,) = [name for name in names(bare) if name.startswith("cancer-0-")]
    assert auc(bare.kubectl("logs", chief)) >= GOOD_AUC
    assert model(bare)
    bare.kubectl("delete", "all,pvc", "--all")
    until(lambda: not model(bare))


def test_kubectl_debug_talks_with_a_process_inside_a_pod(bare: TestBox) -> None:
    container = {"name": "main", "image": "any", "command": ["sleep", "600"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asleep"},
        "spec": {"containers": [container]},
    }
    bare.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    bare.kubectl("wait", "--for=condition=Ready", "pod/asleep")
    options = ("--image=any", "-i", "-c", "visitor", "--", "sh")
    said = bare.kubectl("debug", "asleep", *options, stdin="hostname; echo $((6 * 7)); exit 3\n")
    assert said == "asleep\n42\n"
    assert bare.kubectl("logs", "asleep", "-c", "visitor") == said
    refusal = "container mute has no command, and images are not used here; add one, such as `kubectl debug "
    assert refusal in bare.kubectl("debug", "asleep", "--image=any", "-i", "-c", "mute")
    visitor, mute = bare.get("pod", "asleep")["status"]["ephemeralContainerStatuses"]
    assert visitor["state"]["terminated"]["exitCode"] == 3
    assert mute["state"]["terminated"]["reason"] == "StartError"
    bare.kubectl("delete", "pod", "asleep", "--now")


def test_kubectl_run_talks_with_the_process_that_it_starts(bare: TestBox) -> None:
    one = ("run", "one", "--image=any", "-i", "--rm", "--restart=Never", "--quiet", "--command", "--", "cat")
    assert bare.kubectl(*one, stdin="hello\n") == "hello\n"
    assert names(bare) == []
    shell = {"name": "main", "image": "any", "command": ["sh"], "stdin": True, "tty": True}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shell"}, "spec": {"containers": [shell]}}
    bare.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    bare.kubectl("wait", "--for=condition=Ready", "pod/shell")
    attach = [
        str(locate().path("kubectl")),
        f"--kubeconfig={bare.folder.kubeconfig}",
        "attach",
        "-i",
        "shell",
    ]
    for number in (1, 2):  # who leaves does not end it
        with subprocess.Popen(attach, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as visit:
            assert visit.stdin
            visit.stdin.write(f"echo visit $(({number} + 40))\n".encode())
            visit.stdin.flush()
            until(lambda: f"visit {number + 40}" in bare.kubectl("logs", "shell"))  # noqa: B023
            visit.kill()
    assert bare.get("pod", "shell")["status"]["containerStatuses"][0]["restartCount"] == 0
    bare.kubectl("delete", "pod", "shell", "--now")


def test_a_node_that_is_deleted_comes_back(bare: TestBox) -> None:
    def uids() -> list[str]:
        return [node["metadata"]["uid"] for node in bare.get("nodes")["items"]]

    before = uids()
    bare.kubectl("delete", "node", bare.name)
    until(lambda: uids() not in ([], before))
    until(lambda: bare.status()["phase"] == "ready")
    run = (
        "run",
        "after",
        "--image=any",
        "-i",
        "--rm",
        "--restart=Never",
        "--quiet",
        "--command",
        "--",
        "cat",
    )
    assert bare.kubectl(*run, stdin="still here\n") == "still here\n"


def test_the_form_of_2016_trains_too(bare: TestBox) -> None:
    """Its ReplicationControllers start every task again, also after success."""
    apply(bare, str(CANCER), "--as", "legacy")

    def restarted() -> Any:
        pods = [pod for pod in bare.get("pods")["items"] if "chief" in pod["metadata"]["name"]]
        return [pod for pod in pods if pod["status"].get("containerStatuses", [{}])[0].get("lastState")]

    (chief,) = until(restarted, 300)
    assert chief["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 0
    assert auc(bare.kubectl("logs", "-p", chief["metadata"]["name"])) >= GOOD_AUC
    assert model(bare)


def names(box: TestBox) -> list[str]:
    return [str(pod["metadata"]["name"]) for pod in box.get("pods")["items"]]


@pytest.mark.parametrize("name", ["multiworker", "evaluator"])
def test_other_strategies_train(cluster: TestBox, name: str) -> None:
    apply(cluster, str(MNIST / f"{name}.yaml"))
    wait(cluster, f"tfjob/mnist-{name}")


def test_tensorboard_answers_over_port_forward(cluster: TestBox) -> None:
    apply(cluster, str(MNIST / "multiworker.yaml"))
    cluster.kubectl("rollout", "status", "deployment/mnist-multiworker-tensorboard", "--timeout=2m")
    said = ("logs", "deployment/mnist-multiworker-tensorboard")
    until(lambda: "Press CTRL+C to quit" in cluster.kubectl(*said))  # kubectl ends if nobody listens
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(locate().path("kubectl")), f"--kubeconfig={cluster.folder.kubeconfig}", "port-forward"]
    command += ["service/mnist-multiworker-tensorboard", f"{port}:80"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        assert forward.stdout
        assert "Forwarding from" in forward.stdout.readline()
        try:
            page = until(lambda: answer(f"http://127.0.0.1:{port}/"), 60)
        finally:
            forward.kill()
    assert "TensorBoard" in page


def answer(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return str(opener.open(url, timeout=10).read().decode())
    except OSError:
        return ""


def test_training_goes_on_through_drain_a_killed_operator_and_a_killed_node(cluster: TestBox) -> None:
    apply(cluster, str(CANCER), steps=6000)
    until(lambda: "Step: " in said_so_far(cluster, "cancer-chief-0"), 120)
    node = cluster.name
    cluster.kubectl(
        "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--grace-period=5"
    )
    assert not [pod for pod in cluster.get("pods")["items"] if pod["status"]["phase"] == "Running"]
    cluster.kubectl("uncordon", node)
    until(lambda: "Step: " in chief_log(cluster), 120)
    os.kill(cluster.pid_of("operator"), signal.SIGKILL)
    os.kill(cluster.pid, signal.SIGKILL)
    cluster.up("--pretend", "nvidia.com/gpu=4", "--pretend", "alpha.kubernetes.io/nvidia-gpu=4")
    until(lambda: "Step: " in chief_log(cluster), 180)
    assert sorted(programs(cluster)) == ["chief-0", "ps-0", "worker-0", "worker-1"]  # none twice
    wait(cluster, "tfjob/cancer")
    assert auc(cluster.kubectl("logs", "cancer-chief-0")) >= GOOD_AUC
    started = cluster.get("tfjob", "cancer")["status"]["replicaStatuses"]
    assert {role: counts.get("succeeded", 0) for role, counts in started.items()}["Chief"] == 1


def programs(box: TestBox) -> list[str]:
    """Which task each training process of the machine is, by its host's name."""
    mark = b"HOSTNAME=cancer-"
    found = [environment(pid) for pid in box.family() if "train.py" in command_line(pid)]
    names = [value for values in found for value in values if value.startswith(mark)]
    return [name.removeprefix(mark).decode() for name in names]


def chief_log(box: TestBox) -> str:
    phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in box.get("pods")["items"]}
    return (
        box.kubectl("logs", "cancer-chief-0", "--tail=50")
        if phases.get("cancer-chief-0") == "Running"
        else ""
    )


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


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    """Whose images are known by what they would run."""
    program = tmp_path_factory.mktemp("image") / "main.py"
    program.write_text(TRAINS)
    images = ("alice/tf-mnist:gpu", "wbuchwalter/sample")
    entrypoints = [word for image in images for word in ("--entrypoint", f"{image}=python {program}")]
    gpus = ("--pretend", "nvidia.com/gpu=4", "--pretend", "alpha.kubernetes.io/nvidia-gpu=4")
    drivers = ROOT / "tests" / "golden" / "seed_004" / "controller_config_file.yaml"
    options = (*gpus, *entrypoints, "--operator-config", str(drivers))
    with running(tmp_path_factory.mktemp("state"), *options, name="workshop") as box:
        yield box


TRAINS = """
import json, os
from pathlib import Path
import tensorflow as tf
print(json.loads(os.environ["TF_CONFIG"])["task"])
drivers = [path for path in ("/usr/lib/nvidia", "/usr/local/nvidia/bin") if Path(path).is_dir()]
print("drivers", drivers, os.environ.get("LD_LIBRARY_PATH"))
x = tf.Variable(2.0)
out = Path("/tmp/tensorflow")
writer = tf.summary.create_file_writer(str(out / "logs")) if out.exists() else None
for step in range(20):
    with tf.GradientTape() as tape:
        loss = x * x
    x.assign_sub(0.1 * tape.gradient(loss, x))
    if writer:
        with writer.as_default():
            tf.summary.scalar("loss", loss, step=step)
if writer:
    tf.train.Checkpoint(x=x).save(str(out / "model" / "ckpt"))
print("done", float(x))
"""


def test_exercise_2_leaves_model_and_summaries_in_its_part_of_the_claim(workshop: TestBox) -> None:
    job = (DATA / "seeds" / "001-module6-ex2-azurefile.yaml").read_text()
    workshop.kubectl("apply", "-f", "-", stdin=f"{yaml.safe_dump(CLAIM)}\n---\n{job}")
    wait(workshop, "tfjob/module6-ex2-gpu")
    (claim,) = (workshop.folder.data / "claims").glob("default_azurefile_*")
    part = claim / "module6-ex2-gpu"
    assert list((part / "model").glob("ckpt*.index"))
    assert list((part / "logs").glob("events.out.tfevents*"))


def test_the_tfjob_of_v1alpha1_runs_with_its_gpu_and_the_drivers_of_its_operator(workshop: TestBox) -> None:
    workshop.kubectl("apply", "-f", str(DATA / "seeds" / "004-example-tfjob.yaml"))
    wait(workshop, "tfjobs.tensorflow.org/example-tfjob")
    said = workshop.kubectl("logs", "example-tfjob-master-0")
    assert (
        "drivers ['/usr/lib/nvidia', '/usr/local/nvidia/bin'] /usr/lib/nvidia:/usr/lib/x86_64-linux-gnu\n"
        in said
    )


def test_pods_of_a_box_do_not_see_what_may_be_a_secret(cluster: TestBox) -> None:
    program = (
        "import os; print(sorted(name for name in os.environ if 'TOKEN' in name or 'KUBECONFIG' in name))"
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "looks"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "any", "command": ["python", "-c", program]}],
        },
    }
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/looks", "--timeout=1m")
    assert cluster.kubectl("logs", "looks") == "[]\n"
