"""What Kubernetes users already have, run as it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import ROOT
from tests.e2e.conftest import Yard
from tfyard import formats

pytestmark = pytest.mark.processes

TASK = """\
import json, os, sys, time
print("told", json.dumps(sys.argv[1:]), flush=True)
if "--job_name=ps" in sys.argv:
    time.sleep(60)
"""


def told(yard: Yard, run: str, task: str) -> list[Any]:
    (log,) = yard.folder.glob(f".tfyard/runs/{run}*/logs/{task}*")
    (line,) = [line for line in log.read_text().splitlines() if "told " in line]
    words: list[Any] = json.loads(line.partition("told ")[2])
    return words


def test_a_rendered_template_runs_as_a_cluster_and_ends_with_its_workers(yard: Yard) -> None:
    template = ROOT / "src/tfyard/render/jinja/tf_cluster_template.yaml.jinja"
    assert (
        yard.tfyard("template", "cluster", str(template), "boc", "1", "2", "-o", "job.yaml").returncode == 0
    )
    yard.write("src/boc/train.py", TASK)
    done = yard.tfyard("run", "job.yaml", "--mount", "src=src")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "tfyard: changed: the job ends when all workers have ended; parameter servers are stopped"
        in done.stderr
    )
    assert "on a cluster: tfyard submit job.yaml --follow" in done.stdout
    words = told(yard, "boc", "worker-1")
    assert {"--job_name=worker", "--task_index=1"} <= set(words)
    (hosts,) = [word for word in words if word.startswith("--worker_hosts=")]
    assert hosts.count("127.0.0.1:") == 2


def test_a_plain_job_runs_as_one_worker(yard: Yard) -> None:
    yard.write("train.py", TASK)
    command = ["python", str(yard.folder / "train.py"), "--steps", "5"]
    mounts = [{"name": "azurefile", "mountPath": "/tmp/tensorflow"}]
    volumes = [{"name": "azurefile", "azureFile": {"secretName": "s", "shareName": "tf"}}]
    container = {"name": "main", "image": "example/train:1", "command": command, "volumeMounts": mounts}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container], "volumes": volumes}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "mnist"}, "spec": spec}
    yard.write("job.json", json.dumps(job))
    done = yard.tfyard("run", "job.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert told(yard, "mnist", "worker-0") == ["--steps", "5"]
    assert "\nazurefile: .tfyard/volumes/azureFile-tf\n" in done.stdout


BOTH = {"name": "both", "image": "none", "worker": 2, "ps": 1}
OWN = """\
import json, os, pathlib, time
print("told", "[" + os.environ["TF_CONFIG"] + "]", flush=True)
seen = pathlib.Path({!r})
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
    seen.touch()
while not seen.exists():
    time.sleep(0.05)
"""
"""All wait for worker 1, because the end of worker 0 would stop it."""
SERVER = ["python", "-c", "import time; print('serves', flush=True); time.sleep(600)"]


@pytest.mark.parametrize("form", ["plain", "legacy"])
@pytest.mark.parametrize("ps", [1, {"run": SERVER}], ids=["one program", "own server"])
def test_what_render_writes_for_a_cluster_runs_here_too(yard: Yard, form: str, ps: object) -> None:
    """Without the wait for the names of a cluster, and with the roles that a script finds there by the index."""
    program = OWN.format(str(yard.folder / "seen"))
    words = {**BOTH, "ps": ps, "restart": "on-failure", "run": ["python", "-c", program]}
    yard.write("job.yaml", formats.to_yaml(words))
    rendered = yard.tfyard("render", "job.yaml", "--as", form)
    yard.write("rendered.yaml", rendered.stdout)
    done = yard.tfyard("run", "rendered.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    (config,) = told(yard, "both", "worker-1")
    assert config["task"] == {"type": "worker", "index": 1}
    assert {role: len(hosts) for role, hosts in config["cluster"].items()} == {"ps": 1, "worker": 2}
    assert "the job ends when worker 0 ends; parameter servers are stopped then" in done.stderr
    assert "tfyard-wait" not in done.stdout + done.stderr


def test_args_are_the_command_if_they_begin_with_a_program(yard: Yard) -> None:
    yard.write("train.py", TASK)
    container = {
        "name": "main",
        "image": "example/train:1",
        "args": ["python", str(yard.folder / "train.py"), "-a"],
    }
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "mnist"}, "spec": spec}
    yard.write("job.json", json.dumps(job))
    done = yard.tfyard("run", "job.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert told(yard, "mnist", "worker-0") == ["-a"]
    assert "tfyard: changed: the args of worker are its command: python " in done.stderr
    container["args"] = ["--steps", "5"]
    yard.write("job.json", json.dumps(job))
    refused = yard.tfyard("run", "job.json")
    assert (refused.returncode, "has no command, and images are not used here" in refused.stderr) == (2, True)


def test_workloads_that_cannot_run_are_refused_before_anything_starts(yard: Yard, tmp_path: Path) -> None:
    yard.write("job.yaml", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n")
    done = yard.tfyard("run", "job.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("job.yaml:2:1: error: kind: a CronJob starts Jobs by the clock")
    assert not (yard.folder / ".tfyard").exists()
