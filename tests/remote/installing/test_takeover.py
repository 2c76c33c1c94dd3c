"""TFJobs are taken over from training-operator and given back, on a control plane whose Deployments roll out."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.background import in_background
from tests.install.test_kubeflow import deployment, webhooks
from tests.remote.conftest import until, until_served
from tests.remote.installing.test_installation import JOB, TFJOBS, UPSTREAM, install, names, run
from tfyard.errors import TfyardError
from tfyard.install.settings import Settings
from tfyard.kube import requests
from tfyard.kube.requests import DEPLOYMENTS
from tfyard.kube.sync import SyncClient
from tfyard.remote.installing import installation, pod_waits
from tfyard.remote.installing.addresses import WEBHOOKS
from tfyard.testing import CONTROLLERS, ControlPlane, Script, ScriptedKubelet

pytestmark = pytest.mark.cluster
OLD = "deployment training-operator in the namespace kubeflow"
SLOW = Script(ready_after=1.5, stop_after=1.5)
"""A pod that is not ready at once, and does not end at once."""
PYTORCH = UPSTREAM["spec"] | {
    "names": {"kind": "PyTorchJob", "listKind": "PyTorchJobList", "plural": "pytorchjobs"}
}


class Node:
    """What pods do from now on."""

    script = SLOW


@asynccontextmanager
async def _kubelet(plane: ControlPlane, node: Node) -> AsyncIterator[None]:
    async with plane.client() as client, ScriptedKubelet(client, lambda _pod: node.script):
        yield


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def rolling(plane: ControlPlane, client: SyncClient, node: Node) -> Iterator[ControlPlane]:
    """With training-operator, and whatever makes pods of a Deployment and runs them."""
    for name in CONTROLLERS:
        plane.start(name)
    plane.kubectl("apply", "-f", "-", stdin="{apiVersion: v1, kind: Namespace, metadata: {name: kubeflow}}")
    with in_background(_kubelet(plane, node)):
        client.send(requests.create(DEPLOYMENTS.path("kubeflow"), _whole(deployment("--v=2"))))
        client.send(requests.create(WEBHOOKS.path(), _answerable(webhooks())))
        until(lambda: _is_available(client), "training-operator is ready")
        yield plane
        assert run(plane, "uninstall", "--crds", "--force").code == 0
        client.send(requests.delete(WEBHOOKS.path(name="validator")))
        client.send(requests.delete(DEPLOYMENTS.path("kubeflow", "training-operator")))
        until(lambda: not old_pods(client), "training-operator is gone")
    for name in CONTROLLERS:
        plane.stop(name)


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


def _deployment(client: SyncClient) -> Any:
    return client.send(requests.get(DEPLOYMENTS.path("kubeflow", "training-operator")))


def _is_available(client: SyncClient) -> bool:
    return bool(_deployment(client).get("status", {}).get("availableReplicas"))


def old_pods(client: SyncClient) -> list[Any]:
    """Of training-operator, also those that are ending."""
    return list(client.send(requests.get(requests.PODS.path("kubeflow")))["items"])


@pytest.fixture
def pytorch_jobs(client: SyncClient) -> Iterator[None]:
    """Another kind that training-operator goes on with."""
    definition = {**UPSTREAM, "metadata": {"name": "pytorchjobs.kubeflow.org"}, "spec": PYTORCH}
    client.send(requests.create(requests.CRDS.path(), definition))
    yield
    client.send(requests.delete(requests.CRDS.path(name="pytorchjobs.kubeflow.org")))


class Lines:
    """What a command says, and what held when it said a certain line."""

    def __init__(self, line: str, look: Callable[[], Any]) -> None:
        self.said: list[str] = []
        self.seen: list[Any] = []
        self._line, self._look = line, look

    def __call__(self, text: str) -> None:
        self.said.append(text)
        if self._line in text:
            self.seen.append(self._look())


def take_over(client: SyncClient) -> Lines:
    lines = Lines("deployment.apps/tf-job-operator serverside-applied", lambda: old_pods(client))
    settings = Settings(image="tfyard/operator:0.1.0")
    installation.run(client, settings, replace_kubeflow=True, dry_run=False, say=lines)
    return lines


def give_back(client: SyncClient) -> Lines:
    def look() -> list[Any]:
        return [_deployment(client)["status"], *old_pods(client)]

    lines = Lines("validator: TFJobs put back into the webhook", look)
    installation.uninstall(client, crds=False, force=False, say=lines)
    return lines


def test_a_cluster_with_training_operator_is_refused_until_it_is_replaced(
    rolling: ControlPlane, client: SyncClient
) -> None:
    refused = run(rolling, "install")
    assert refused.code == 1
    assert f"{OLD} works on TFJobs" in refused.err
    assert "the webhook validator must answer for each TFJob" in refused.err
    assert names(client, "Deployment") == set()

    out = install(rolling, "--replace-kubeflow")
    assert f"{OLD}: configured to ignore TFJobs" in out
    until_served(client, TFJOBS)
    client.send(requests.create(TFJOBS.path("default"), JOB))  # no webhook stands in the way
    assert _deployment(client)["spec"]["replicas"] == 0, "no other kind of kubeflow.org exists here"
    assert "configured to ignore" not in install(rolling, "--replace-kubeflow"), "once is enough"

    done = run(rolling, "uninstall")
    assert f"{OLD}: works on TFJobs again" in done.out
    as_others_do = {"status": {"conditions": [{"type": "Running", "status": "True"}]}}
    client.send(requests.patch(TFJOBS.path("default", "kept", "status"), as_others_do))
    assert rolling.kubectl("get", "tfjobs", "--no-headers").split()[:2] == ["kept", "Running"]
    assert _deployment(client)["spec"]["replicas"] == 1
    found = client.send(requests.get(WEBHOOKS.path(name="validator")))
    assert len(found["webhooks"]) == 2
    keep_and_put_back(rolling, "-n", "kubeflow", "deployment", "training-operator")
    keep_and_put_back(rolling, "validatingwebhookconfiguration", "validator")

    assert run(rolling, "install", "--no-wait", "--replace-kubeflow").code == 0
    client.send(requests.patch(TFJOBS.path("default", "kept", "status"), {"status": {"phase": "Waiting"}}))
    assert rolling.kubectl("get", "tfjobs", "--no-headers").split()[:2] == ["kept", "Waiting"]


def keep_and_put_back(plane: ControlPlane, *what: str) -> None:
    """As the page says for those who replace training-operator by hand."""
    kept = plane.kubectl("get", *what, "-o", "yaml")
    assert "replaced" in plane.kubectl("replace", "--force", "-f", "-", stdin=kept)


def test_ours_starts_when_the_old_operator_has_ended_and_the_webhook_comes_back_when_it_serves(
    rolling: ControlPlane, client: SyncClient
) -> None:
    taken = take_over(client)
    assert taken.seen == [[]], "two operators would work on one job"
    assert [line for line in taken.said if line.startswith(f"waiting: {OLD}: ")]

    given = give_back(client)
    ((status, pod),) = given.seen
    assert (status["availableReplicas"], "deletionTimestamp" in pod["metadata"]) == (1, False)
    waits = [number for number, line in enumerate(given.said) if line.startswith(f"waiting: {OLD}: ")]
    told = given.said.index(f"{OLD}: works on TFJobs again")
    assert all(told < wait for wait in waits), "it is waited for, unless it was quicker"


def test_an_operator_that_keeps_other_kinds_is_replaced_by_one_that_ignores_tfjobs_before_ours_starts(
    rolling: ControlPlane, pytorch_jobs: None, client: SyncClient
) -> None:
    ((pod,),) = take_over(client).seen
    assert pod["spec"]["containers"][1]["args"] == ["--v=2", "--enable-scheme=pytorchjob"]
    ((_, pod),) = give_back(client).seen
    assert pod["spec"]["containers"][1]["args"] == ["--v=2"]


def test_an_old_operator_that_does_not_go_is_told_and_nothing_is_installed(
    rolling: ControlPlane,
    pytorch_jobs: None,
    client: SyncClient,
    node: Node,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is still there, because the pod that should replace it does not start."""
    node.script = Script(waiting="CrashLoopBackOff")
    monkeypatch.setattr(pod_waits, "LONGEST_ROLLOUT", 5.0)
    with pytest.raises(TfyardError) as refusal:
        take_over(client)
    assert f"not rolled out after 5 s: {OLD}: training-operator-" in str(refusal.value)
    assert "CrashLoopBackOff" in str(refusal.value)
    assert names(client, "Deployment") == set()
    assert run(rolling, "uninstall").code == 0
    assert _deployment(client)["spec"]["template"]["spec"]["containers"][1]["args"] == ["--v=2"]
