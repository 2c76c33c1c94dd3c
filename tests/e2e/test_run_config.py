"""Seed 002 on this machine: a config's tasks as TensorFlow servers, and a notebook that drives them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Yard
from tests.render.calling import HERE
from tests.render.test_notebook import PASSWORD, login
from tests.render.test_resource_config import SEED_CONFIG

pytestmark = [pytest.mark.processes, pytest.mark.tensorflow]


def environment_of_jupyter(yard: Yard) -> dict[str, str]:
    for entry in Path("/proc").iterdir():
        try:
            text = (entry / "environ").read_text() if entry.name.isdigit() else ""
        except OSError:  # it has ended, or is somebody else's
            continue
        found = dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
        if found.get("JUPYTER_CONFIG_PATH", "").startswith(str(yard.folder)):
            return found
    raise AssertionError("no process has the config of Jupyter")


@pytest.mark.long
def test_a_notebook_knows_every_task_of_a_config_and_can_drive_an_op_on_each(yard: Yard) -> None:
    yard.write(
        "my-config.yaml",
        SEED_CONFIG.replace("num_tasks: 2", "num_tasks: 1").replace("_tasks: 3", "_tasks: 2"),
    )
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    process = yard.start("run", "my-config.yaml", "--notebook", "-o", "json", **quiet)
    assert process.stdout is not None
    texts = []
    while sum("serves at" in text for text in texts) < 3:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        texts.append(json.loads(line).get("text") or "")
    (address,) = [text.split()[1].rstrip("/") for text in texts if text.startswith("Jupyter: ")]
    assert login(address, PASSWORD) == 200
    assert login(address, "a bad password") in (401, 403)

    told = environment_of_jupyter(yard)
    cluster = json.loads(told["CLUSTER_CONFIG"])
    assert {job: len(hosts) for job, hosts in cluster.items()} == {"ps": 1, "workers": 2}
    assert PASSWORD not in str(told)
    client = [sys.executable, HERE / "drive.py"]
    env = {**os.environ, **quiet, "CLUSTER_CONFIG": told["CLUSTER_CONFIG"]}
    done = subprocess.run(client, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    tasks = ["/job:ps/task:0", "/job:workers/task:0", "/job:workers/task:1"]
    assert sorted(done.stdout.split()) == [f"{task}=6.0" for task in tasks]

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    left = [path for path in yard.folder.rglob("*") if path.is_file()]
    assert [path for path in left if b"argon2:" in path.read_bytes()] == []
    with pytest.raises(AssertionError):
        environment_of_jupyter(yard)
