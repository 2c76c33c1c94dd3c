"""`tfyard doctor` on the real apiserver, as the admin and as somebody who may see nothing."""

import json
from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tests.cli.test_get import SLOW
from tests.cli.test_main import imported
from tfyard.testing import ControlPlane


@pytest.mark.cluster
def test_a_cluster_without_an_operator_is_told_what_it_lacks(
    control_plane: ControlPlane, crds: None, namespace: str
) -> None:
    config = str(control_plane.kubeconfig)
    done = tfyard("doctor", "-o", "json", "-n", namespace, KUBECONFIG=config)
    found = {each["subject"]: each for each in json.loads(done.out)}
    assert done.code == 1
    assert {name: found[name]["level"] for name in ("server", "crd", "operator", "rights", "quota")} == {
        "server": "ok",
        "crd": "ok",
        "operator": "wrong",
        "rights": "ok",
        "quota": "ok",
    }
    assert found["operator"]["fix"] == "`tfyard install`"
    other = tfyard("doctor", "-n", namespace, "--as", "bob", KUBECONFIG=config)
    assert (other.code, other.err) == (0, "")  # nothing is wrong that bob could see
    lines = {line.split()[1]: line for line in other.out.splitlines() if line[:1] != " "}
    assert set(lines) == {
        "server",
        "crd",
        "operator",
        "webhook",
        "leader",
        "rights",
        "nodes",
        "storage",
        "dns",
        "quota",
    }
    assert "bob in the namespace" in lines["rights"]
    assert "may not list jobs, submit jobs" in lines["rights"]


def test_a_cluster_that_is_not_there_is_wrong_and_nothing_slow_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = tfyard("doctor", "--kubeconfig", "/nowhere", cwd=tmp_path)
    assert (done.code, done.out.splitlines()[0]) == (1, "wrong    server    /nowhere: no such file")
    assert not SLOW & imported("doctor", "--kubeconfig", "/nowhere")
