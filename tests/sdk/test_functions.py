"""Jobs of Python onto a cluster: what `tfyard submit` does, by the same code."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import tfyard
from tests.cli.running import ROOT
from tests.dev.conftest import _box, box  # noqa: F401 - fixtures
from tests.dev.running_box import TestBox
from tests.remote.test_submission import CLAIMS, Place, place  # noqa: F401 - a fixture
from tests.sdk.test_docs import BLOCK
from tfyard.kube import requests
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def pod(manifest: Any) -> Any:
    return manifest["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]


def test_a_script_is_submitted_with_its_folder_and_a_volume_for_what_it_writes(
    control_plane: ControlPlane,
    place: Place,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place.folder)
    Path("train.py").write_text("print('hello')")
    where: Any = {"namespace": place.namespace, "kubeconfig": control_plane.kubeconfig}
    job = tfyard.Job("train.py", worker=2, cpu=1, nodeSelector={"pool": place.namespace}, env={"LR": 0.5})
    run = tfyard.submit(job, force=True, **where)  # no class makes volumes here
    assert (run.name, run.namespace, run.tasks) == ("train", place.namespace, ["worker-0", "worker-1"])
    assert "train-out" in place.names(CLAIMS)
    assert [name for name in place.names(requests.CONFIG_MAPS) if "code" in name]
    stored = place.client.send(
        requests.get(f"/apis/kubeflow.org/v1/namespaces/{place.namespace}/tfjobs/train")
    )
    (container,) = pod(stored)["containers"]
    assert {"name": "TFYARD_OUT", "value": "/out"} in container["env"]
    assert {"name": "LR", "value": "0.5"} in container["env"]
    assert set(container["resources"]["requests"]) == {"cpu"}

    big = tfyard.Job(run="true", name="big", cpu=64, nodeSelector={"pool": place.namespace})

    async def refused() -> str:
        with pytest.raises(tfyard.CannotSubmit) as caught:
            tfyard.submit(big, **where)  # inside a running event loop
        return str(caught.value)

    assert "cpu" in asyncio.run(refused())
    assert [each.name for each in tfyard.runs(**where)] == ["train"]


@pytest.mark.long
def test_the_example_of_a_cluster_trains_and_brings_its_model_back(
    box: TestBox,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(box.folder.kubeconfig))
    box.kubectl("create", "namespace", "ml")
    found = {kind: text for kind, text in BLOCK.findall(PAGE) if kind}
    Path("train.py").write_text(found["file=train.py"])
    exec(f"import tfyard\n{found['cluster']}", {})
    assert Path("model").read_text().startswith("0.1215")
    printed = capsys.readouterr().out
    assert "worker-0 Step: 20, loss: 0.1216\n" in printed
    assert printed.splitlines()[-1].startswith("http://127.0.0.1:")
    exec(f"import tfyard\n{found['ports']}", {})
    assert capsys.readouterr().out == "200\n"
    run = tfyard.find("train", namespace="ml")
    assert (run.status, run.metrics()[-1]["step"]) == ("Succeeded", 20)
    run.delete()
