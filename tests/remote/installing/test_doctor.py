"""What `doctor` sees of operators and definitions, on a real API server."""

from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from tests.remote.conftest import until
from tfyard.formats.crd.documents import crds
from tfyard.install.settings import LABELS
from tfyard.kube import requests
from tfyard.kube.requests import DEPLOYMENTS
from tfyard.kube.sync import SyncClient
from tfyard.model.names import BOX_OPERATOR
from tfyard.model.permission import RBAC
from tfyard.remote.installing import doctor
from tfyard.remote.installing.addresses import KINDS

pytestmark = pytest.mark.cluster


def deployment(labels: dict[str, str], replicas: int) -> dict[str, Any]:
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "a", "image": "operator:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "tf-job-operator", "labels": labels}, "spec": spec}


def test_an_operator_that_is_scaled_to_zero_and_the_one_of_2017_are_named(client: SyncClient) -> None:
    made = {"ours": deployment(dict(LABELS), 0), "old": deployment({"name": "tf-job-operator"}, 1)}
    for namespace, manifest in made.items():
        client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": namespace}}))
        client.send(requests.create(DEPLOYMENTS.path(namespace), manifest))
    scaled, first = doctor.operators(client)
    assert (
        scaled.text == "tf-job-operator in the namespace ours: 0 of 0 ready, operator:1: it is scaled to zero"
    )
    assert scaled.fix == "`kubectl -n ours scale deployment tf-job-operator --replicas=1`"
    assert (first.level, first.text) == ("wrong", "tf-job-operator in the namespace old works on TFJobs, too")
    for namespace in made:
        client.send(requests.delete(DEPLOYMENTS.path(namespace, "tf-job-operator")))


def test_before_kubernetes_1_35_a_shell_needs_get_as_well_as_create(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = {"name": "shells", "namespace": "default"}
    rule = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}
    subject = {"apiGroup": RBAC, "kind": "User", "name": "eve"}
    of = {"apiGroup": RBAC, "kind": "Role", "name": "shells"}
    client.send(requests.create(KINDS["Role"].path("default"), {"metadata": metadata, "rules": [rule]}))
    binding = {"metadata": metadata, "roleRef": of, "subjects": [subject]}
    client.send(requests.create(KINDS["RoleBinding"].path("default"), binding))

    def refused() -> str:
        (finding,) = (each for each in doctor.examine(eve) if each.subject == "rights")
        return finding.text.partition(" may not ")[2]

    with SyncClient(replace(client.access, user=replace(client.access.user, impersonate="eve"))) as eve:
        monkeypatch.setattr(doctor, "CREATE_OPENS", 0)
        until(lambda: "open shells" not in refused(), "the role to be known")
        monkeypatch.setattr(doctor, "CREATE_OPENS", 99)
        assert "open shells" in refused()


def test_a_definition_of_another_release_that_drops_memory_is_wrong(client: SyncClient) -> None:
    (definition,) = deepcopy(crds())
    for version in definition["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        del status["properties"]["endings"], status["x-kubernetes-preserve-unknown-fields"]
    client.send(requests.create(requests.CRDS.path(), definition))
    (found,) = (each for each in doctor.examine(client) if each.subject == "crd")
    assert (found.level, "it would drop status.endings" in found.text) == ("wrong", True), found


def test_the_cluster_of_tfyard_dev_needs_neither_deployment_nor_lease_nor_dns(client: SyncClient) -> None:
    role = KINDS["ClusterRole"]
    client.send(requests.create(role.path(), {"metadata": {"name": BOX_OPERATOR}, "rules": []}))
    found = {each.subject: each for each in doctor.examine(client)}
    client.send(requests.delete(role.path(name=BOX_OPERATOR)))
    assert [found[subject].level for subject in ("operator", "leader", "dns")] == ["ok", "ok", "ok"]
    assert "hosts file" in found["dns"].text
