"""`tfyard install` and `uninstall` on a real control plane."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.running import ROOT, Result, tfyard
from tests.cli.test_describe import until_permitted
from tests.remote.conftest import until, until_served
from tfyard.errors import TfyardError
from tfyard.install import manifests
from tfyard.install.settings import Settings
from tfyard.kube import Resource, requests
from tfyard.kube.sync import SyncClient
from tfyard.model.names import BOX_OPERATOR
from tfyard.remote.installing import doctor, installation
from tfyard.remote.installing.addresses import KINDS, path_of
from tfyard.remote.installing.installation import CannotInstall
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

UPSTREAM: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "tfjobs.kubeflow.org",
        "annotations": {"controller-gen.kubebuilder.io/version": "v0.14.0"},
    },
    "spec": {
        "group": "kubeflow.org",
        "names": {"kind": "TFJob", "listKind": "TFJobList", "plural": "tfjobs", "singular": "tfjob"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"jsonPath": ".status.conditions[-1:].type", "name": "State", "type": "string"}
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
"""A definition in the manner of training-operator's, which is applied by kubectl with server-side apply."""


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
    install(plane, "--reset")
    assert names(client, "Role") == {("tfyard", "tf-job-operator-lease")}


def deployment(client: SyncClient) -> Any:
    return client.send(requests.get(requests.DEPLOYMENTS.path("tfyard", "tf-job-operator")))["spec"]


def test_a_second_install_keeps_the_settings_that_it_is_not_given_and_says_so(
    plane: ControlPlane, client: SyncClient
) -> None:
    plane.kubectl("create", "namespace", "team-c")
    image = "registry.example/tfyard/operator"
    flags = ["--namespaces=team-c", "--cloud=azure", "--replicas=2", "--read-logs"]
    assert "kept" not in install(plane, f"--image={image}:0.0.9", *flags)
    first = {kind: names(client, kind) for kind in KINDS}
    told = f"--image {image}:0.1.0 --namespaces team-c --cloud azure --replicas 2 --read-logs"
    assert install(plane).startswith(f"kept as installed: {told} (--reset: the defaults instead)\n")
    assert {kind: names(client, kind) for kind in KINDS} == first
    assert deployment(client)["template"]["spec"]["containers"][0]["image"] == f"{image}:0.1.0"

    assert (
        "--replicas"
        not in install(plane, "--replicas=1", f"--image={image}@sha256:{'0' * 64}").splitlines()[0]
    )
    assert f"--image {image}@sha256:{'0' * 64} " in install(plane)
    assert deployment(client)["replicas"] == 1

    config = requests.CONFIG_MAPS.path("tfyard", "tf-job-operator-config")
    edited = {"data": {"controller_config_file.yaml": "accelerators: {}\n"}}
    client.send(requests.patch(config, edited))
    refused = run(plane, "install")
    assert (refused.code, "tf-job-operator-config was edited" in refused.err) == (1, True)
    assert client.send(requests.get(config))["data"] == edited["data"]

    assert "kept" not in install(plane, "--reset")
    assert deployment(client)["replicas"] == 1
    assert names(client, "Role") == {("tfyard", "tf-job-operator-lease")}
    assert names(client, "ConfigMap") == set()


def test_the_run_book_asks_for_the_permission_on_the_lease_that_an_installation_grants(
    plane: ControlPlane, client: SyncClient
) -> None:
    page = (ROOT / "docs" / "runbook.md").read_text()
    (line,) = (line for line in page.splitlines() if line.startswith("$ kubectl") and "can-i" in line)
    command = plane.kubectl_command(*line.split()[2:])

    def is_granted() -> bool:  # the server notices new roles a moment later
        return subprocess.run(command, capture_output=True, check=False).stdout == b"yes\n"

    assert not is_granted()
    install(plane)
    until(is_granted, line)
    selected = client.send(requests.get(requests.DEPLOYMENTS.path("tfyard", "tf-job-operator")))["spec"]
    labels = selected["template"]["metadata"]["labels"]
    (selector,) = set(re.findall(r"logs -l (\S+)", page))
    assert set(selector.split(",")) <= {f"{name}={value}" for name, value in labels.items()}


def test_an_operator_that_was_scaled_to_zero_comes_back(plane: ControlPlane, client: SyncClient) -> None:
    install(plane)
    plane.kubectl("-n", "tfyard", "scale", "deployment/tf-job-operator", "--replicas=0")
    assert "kept" not in install(plane)
    assert deployment(client)["replicas"] == 1


def test_uninstall_keeps_jobs_and_definitions(plane: ControlPlane, client: SyncClient) -> None:
    install(plane, "--cloud=azure", "--replicas=2")
    until_served(client, TFJOBS)
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


def test_a_user_who_may_not_install_is_told_everything_at_once(plane: ControlPlane) -> None:
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


def test_on_a_cluster_of_tfyard_dev_a_second_operator_is_refused(
    plane: ControlPlane, client: SyncClient
) -> None:
    role = KINDS["ClusterRole"]
    client.send(requests.create(role.path(), {"metadata": {"name": BOX_OPERATOR}, "rules": []}))
    done = run(plane, "install", "--no-wait")
    client.send(requests.delete(role.path(name=BOX_OPERATOR)))
    assert done.code == 1
    assert done.err == (
        "tfyard: nothing was installed:\n"
        "  - `tfyard dev` runs its operator here; `tfyard dev up --no-operator` starts a cluster without it\n"
    )


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


# --- clusters of others


