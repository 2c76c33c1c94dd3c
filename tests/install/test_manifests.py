"""The installed objects: equal every time, with narrow roles and a pod that passes the strictest checks."""

import pytest
import yaml

from tfyard.formats.controllerconfig import load
from tfyard.formats.crd.documents import served_by
from tfyard.formats.tfjob.versions import SERVED, VERSIONS
from tfyard.install import manifests, roles
from tfyard.install.clouds import CONFIGS
from tfyard.install.settings import LABELS, Settings
from tfyard.model import Manifest
from tfyard.model.permission import Permission

SETTINGS = Settings(image="tfyard/operator:1")


def objects(**chosen: object) -> dict[str, Manifest]:
    """The installed objects by kind and name."""
    installed = manifests.objects(Settings(image="tfyard/operator:1", **chosen))  # type: ignore[arg-type]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in installed}


def container(**chosen: object) -> Manifest:
    spec: Manifest = objects(**chosen)["Deployment/tf-job-operator"]["spec"]["template"]["spec"]
    operator: Manifest = spec["containers"][0]
    return operator


def test_rules_put_verbs_and_resources_together() -> None:
    needed = [
        Permission("", "pods", ("get",)),
        Permission("", "pods", ("list",)),
        Permission("", "services", ("list", "get")),
        Permission("", "pods", ("get",), "log"),
    ]
    assert roles.rules(needed) == [
        {"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]


def test_a_rule_names_an_object_for_all_verbs_but_create() -> None:
    assert roles.rules([Permission("x", "leases", ("get", "create"), name="ours")]) == [
        {"apiGroups": ["x"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["x"], "resources": ["leases"], "resourceNames": ["ours"], "verbs": ["get"]},
    ]


def test_for_a_few_namespaces_nothing_of_the_operator_is_cluster_wide() -> None:
    installed = objects(namespaces=("a", "b"))
    kinds = {name.split("/")[0] for name in installed}
    assert "ClusterRoleBinding" not in kinds
    assert [name for name in installed if name.startswith("ClusterRole/")] == [
        "ClusterRole/tfyard-view",
        "ClusterRole/tfyard-edit",
        "ClusterRole/tfyard-sweep",
    ]
    assert "--namespaces=a,b" in container(namespaces=("a", "b"))["args"]
    bound = [
        each for each in manifests.objects(Settings(image="i", namespaces=("a", "b"))) if "subjects" in each
    ]
    assert {each["metadata"]["namespace"] for each in bound} == {"a", "b", "tfyard"}
    assert {each["subjects"][0]["namespace"] for each in bound} == {"tfyard"}


@pytest.mark.parametrize("cloud", CONFIGS)
def test_the_config_of_each_cloud_can_be_read(cloud: str) -> None:
    assert load(CONFIGS[cloud]).accelerators["alpha.kubernetes.io/nvidia-gpu"].volumes


def test_the_config_for_azure_is_that_of_the_documents() -> None:
    shown = """\
grpcServerFilePath: /opt/mlkube/grpc_tensorflow_server/grpc_tensorflow_server.py
accelerators:
  alpha.kubernetes.io/nvidia-gpu:
    envVars:
      - {name: LD_LIBRARY_PATH, value: "/usr/lib/nvidia:/usr/lib/x86_64-linux-gnu"}
    volumes:
      - {name: lib, mountPath: /usr/lib/nvidia, hostPath: /usr/lib/nvidia-384}
      - {name: bin, mountPath: /usr/local/nvidia/bin, hostPath: /usr/lib/nvidia-384/bin}
      - name: libcuda
        mountPath: /usr/lib/x86_64-linux-gnu/libcuda.so.1
        hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.1
"""
    assert yaml.safe_load(CONFIGS["azure"]) == yaml.safe_load(shown)


def test_a_cloud_brings_its_config_and_the_flag_for_it() -> None:
    assert "ConfigMap/tf-job-operator-config" not in objects()
    config = objects(cloud="azure")["ConfigMap/tf-job-operator-config"]
    assert config["data"] == {"controller_config_file.yaml": CONFIGS["azure"]}
    assert "--config=/etc/config/controller_config_file.yaml" in container(cloud="azure")["args"]


@pytest.mark.parametrize("versions", [SERVED, ("kubeflow.org/v1",), tuple(VERSIONS)])
def test_a_cloud_also_serves_the_tfjobs_of_its_time(versions: tuple[str, ...]) -> None:
    """Documents that name a cloud have jobs of `tensorflow.org/v1alpha1`."""
    assert "CustomResourceDefinition/tfjobs.tensorflow.org" not in objects()
    definition = objects(cloud="gke", versions=versions)["CustomResourceDefinition/tfjobs.tensorflow.org"]
    assert served_by(definition) == ("tensorflow.org/v1alpha1",)
    asked_for = objects(cloud="gke", versions=versions)["CustomResourceDefinition/tfjobs.kubeflow.org"]
    assert asked_for == objects(versions=versions)["CustomResourceDefinition/tfjobs.kubeflow.org"]


def test_two_replicas_have_a_disruption_budget_and_are_spread() -> None:
    assert "PodDisruptionBudget/tf-job-operator" not in objects()
    two = objects(replicas=2)
    assert two["PodDisruptionBudget/tf-job-operator"]["spec"]["minAvailable"] == 1
    assert two["Deployment/tf-job-operator"]["spec"]["template"]["spec"]["topologySpreadConstraints"]


def test_everything_but_the_definitions_can_be_found_by_its_labels() -> None:
    labelled = [each for each in manifests.objects(SETTINGS) if each["kind"] != "CustomResourceDefinition"]
    assert all(LABELS.items() <= each["metadata"]["labels"].items() for each in labelled)
