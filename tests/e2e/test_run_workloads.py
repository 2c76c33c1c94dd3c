"""What Kubernetes users already have, run as it is."""

import json
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.e2e.conftest import Yard

pytestmark = pytest.mark.processes

TASK = """\
import json, os, sys, time
print("told", json.dumps(sys.argv[1:]), flush=True)
if "--job_name=ps" in sys.argv:
    time.sleep(60)
"""


def told(yard: Yard, run: str, task: str) -> list[str]:
    (log,) = yard.folder.glob(f".tfyard/runs/{run}*/logs/{task}*")
    (line,) = [line for line in log.read_text().splitlines() if "told " in line]
    words: list[str] = json.loads(line.partition("told ")[2])
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


def test_workloads_that_cannot_run_are_refused_before_anything_starts(yard: Yard, tmp_path: Path) -> None:
    yard.write("job.yaml", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n")
    done = yard.tfyard("run", "job.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("job.yaml:2:1: error: kind: a CronJob starts Jobs by the clock")
    assert not (yard.folder / ".tfyard").exists()
