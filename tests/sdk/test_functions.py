"""Jobs of Python onto a cluster: what `tfyard submit` does, by the same code."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import tfyard
from tests.remote.submitting.test_submission import CLAIMS, Place, place  # noqa: F401 - a fixture
from tfyard.kube import requests
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster


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

    text = asyncio.run(refused())
    assert text.startswith("nothing was submitted; force=True submits it anyway:\n")
    assert "cpu" in text
    assert "--" not in text
    (place.folder.parent / "other.py").touch()
    with pytest.raises(tfyard.Usage, match="is outside of this folder, which becomes the code of the job"):
        tfyard.submit("../other.py", **where)
    assert [each.name for each in tfyard.runs(**where)] == ["train"]
