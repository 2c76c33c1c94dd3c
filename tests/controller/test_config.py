"""From the config file to the pods that come of it."""

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.planner.builders import NOW, manifests
from tfyard import formats
from tfyard.controller.config import read_config, read_server_script, site
from tfyard.errors import Invalid, Usage
from tfyard.formats.controllerconfig import OperatorConfig
from tfyard.formats.tfjob.v1alpha1 import SCRIPT
from tfyard.model import Decision, Observed
from tfyard.model.names import DEFAULT_IMAGE
from tfyard.planner import Site, decide

SEED = Path(__file__).parents[1] / "golden" / "seed_004"
V1 = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": "mnist", "namespace": "ns"},
    "spec": {
        "tfReplicaSpecs": {
            "Worker": {
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "tensorflow",
                                "image": "i",
                                "resources": {"limits": {"nvidia.com/gpu": 1}},
                            }
                        ]
                    }
                }
            }
        }
    },
}
WITH_DEFAULT_PS = {
    "apiVersion": "tensorflow.org/v1alpha1",
    "kind": "TfJob",
    "metadata": {"name": "mnist", "namespace": "ns"},
    "spec": {
        "replicaSpecs": [
            {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "i"}]}}},
            {"tfReplicaType": "PS", "replicas": 1},
        ],
        "tensorboard": {"logDir": "/logs"},
    },
}


def decided(document: Any, place: Site) -> Decision:
    return decide(formats.load(document), Observed(), place, NOW)


def trainer(document: Any, place: Site, end: str) -> Any:
    pods = manifests(decided(document, place))
    (pod,) = (pod for name, pod in pods.items() if name.endswith(end))
    return pod["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("document", "end"), [(yaml.safe_load((SEED / "tfjob.yaml").read_text()), "master-0"), (V1, "worker-0")]
)
def test_the_seeds_file_gives_its_drivers_to_jobs_of_every_version(document: Any, end: str) -> None:
    config = read_config(SEED / "controller_config_file.yaml")
    container = trainer(document, site(config), end)
    assert container["volumeMounts"] == [
        {"name": "lib", "mountPath": "/usr/lib/nvidia"},
        {"name": "bin", "mountPath": "/usr/local/nvidia/bin"},
        {"name": "libcuda", "mountPath": "/usr/lib/x86_64-linux-gnu/libcuda.so.1"},
    ]
    variable = {"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia:/usr/lib/x86_64-linux-gnu"}
    assert variable in container["env"]


def test_no_config_gives_the_default_site() -> None:
    assert site(OperatorConfig()) == Site()


def test_settings_of_the_config_reach_the_site() -> None:
    config = OperatorConfig(cluster_domain="cluster.local", services="per-replica", dialect="kubeflow")
    assert site(config) == Site(domain="cluster.local", services="per-replica", dialect="kubeflow")


def test_a_server_script_that_exists_is_run(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("serve()")
    config = OperatorConfig(grpc_server_file_path=str(tmp_path / "server.py"))
    place = site(config, read_server_script(config))
    assert trainer(WITH_DEFAULT_PS, place, "ps-0")["command"][:3] == ["python", "-c", "serve()"]


def test_the_old_operators_server_exists_only_in_its_image_so_tfyards_is_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = read_config(SEED / "controller_config_file.yaml")
    with caplog.at_level(logging.WARNING):
        place = site(config, read_server_script(config))
    assert trainer(WITH_DEFAULT_PS, place, "ps-0")["command"] == ["python", "-c", SCRIPT]
    assert "grpc_tensorflow_server.py: No such file or directory; default PS run" in caplog.text


def test_the_platform_chooses_image_and_command_of_default_servers_only() -> None:
    place = site(OperatorConfig(ps_image="ps:1", ps_command=["serve"]), server_script="ignored()")
    server, master = (trainer(WITH_DEFAULT_PS, place, end) for end in ("ps-0", "master-0"))
    assert (server["image"], server["command"]) == ("ps:1", ["serve"])
    assert master["image"] == "i"
    assert "command" not in master


def test_a_jobs_own_image_wins_over_the_platforms() -> None:
    document = {**WITH_DEFAULT_PS, "spec": {**WITH_DEFAULT_PS["spec"], "tfImage": "mine:1"}}  # type: ignore[dict-item]
    assert trainer(document, site(OperatorConfig(ps_image="ps:1")), "ps-0")["image"] == "mine:1"


def test_the_old_image_word_is_for_servers_and_tensorboard_without_one() -> None:
    place = site(OperatorConfig(tf_image="tensorflow/tensorflow:1.3.0"))
    (board,) = manifests(decided(WITH_DEFAULT_PS, place), "Deployment").values()
    images = {board["spec"]["template"]["spec"]["containers"][0]["image"]}
    images.add(trainer(WITH_DEFAULT_PS, place, "ps-0")["image"])
    assert images == {"tensorflow/tensorflow:1.3.0"}
    assert trainer(WITH_DEFAULT_PS, Site(), "ps-0")["image"] == DEFAULT_IMAGE


def test_a_missing_config_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Usage, match=r"cannot read the config .*none\.yaml: No such file"):
        read_config(tmp_path / "none.yaml")


def test_a_wrong_config_is_refused_with_its_problems(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("service: shared\ntfImag: a\n")
    with pytest.raises(Invalid) as caught:
        read_config(tmp_path / "config.yaml")
    fixes = [problem.fix for problem in caught.value.problems]
    assert fixes == ["did you mean services?", "did you mean tfImage?"]
