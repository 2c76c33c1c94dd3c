"""A release of the Helm chart on a real control plane: installed, upgraded, rolled back, uninstalled."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from tests.helm import CHART, Helm, HelmFailed
from tests.remote.conftest import until_served
from tests.remote.installing.test_installation import JOB, TFJOBS, UPSTREAM, names
from tfyard.install import permissions, roles
from tfyard.install.settings import NAME
from tfyard.kube import Access, Forbidden, requests
from tfyard.kube.access_reviews import is_allowed, review
from tfyard.kube.sync import SyncClient
from tfyard.model.permission import Permission
from tfyard.remote.installing import one_task_job
from tfyard.remote.installing.addresses import KINDS
from tfyard.testing import ControlPlane, eventually

pytestmark = pytest.mark.cluster
PAGE = f"{NAME}-page"
WHERE = ("--namespace", "tfyard")
DESCRIBED = """\
controller_config_file.yaml:
----
grpcServerFilePath: /opt/mlkube/grpc_tensorflow_server/grpc_tensorflow_server.py
accelerators:
  alpha.kubernetes.io/nvidia-gpu:
    envVars:
      - name: LD_LIBRARY_PATH
        value: /usr/lib/nvidia:/usr/lib/x86_64-linux-gnu
    volumes:
      - name: lib
        mountPath: /usr/lib/nvidia
        hostPath:  /usr/lib/nvidia-384
      - name: bin
        mountPath: /usr/local/nvidia/bin
        hostPath: /usr/lib/nvidia-384/bin
      - name: libcuda
        mountPath: /usr/lib/x86_64-linux-gnu/libcuda.so.1
        hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.1
"""
"""As people of 2017 saw it, with kubectl."""


@pytest.fixture
def release(plane: ControlPlane, helm: Helm) -> Iterator[Helm]:
    """helm on that cluster, with a namespace that takes only pods that pass PodSecurity `restricted`."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tfyard", "labels": labels}}
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))
    yield partial(helm, kubeconfig=plane.kubeconfig)
    helm("uninstall", "tf-job", *WHERE, "--ignore-not-found", kubeconfig=plane.kubeconfig)


def installed(client: SyncClient) -> dict[str, set[tuple[str, str]]]:
    """Names of the release's objects by kind, without the CRDs."""
    found = {kind: names(client, kind) for kind in KINDS if kind != "CustomResourceDefinition"}
    return {kind: each for kind, each in found.items() if each}


def deployment(client: SyncClient, name: str = NAME) -> Any:
    return client.send(requests.get(KINDS["Deployment"].path("tfyard", name)))


def generations(client: SyncClient) -> dict[str, int]:
    found = client.send(requests.get(requests.CRDS.path()))["items"]
    return {each["metadata"]["name"]: each["metadata"]["generation"] for each in found}


def test_upgrade_rollback_and_uninstall_keep_jobs_and_definitions(
    plane: ControlPlane, client: SyncClient, release: Helm
) -> None:
    said = release("install", "tf-job", str(CHART), *WHERE, "--set", "cloud=azure")
    assert "kubectl -n tfyard rollout status deployment/tf-job-operator\n" in said
    described = plane.kubectl("-n", "tfyard", "describe", "configmaps", "tf-job-operator-config")
    assert DESCRIBED in described
    assert_permitted(plane, client)
    until_served(client, TFJOBS)
    client.send(requests.create(TFJOBS.path("default"), JOB))
    before = generations(client)

    more = "replicaCount=2,networkPolicy.enabled=true,metrics.dashboard.enabled=true"
    release("upgrade", "tf-job", str(CHART), *WHERE, "--reuse-values", "--set", more)
    assert deployment(client)["spec"]["replicas"] == 2
    assert names(client, "PodDisruptionBudget") == {("tfyard", "tf-job-operator")}
    release("rollback", "tf-job", "1", *WHERE)
    assert deployment(client)["spec"]["replicas"] == 1
    assert names(client, "PodDisruptionBudget") == set()
    assert generations(client) == before

    release("uninstall", "tf-job", *WHERE)
    assert installed(client) == {}
    assert generations(client) == before
    assert client.send(requests.get(TFJOBS.path("default", "kept")))["spec"] == JOB["spec"] | {
        "tfReplicaSpecs": {"Worker": {"replicas": 1, **JOB["spec"]["tfReplicaSpecs"]["Worker"]}}
    }
    release("install", "tf-job", str(CHART), *WHERE)
    assert generations(client) == before, "an installation after an uninstallation goes on with the same CRDs"