def attempt(client: SyncClient, *, replace_kubeflow: bool = False, **settings: Any) -> list[str]:
    """Why nothing was installed. What was there before is still all there is."""
    before = everything(client)
    wanted = Settings(image="tfyard/operator:0.1.0", **settings)
    with pytest.raises(CannotInstall) as caught:
        installation.run(client, wanted, replace_kubeflow=replace_kubeflow, dry_run=False, say=print)
    assert everything(client) == before
    return str(caught.value).splitlines()[1:]


def everything(client: SyncClient) -> dict[str, set[str]]:
    """Kind -> the uids of all objects that there are."""
    with SyncClient(replace(client.access, user=replace(client.access.user, impersonate=""))) as admin:
        listed = {kind: admin.send(requests.get(KINDS[kind].path()))["items"] for kind in KINDS}
    return {kind: {each["metadata"]["uid"] for each in items} for kind, items in listed.items()}


def test_what_is_being_deleted_or_is_not_there_is_told_before_anything_is_made(
    plane: ControlPlane, client: SyncClient
) -> None:
    held = {**UPSTREAM, "metadata": {**UPSTREAM["metadata"], "finalizers": ["example.com/held"]}}
    client.send(requests.create(requests.CRDS.path(), held))
    path = requests.CRDS.path(name="tfjobs.kubeflow.org")
    client.send(requests.delete(path))
    client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": "leaving"}}))
    client.send(requests.delete(requests.NAMESPACES.path(name="leaving")))
    try:
        assert attempt(client, namespace="leaving", namespaces=("nowhere",)) == [
            "  - namespace/leaving is being deleted; install again when it is gone",
            "  - there is no namespace nowhere; kubectl create namespace nowhere creates it",
            "  - customresourcedefinition.apiextensions.k8s.io/tfjobs.kubeflow.org is being deleted;"
            " install again when it is gone",
        ]
        told = {each.subject: each for each in doctor.examine(client)}
        assert (told["crd"].level, "is being deleted" in told["crd"].text) == ("wrong", True)
    finally:
        client.send(requests.patch(path, {"metadata": {"finalizers": None}}))
        plane.kubectl("wait", "--for=delete", "crd/tfjobs.kubeflow.org", "--timeout=30s")


def test_a_definition_with_versions_that_are_unknown_here_is_reported_before_anything_is_made(
    plane: ControlPlane, client: SyncClient
) -> None:
    (version,) = UPSTREAM["spec"]["versions"]
    spec = {**UPSTREAM["spec"], "versions": [{**version, "name": "v3"}]}
    client.send(requests.create(requests.CRDS.path(), {**UPSTREAM, "spec": spec}))
    (reason,) = attempt(client)
    assert "tfjobs.kubeflow.org: " in reason
    assert "storedVersions" in reason
    told = {each.subject: each for each in doctor.examine(client)}
    assert (told["crd"].level, "v1 is not served" in told["crd"].text) == ("wrong", True)
    with SyncClient(replace(client.access, user=replace(client.access.user, impersonate="bob"))) as bob:
        assert doctor.NO_TFJOBS in [*doctor.examine(bob)]  # who may not read definitions
    v3 = Resource("kubeflow.org", "v3", "tfjobs")
    until_served(client, v3)
    client.send(requests.create(v3.path("default"), {**JOB, "apiVersion": "kubeflow.org/v3"}))
    with pytest.raises(TfyardError, match="nothing was deleted: 1 TFJob exist"):
        installation.uninstall(client, crds=True, force=False, say=print)


def test_a_user_who_may_only_apply_is_told_what_was_not_done(plane: ControlPlane, client: SyncClient) -> None:
    allowed = {
        "create patch get": ["*"],
        "list": ["apps/deployments", "admissionregistration.k8s.io/validatingwebhookconfigurations"],
        "escalate bind": ["rbac.authorization.k8s.io/*"],
    }
    rules = [
        {"apiGroups": [group or "*"], "resources": [resource], "verbs": verbs.split()}
        for verbs, what in allowed.items()
        for group, _, resource in (each.rpartition("/") for each in what)
    ]
    role = {"metadata": {"name": "appliers"}, "rules": rules}
    of = {"apiGroup": "rbac.authorization.k8s.io", "name": "appliers"}
    binding = {"metadata": {"name": "appliers"}, "roleRef": {**of, "kind": "ClusterRole"}}
    subject = {"apiGroup": of["apiGroup"], "kind": "User", "name": "ann"}
    client.send(requests.create(KINDS["ClusterRole"].path(), role))
    client.send(requests.create(KINDS["ClusterRoleBinding"].path(), {**binding, "subjects": [subject]}))
    until_permitted(client, "", "ann", rules[-1])
    said: list[str] = []
    with SyncClient(replace(client.access, user=replace(client.access.user, impersonate="ann"))) as ann:
        assert [line.split()[5] for line in attempt(ann, replace_kubeflow=True)] == [
            "deployments.apps",
            "validatingwebhookconfigurations.admissionregistration.k8s.io",
            "pods",
        ]
        settings = Settings(image="tfyard/operator:0.1.0")
        installation.run(ann, settings, replace_kubeflow=False, dry_run=False, say=said.append)
    assert "deployment.apps/tf-job-operator serverside-applied" in said
    assert said[-1].startswith("not looked for: what an earlier installation has left (")
    assert '"clusterroles"' in said[-1]
    assert run(plane, "uninstall").code == 0
    plane.kubectl("delete", "clusterrole/appliers", "clusterrolebinding/appliers")
