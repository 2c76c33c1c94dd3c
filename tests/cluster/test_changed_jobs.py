"""Jobs that are stopped, resumed, restarted, repeated and deleted, on a whole cluster with real TensorFlow."""

import re

import pytest

from tests.cli.running import ROOT, Result
from tests.cluster.clusters import Cluster, until
from tests.cluster.test_training import said_so_far, wait

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]
JOB = ROOT / "examples" / "resume" / "job.yaml"
POD = "spirals-worker-0"


def run(cluster: Cluster, *words: str) -> Result:
    done = cluster.tfyard(*words)
    assert done.code == 0, done.err
    return done


def epochs(cluster: Cluster) -> list[int]:
    return [int(number) for number in re.findall(r"^Epoch: (\d+),", said_so_far(cluster, POD), re.MULTILINE)]


def left(cluster: Cluster, kinds: str) -> list[str]:
    """Other tests have jobs in this cluster, too."""
    names = [each["metadata"]["name"] for each in cluster.get(kinds)["items"]]
    return [name for name in names if name.startswith("spirals")]


def test_the_epochs_go_on_after_a_stop_a_resume_and_a_restart(cluster: Cluster) -> None:
    new = cluster.tfyard("diff", JOB)
    assert (new.code, "+kind: TFJob" in new.out, "+kind: PersistentVolumeClaim" in new.out) == (
        1,
        True,
        True,
    ), new.err
    run(cluster, "submit", str(JOB))
    assert cluster.tfyard("diff", JOB).code == 0
    until(lambda: len(epochs(cluster)) >= 2, 120)
    stopped = run(cluster, "stop", "spirals", "--wait", "--timeout", "2m")
    assert stopped.out == "tfjob.kubeflow.org/spirals stopped\n"
    assert "goes:  1 pod (worker-0), after at most 30 s of grace" in stopped.err
    assert "stays: the claim spirals with its data" in stopped.err
    assert left(cluster, "pods") == []
    run(cluster, "resume", "spirals")
    until(lambda: len(epochs(cluster)) >= 2, 120)
    before = epochs(cluster)
    assert before[0] > 1, "it goes on"
    restarted = run(cluster, "restart", "spirals", "worker-0", "--timeout", "2m")
    assert restarted.out.endswith("running again: worker-0\n")
    wait(cluster, "tfjob/spirals")
    after = epochs(cluster)
    assert after[0] > before[-1]
    assert after[-1] == 30
    status = cluster.get("tfjob", "spirals")["status"]
    assert "retries" not in str(status["tasks"]), "it cost none"
    again = run(cluster, "rerun", "spirals")
    assert again.out == "tfjob.kubeflow.org/spirals-2 created\n"
    gone = run(cluster, "delete", "spirals", "spirals-2", "--yes", "--wait", "--timeout", "2m")
    assert gone.out == "tfjob.kubeflow.org/spirals deleted\ntfjob.kubeflow.org/spirals-2 deleted\n"
    assert left(cluster, "tfjobs,pods") == []
    assert left(cluster, "pvc") == ["spirals"]
    cluster.kubectl("delete", "pvc", "spirals")