def test_pod_security_restricted_accepts_every_pod_and_roles_in_two_namespaces_suffice(
    plane: ControlPlane, client: SyncClient, release: Helm
) -> None:
    for name in ("default", "tf-job-operator-test"):  # as controllers and `helm test` would create them
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        plane.kubectl("apply", "-n", "tfyard", "-f", "-", stdin=json.dumps(account))
    for name in ("team-x", "team-y"):
        plane.kubectl("create", "namespace", name)
    values = "replicaCount=2,cloud=azure,namespaces={team-x,team-y},page.enabled=true"
    release("install", "tf-job", str(CHART), *WHERE, "--set", values)
    assert_permitted(plane, client, "team-x", "team-y")
    hooks = yaml.load_all(release("get", "hooks", "tf-job", *WHERE), yaml.CSafeLoader)
    (test,) = [each["spec"] for each in hooks if each["kind"] == "Pod"]
    trained = one_task_job.job("busybox:1.37")["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    operator = deployment(client)["spec"]["template"]["spec"]
    page = deployment(client, PAGE)["spec"]["template"]["spec"]
    for pod in (operator, test, {**trained, "restartPolicy": "Never"}, page):
        try_pod(client, pod)
    with SyncClient(access_of(plane, client, PAGE)) as own:
        work = permissions.in_namespaces(permissions.of_children(), ["team-x"])
        assert len(denied(own, work)) == sum(len(each.verbs) for each in work), (
            "the page may do nothing itself"
        )
    del operator["securityContext"]["seccompProfile"]
    with pytest.raises(Forbidden, match="seccompProfile"):
        try_pod(client, operator)
    client.send(requests.delete(requests.SERVICE_ACCOUNTS.path("tfyard", "tf-job-operator-test")))


def try_pod(client: SyncClient, spec: Any) -> None:
    pod = {"metadata": {"generateName": "tried-"}, "spec": spec}
    client.send(requests.create(requests.PODS.path("tfyard"), pod, {"dryRun": "All"}))


def access_of(plane: ControlPlane, client: SyncClient, account: str = NAME) -> Access:
    path = requests.SERVICE_ACCOUNTS.path("tfyard", account, "token")
    token = client.send(requests.create(path, {"spec": {"expirationSeconds": 600}}))["status"]["token"]
    return plane.token_access(token)


def assert_permitted(plane: ControlPlane, client: SyncClient, *namespaces: str) -> None:
    """Its ServiceAccount may do all that the operator asks for, there or everywhere; elsewhere nothing."""
    of_jobs = [each for group in roles.GROUPS for each in permissions.of_jobs(group)]
    work = [*of_jobs, *permissions.of_children(), permissions.EVENTS, permissions.POD_EVENTS]
    needed = [*permissions.in_namespaces(work, namespaces), permissions.of_lease("tfyard")]
    elsewhere = permissions.in_namespaces(work, ["default"])
    with SyncClient(access_of(plane, client)) as operator:

        async def look() -> None:
            assert denied(operator, needed) == []

        asyncio.run(eventually(look))
        everything = [(each, verb) for each in elsewhere for verb in each.verbs]
        assert denied(operator, elsewhere) == (everything if namespaces else [])


def denied(client: SyncClient, wanted: list[Permission]) -> list[tuple[Permission, str]]:
    asked = [(each, verb) for each in wanted for verb in each.verbs]
    return [(each, verb) for each, verb in asked if not is_allowed(client.send(review(each, verb)))]


def test_over_the_definition_of_training_operator_helm_must_take_ownership(
    plane: ControlPlane, client: SyncClient, release: Helm
) -> None:
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(UPSTREAM))
    until_served(client, TFJOBS)
    plane.kubectl("apply", "-n", "tfyard", "-f", "-", stdin=json.dumps(JOB))
    job = TFJOBS.path("tfyard", "kept")
    uid = client.send(requests.get(job))["metadata"]["uid"]
    with pytest.raises(HelmFailed, match="invalid ownership metadata"):
        release("install", "tf-job", str(CHART), *WHERE)
    with pytest.raises(HelmFailed, match="conflict"):
        release("install", "tf-job", str(CHART), *WHERE, "--take-ownership")
    release("upgrade", "--install", "tf-job", str(CHART), *WHERE, "--take-ownership", "--force-conflicts")
    served = client.send(requests.get(requests.CRDS.path(name="tfjobs.kubeflow.org")))["spec"]["versions"]
    assert {each["name"] for each in served} == {"v1", "v1beta1"}
    assert client.send(requests.get(job))["metadata"]["uid"] == uid
