"""Jobs on a whole cluster: real Kubernetes, the operator, and real TensorFlow in pods that are processes."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.cli.running import ROOT, tfyard
from tests.dev.running_box import TestBox, until

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow]
CANCER = ROOT / "examples" / "cancer" / "job.yaml"
GOOD_AUC = 0.976


def apply(box: TestBox, *render: str, steps: int = 900) -> None:
    rendered = tfyard("render", *render)
    assert rendered.code == 0, rendered.err
    box.kubectl("apply", "-f", "-", stdin=rendered.out.replace("--steps 3000", f"--steps {steps}"))


def wait(box: TestBox, job: str) -> None:
    """Until it has succeeded; if it fails, with what its pods say."""

    def is_over() -> bool:
        conditions = (box.get(job).get("status") or {}).get("conditions") or []
        true = {condition["type"] for condition in conditions if condition["status"] == "True"}
        assert "Failed" not in true, box.kubectl("describe", job, "pods")
        return "Succeeded" in true

    until(is_over, 240)


def said_so_far(box: TestBox, pod: str) -> str:
    """Empty while there is no container yet, which kubectl calls an error."""
    try:
        return box.kubectl("logs", pod, "--tail=50")
    except AssertionError:
        return ""


def auc(log: str) -> float:
    found = re.search(r"Held-out: .*auc: ([\d.]+)", log)
    assert found, log[-2000:]
    return float(found[1])


def process_of(box: TestBox, pod: str) -> int:
    """The training program of a pod."""
    mark = f"HOSTNAME={pod}".encode()
    found = [pid for pid in box.family() if mark in environment(pid)]
    assert found, f"no process of {pod}"
    return max(found)


def environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def check_use(box: TestBox) -> None:
    """While it trains: `kubectl top` and `tfyard top` show what each task takes, and the node more than that."""
    rows = [line.split() for line in box.kubectl("top", "pods", "--no-headers").splitlines()]
    used = {row[0]: (row[1], row[2]) for row in rows if row[0].startswith("cancer-")}
    assert used.keys() >= {"cancer-chief-0", "cancer-ps-0", "cancer-worker-0"}
    assert all(int(memory.removesuffix("Mi")) > 50 for _, memory in used.values()), "TensorFlow is in it"
    assert int(used["cancer-chief-0"][0].removesuffix("m")) > 10
    node = box.kubectl("top", "nodes", "--no-headers").split()
    assert node[0] == box.name
    assert int(node[3].removesuffix("Mi")) > max(
        int(memory.removesuffix("Mi")) for _, memory in used.values()
    )
    elsewhere = box.folder.path  # not where `make demo` has left a run of this name
    shown = tfyard("top", "cancer", cwd=elsewhere, KUBECONFIG=str(box.folder.kubeconfig))
    assert (shown.code, shown.err) == (0, "")
    chief = next(line.split() for line in shown.out.splitlines() if line.startswith("chief-0"))
    assert float(chief[2]) > 0, shown.out
    assert chief[4] in ("MB", "GB"), shown.out


def test_the_cancer_job_trains_to_its_end_though_a_worker_is_killed(box: TestBox) -> None:
    apply(box, str(CANCER))
    until(lambda: "Step: 100," in said_so_far(box, "cancer-chief-0"), 120)
    check_use(box)
    os.kill(process_of(box, "cancer-worker-1"), signal.SIGKILL)
    wait(box, "tfjob/cancer")
    assert auc(box.kubectl("logs", "cancer-chief-0")) >= GOOD_AUC
    (claim,) = (box.folder.data / "claims").glob("default_cancer_*")
    assert (claim / "model" / "saved_model.pb").stat().st_size > 0
    job = box.get("tfjob", "cancer")
    assert job["status"]["replicaStatuses"]["Chief"]["succeeded"] == 1
    assert {"namespace": "default", "name": "cancer", "phase": "Succeeded"} in box.status()["jobs"]
