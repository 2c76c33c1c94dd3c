"""The Job that drives a sweep which no command follows: one small pod, under a ServiceAccount of the user's
namespace that is bound to the ClusterRole `tfyard-sweep`.

Users may not bind roles. Whether the binding is there is asked before anything is created, where the user may ask
that; else the pod itself says it.
"""

from typing import Any

from msgspec import Struct

from tfyard import __version__
from tfyard.errors import NotPossible, TfyardError
from tfyard.install.roles import DRIVER_IMAGE, SWEEP_ROLE
from tfyard.install.settings import REPOSITORY
from tfyard.kube import AlreadyExists, Forbidden, Resource, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest, restricted
from tfyard.model.callbacks import Say
from tfyard.model.names import SWEEP
from tfyard.remote.reading.refusals import EDIT, granted

from .store import SweepObject
from .submission import PreparedSweep

JOBS = Resource("batch", "v1", "jobs")
REVIEWS = Resource("authorization.k8s.io", "v1", "localsubjectaccessreviews")
ACCOUNT = "tfyard-sweep"
"""ServiceAccount of drivers, unless the sweep names another one."""
DRIVER = "driver"
RESTARTS = 100
"""A driver that cannot reach the server is started again every five minutes, so that it outlives an outage."""
KEPT = 24 * 3600
"""Seconds for which a driver that has ended stays, with its log."""
RESOURCES = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
NEEDED = (
    ("kubeflow.org", "tfjobs", "", "create"),
    ("", "configmaps", "", "patch"),
    ("", "pods", "log", "get"),
)
"""Permissions by which it is seen whether the role is bound."""


class DriverPod(Struct, frozen=True, kw_only=True):
    image: str
    account: str
    is_bound: bool | None
    """Whether the role is bound to the account; None: the user may not ask that."""

    def binding(self, namespace: str) -> str:
        """The command of an administrator."""
        return (
            f"kubectl create rolebinding {self.account} -n {namespace} --clusterrole={SWEEP_ROLE}"
            f" --serviceaccount={namespace}:{self.account}"
        )


def checked(client: SyncClient, sweep: PreparedSweep) -> DriverPod:
    """Raises NotPossible, with the ways out, if the driver would lack its permissions. Creates nothing."""
    return _checked(client, sweep.namespace, sweep.spec.service_account, sweep.driver_image)


def checked_again(client: SyncClient, sweep: SweepObject) -> DriverPod:
    """The same for a sweep that goes on."""
    state = sweep.stored
    image = sweep.metadata.annotations.get(DRIVER_IMAGE, "")
    return _checked(client, sweep.namespace, state.spec.service_account if state else "", image)


def _checked(client: SyncClient, namespace: str, account: str, image: str) -> DriverPod:
    if account and not _exists(client, namespace, account):
        raise NotPossible(
            f"serviceAccount: there is no ServiceAccount {account} in the namespace {namespace}"
        )
    chosen, role = account or ACCOUNT, _role(client)
    pod = DriverPod(
        image=image or _image(role or {}), account=chosen, is_bound=_is_bound(client, namespace, chosen)
    )
    if pod.is_bound is False:
        raise NotPossible(_unbound(pod, namespace, is_installed=role is not None))
    return pod


def _unbound(pod: DriverPod, namespace: str, *, is_installed: bool) -> str:
    who = f"the ServiceAccount {pod.account} may not drive sweeps in the namespace {namespace}"
    if not is_installed:
        missing = f"the cluster has no ClusterRole {SWEEP_ROLE}, which `tfyard install` and the chart bring"
        return f"{who}: {missing}; `--follow` drives it from here"
    ways = "or `--follow` drives it from here, or `serviceAccount:` in the sweep file names another one"
    return f"{who}; an administrator allows it by `{pod.binding(namespace)}`; {ways}"


def _exists(client: SyncClient, namespace: str, account: str) -> bool:
    try:
        return client.find(requests.SERVICE_ACCOUNTS.path(namespace, account)) is not None
    except Forbidden:
        return True  # the user may not look; the pod will tell


def _role(client: SyncClient) -> Manifest | None:
    """The role of drivers; empty: the user may not read it; None: it is not installed."""
    try:
        role: Manifest | None = client.find(requests.CLUSTER_ROLES.path(name=SWEEP_ROLE))
        return role
    except Forbidden:
        return {}


def _image(role: Manifest) -> str:
    """The image that the installation names; else that of the same version as this program."""
    named = (role.get("metadata", {}).get("annotations") or {}).get(DRIVER_IMAGE)
    return str(named or f"{REPOSITORY}:{__version__}")


def _is_bound(client: SyncClient, namespace: str, account: str) -> bool | None:
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    user = {"user": f"system:serviceaccount:{namespace}:{account}", "groups": groups}
    try:
        for group, resource, subresource, verb in NEEDED:
            asked = {"group": group, "resource": resource, "subresource": subresource, "verb": verb}
            spec = {**user, "resourceAttributes": {**asked, "namespace": namespace}}
            body = {"metadata": {"namespace": namespace}, "spec": spec}
            if not client.send(requests.create(REVIEWS.path(namespace), body))["status"]["allowed"]:
                return False
    except Forbidden:
        return None
    return True


def create(client: SyncClient, sweep: SweepObject, pod: DriverPod, say: Say) -> None:
    """The Job, and its ServiceAccount if it is tfyard's own and is missing."""
    namespace = sweep.namespace
    try:
        if pod.account == ACCOUNT:
            _create_account(client, namespace)
        driver = client.send(requests.create(JOBS.path(namespace), manifest(sweep, pod)))
    except Forbidden as problem:
        name = sweep.name
        ways = f"`tfyard resume {name}` tries it again, `tfyard delete {name}` removes it"
        raise TfyardError(f"{granted(problem, namespace, EDIT)}; the sweep is there: {ways}") from None
    say(f"job.batch/{driver['metadata']['name']} created: it drives the sweep")


def _create_account(client: SyncClient, namespace: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
    if not _exists(client, namespace, ACCOUNT):
        try:
            client.send(requests.create(requests.SERVICE_ACCOUNTS.path(namespace), account))
        except AlreadyExists:
            return


def manifest(sweep: SweepObject, pod: DriverPod) -> Manifest:
    labels = {SWEEP: sweep.name}
    container: dict[str, Any] = {
        "name": DRIVER,
        "image": pod.image,
        "command": ["python", "-m", "tfyard.remote.sweeps", sweep.name],
        "resources": RESOURCES,
        "securityContext": {**restricted.CONTAINER, "readOnlyRootFilesystem": True},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    spec = {
        "restartPolicy": "OnFailure",
        "serviceAccountName": pod.account,
        "securityContext": restricted.POD,
        "containers": [container],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "generateName": f"{sweep.name}-{DRIVER}-",
            "labels": labels,
            "ownerReferences": [sweep.owner],
        },
        "spec": {"backoffLimit": RESTARTS, "ttlSecondsAfterFinished": KEPT, "template": template},
    }
