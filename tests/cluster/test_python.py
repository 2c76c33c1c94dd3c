"""Jobs of Python programs: the examples of docs/python.md about a cluster, word for word."""

from pathlib import Path

import pytest

import tfyard
from tests.cli.running import ROOT
from tests.cluster.clusters import Cluster
from tests.sdk.test_docs import BLOCK

pytestmark = [pytest.mark.cluster, pytest.mark.long]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def test_the_example_of_a_cluster_trains_and_brings_its_model_back(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    cluster.kubectl("create", "namespace", "ml")
    examples = {kind: text for kind, text in BLOCK.findall(PAGE) if kind}
    Path("train.py").write_text(examples["file=train.py"])
    exec(f"import tfyard\n{examples['cluster']}", {})
    assert Path("model").read_text().startswith("0.1215")
    printed = capsys.readouterr().out
    assert "worker-0 Step: 20, loss: 0.1216\n" in printed
    assert printed.splitlines()[-1].startswith("http://127.0.0.1:")
    exec(f"import tfyard\n{examples['ports']}", {})
    assert capsys.readouterr().out == "200\n"
    run = tfyard.find("train", namespace="ml")
    assert (run.status, run.metrics()[-1]["step"]) == ("Succeeded", 20)
    run.delete()
    cluster.kubectl("delete", "namespace", "ml", "--wait=false")
