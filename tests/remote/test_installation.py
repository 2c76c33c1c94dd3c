"""`tfyard install` and `uninstall` on a real control plane."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import ROOT, Result, tfyard
from tests.install.test_kubeflow import deployment, webhooks
from tfyard.install import manifests
from tfyard.install.settings import Settings
from tfyard.kube import Resource, requests
from tfyard.kube.sync import SyncClient
from tfyard.remote.addresses import DEPLOYMENTS, KINDS, WEBHOOKS, path_of
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster
PAGE = (ROOT / "docs" / "install.md").read_text().splitlines()
TFJOBS = Resource("kubeflow.org", "v1", "tfjobs")
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": "kept"},
    "spec": {
        "tfReplicaSpecs": {
            "Worker": {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "i"}]}}}
        }
    },
}


def run(plane: ControlPlane, *args: str, kubeconfig: Path | None = None) -> Result:
    return tfyard(*args, KUBECONFIG=str(kubeconfig or plane.kubeconfig))


def install(plane: ControlPlane, *args: str) -> str:
    done = run(plane, "install", "--no-wait", *args)
    assert done.code == 0, done.err
    return done.out


def versions(client: SyncClient) -> dict[str, str]:
    """Path -> version of everything that is installed; where the server writes status, of the spec alone."""
    paths = [path_of(manifest) for manifest in manifests.objects(Settings(image="tfyard/operator:0.1.0"))]
    metas = {path: client.send(requests.get(path))["metadata"] for path in paths}
    return {path: meta.get("generation") or meta["resourceVersion"] for path, meta in metas.items()}


def names(client: SyncClient, kind: str) -> set[tuple[str, str]]:
    answer = client.send(requests.get(KINDS[kind].path()))
    metas = [each["metadata"] for each in answer["items"]]
    return {(meta.get("namespace", ""), meta["name"]) for meta in metas if "tf-job-operator" in meta["name"]}


def test_a_second_install_changes_nothing_and_other_settings_leave_nothing_behind(
    plane: ControlPlane, client: SyncClient
) -> None:
    out = install(plane)
    assert [line for line in PAGE if line.endswith(" serverside-applied")] == out.splitlines()[:-1]
    assert out.splitlines()[-1] in PAGE
    before = versions(client)
    install(plane)
    assert versions(client) == before

    for name in ("team-a", "team-b"):
        client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": name}}))
    out = install(plane, "--namespaces=team-a,team-b")
    assert "clusterrole.rbac.authorization.k8s.io/tf-job-operator deleted\n" in out
    assert names(client, "ClusterRoleBinding") == set()
    assert names(client, "Role") == {
        ("team-a", "tf-job-operator"),
        ("team-b", "tf-job-operator"),
        ("tfyard", "tf-job-operator-lease"),
    }
    install(plane)
    assert names(client, "Role") == {("tfyard", "tf-job-operator-lease")}


def test_uninstall_keeps_jobs_and_definitions(plane: ControlPlane, client: SyncClient) -> None:
    install(plane, "--cloud=azure", "--replicas=2")
    client.send(requests.create(TFJOBS.path("default"), JOB))
    refused = run(plane, "uninstall", "--crds")
    assert refused.code == 1
    assert refused.err.startswith("tfyard: nothing was deleted: 1 TFJob exist")
    assert names(client, "Deployment") == {("tfyard", "tf-job-operator")}

    done = run(plane, "uninstall")
    assert (done.code, done.err) == (0, "")
    assert "TFJobs and their CRDs were kept" in done.out
    left = {kind: names(client, kind) for kind in KINDS if kind != "CustomResourceDefinition"}
    assert {kind: found for kind, found in left.items() if found} == {}
    assert client.send(requests.get(TFJOBS.path("default", "kept")))
    assert "the operator is not installed here\n" in run(plane, "uninstall").out
    client.send(requests.delete(TFJOBS.path("default", "kept")))


def test_who_may_not_install_is_told_everything_at_once(plane: ControlPlane) -> None:
    nobody = plane.write_kubeconfig(plane.access("nobody", ["guests"]), "nobody")
    done = run(plane, "install", kubeconfig=nobody)
    assert done.code == 1
    assert done.err.startswith("tfyard: nothing was installed:\n")
    for permission in (
        "create, patch customresourcedefinitions.apiextensions.k8s.io in all namespaces",
        "create, patch clusterroles.rbac.authorization.k8s.io in all namespaces",
        "create, patch deployments.apps in namespace tfyard",
    ):
        assert f"  - you may not {permission}\n" in done.err
    assert "whether another TFJob operator works here cannot be seen" in done.err


def test_a_dry_run_stores_nothing(plane: ControlPlane, client: SyncClient) -> None:
    plane.kubectl("apply", "-f", "-", stdin="{apiVersion: v1, kind: Namespace, metadata: {name: tfyard}}")
    done = run(plane, "install", "--dry-run=server", "-n", "elsewhere")
    assert (done.code, done.err) == (0, "")
    assert (
        "clusterrole.rbac.authorization.k8s.io/tf-job-operator serverside-applied (server dry run)"
        in done.out
    )
    found = client.send(requests.get(requests.NAMESPACES.path()))
    assert "elsewhere" not in {each["metadata"]["name"] for each in found["items"]}
    printed = run(plane, "install", "--dry-run=client")
    apply = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
    assert plane.kubectl(*apply, stdin=printed.out).count("serverside-applied (server dry run)") > 10


def test_a_cluster_with_training_operator_is_refused_until_it_is_replaced(
    plane: ControlPlane, client: SyncClient
) -> None:
    client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": "kubeflow"}}))
    client.send(requests.create(DEPLOYMENTS.path("kubeflow"), _whole(deployment("--v=2"))))
    client.send(requests.create(WEBHOOKS.path(), _answerable(webhooks())))
    refused = run(plane, "install")
    assert refused.code == 1
    assert "deployment training-operator in the namespace kubeflow works on TFJobs" in refused.err
    assert "the webhook validator must answer for each TFJob" in refused.err
    assert names(client, "Deployment") == set()

    out = install(plane, "--replace-kubeflow")
    assert "training-operator in the namespace kubeflow: told to leave TFJobs alone" in out
    client.send(requests.create(TFJOBS.path("default"), JOB))  # no webhook stands in the way
    assert _deployment(client)["spec"]["replicas"] == 0, "no other kind of kubeflow.org exists here"
    assert "told to leave" not in install(plane, "--replace-kubeflow"), "once is enough"

    done = run(plane, "uninstall")
    assert "deployment training-operator in the namespace kubeflow: works on TFJobs again" in done.out
    assert _deployment(client)["spec"]["replicas"] == 1
    found = client.send(requests.get(WEBHOOKS.path(name="validator")))
    assert len(found["webhooks"]) == 2
    keep_and_put_back(plane, "-n", "kubeflow", "deployment", "training-operator")
    keep_and_put_back(plane, "validatingwebhookconfiguration", "validator")
    client.send(requests.delete(WEBHOOKS.path(name="validator")))


def keep_and_put_back(plane: ControlPlane, *what: str) -> None:
    """As the page says for those who replace training-operator by hand."""
    kept = plane.kubectl("get", *what, "-o", "yaml")
    assert "replaced" in plane.kubectl("replace", "--force", "-f", "-", stdin=kept)


def _deployment(client: SyncClient) -> Any:
    return client.send(requests.get(DEPLOYMENTS.path("kubeflow", "training-operator")))


def _whole(found: Any) -> Any:
    labels = {"app": "training-operator"}
    found["spec"] |= {"selector": {"matchLabels": labels}}
    found["spec"]["template"]["metadata"] = {"labels": labels}
    return found


def _answerable(found: Any) -> Any:
    for webhook in found["webhooks"]:
        webhook |= {
            "clientConfig": {"url": "https://127.0.0.1:1/nobody"},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        webhook["rules"][0] |= {
            "apiGroups": ["kubeflow.org"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
        }
    return found
