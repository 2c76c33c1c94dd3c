"""Jobs that are stopped, resumed, restarted, repeated and deleted, on a whole cluster with real TensorFlow."""

import re

import pytest

from tests.cli.running import ROOT, Result, tfyard
from tests.dev.running_box import TestBox, until
from tests.dev.test_jobs import said_so_far, wait

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]
JOB = ROOT / "examples" / "resume" / "job.yaml"
POD = "spirals-worker-0"


def run(box: TestBox, *words: str) -> Result:
    done = tfyard(*words, "--kubeconfig", str(box.folder.kubeconfig))
    assert done.code == 0, done.err
    return done


def epochs(box: TestBox) -> list[int]:
    return [int(number) for number in re.findall(r"^Epoch: (\d+),", said_so_far(box, POD), re.MULTILINE)]


def left(box: TestBox, kinds: str) -> list[str]:
    """Other tests have jobs in this cluster, too."""
    names = [each["metadata"]["name"] for each in box.get(kinds)["items"]]
    return [name for name in names if name.startswith("spirals")]


def test_the_epochs_go_on_after_a_stop_a_resume_and_a_restart(box: TestBox) -> None:
    new = tfyard("diff", JOB, "--kubeconfig", str(box.folder.kubeconfig))
    assert (new.code, "+kind: TFJob" in new.out, "+kind: PersistentVolumeClaim" in new.out) == (
        1,
        True,
        True,
    ), new.err
    run(box, "submit", str(JOB))
    assert tfyard("diff", JOB, "--kubeconfig", str(box.folder.kubeconfig)).code == 0
    until(lambda: len(epochs(box)) >= 2, 120)
    stopped = run(box, "stop", "spirals", "--wait", "--timeout", "2m")
    assert stopped.out == "tfjob.kubeflow.org/spirals stopped\n"
    assert "goes:  1 pod (worker-0), after at most 30 s of grace" in stopped.err
    assert "stays: the claim spirals with its data" in stopped.err
    assert left(box, "pods") == []
    run(box, "resume", "spirals")
    until(lambda: len(epochs(box)) >= 2, 120)
    before = epochs(box)
    assert before[0] > 1, "it goes on"
    restarted = run(box, "restart", "spirals", "worker-0", "--timeout", "2m")
    assert restarted.out.endswith("running again: worker-0\n")
    wait(box, "tfjob/spirals")
    after = epochs(box)
    assert after[0] > before[-1]
    assert after[-1] == 30
    status = box.get("tfjob", "spirals")["status"]
    assert "retries" not in str(status["tasks"]), "it cost none"
    again = run(box, "rerun", "spirals")
    assert again.out == "tfjob.kubeflow.org/spirals-2 created\n"
    gone = run(box, "delete", "spirals", "spirals-2", "--yes", "--wait", "--timeout", "2m")
    assert gone.out == "tfjob.kubeflow.org/spirals deleted\ntfjob.kubeflow.org/spirals-2 deleted\n"
    assert left(box, "tfjobs,pods") == []
    assert left(box, "pvc") == ["spirals"]
    box.kubectl("delete", "pvc", "spirals")
