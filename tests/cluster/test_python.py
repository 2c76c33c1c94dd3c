"""Jobs of Python programs: every example of docs/python.md from the first to the last, word for word."""

from pathlib import Path

import pytest

import tfyard
from tests.cluster.clusters import Cluster
from tests.sdk.test_docs import blocks, prepared, printed

pytestmark = [pytest.mark.cluster, pytest.mark.long]


def test_the_examples_run_in_their_order_here_and_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    cluster.kubectl("create", "namespace", "ml")
    output = printed(prepared(tmp_path), blocks("", "ports", "cluster", "async"), str(cluster.kubeconfig))
    assert (tmp_path / "model").read_text().startswith("0.1215")
    lines = output.splitlines()
    assert lines.index("200") < next(
        at for at, line in enumerate(lines) if line.startswith("http://127.0.0.1:")
    )
    assert " worker-0 Step: 20, loss: 0.1216\n" in output, "with its time"
    run = tfyard.find("train", namespace="ml", kubeconfig=cluster.kubeconfig)
    assert (run.status, run.metrics()[-1]["step"]) == ("Succeeded", 20)
    run.delete()
    cluster.kubectl("delete", "namespace", "ml", "--wait=false")
