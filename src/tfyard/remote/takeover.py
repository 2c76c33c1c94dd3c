"""Other TFJob operators on the cluster: found before ours is installed; told to leave TFJobs alone, if asked."""

from collections.abc import Callable, Iterator

from tfyard.install import kubeflow
from tfyard.install.settings import LABELS, NAME, Settings
from tfyard.kube import Forbidden, NotFound, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest

from .addresses import DEPLOYMENTS, WEBHOOKS, helm_release

Say = Callable[[str], None]


def conflicts(client: SyncClient, settings: Settings, replace_kubeflow: bool) -> Iterator[str]:
    """Why ours must not run here. Two operators on one job would undo each other's work."""
    try:
        deployments = client.send(requests.get(DEPLOYMENTS.path()))["items"]
        webhooks = client.send(requests.get(WEBHOOKS.path()))["items"]
    except Forbidden as refusal:
        yield f"whether another TFJob operator works here cannot be seen: {refusal}"
        return
    for each in deployments:
        namespace, release = each["metadata"]["namespace"], helm_release(each)
        if _is_ours(each) and release:
            yield f"{_named(each)} is Helm's; helm upgrade {release} --namespace {namespace} changes it"
        elif _is_ours(each) and namespace != settings.namespace:
            yield f"tfyard's operator is already installed in the namespace {namespace}"
        elif not _is_ours(each) and not replace_kubeflow and _reconciles(each):
            yield f"{_named(each)} works on TFJobs; --replace-kubeflow makes it leave them to tfyard"
    for each in webhooks:
        if kubeflow.blocks_tfjobs(each) and not replace_kubeflow:
            name = each["metadata"]["name"]
            yield f"the webhook {name} must answer for each TFJob; --replace-kubeflow takes TFJobs out of it"


def replace_kubeflow(client: SyncClient, say: Say) -> None:
    """The webhook first: without its operator it would refuse every TFJob."""
    for each in client.send(requests.get(WEBHOOKS.path()))["items"]:
        if kubeflow.blocks_tfjobs(each):
            _replace_webhooks(client, kubeflow.without_webhooks(each))
            say(f"{each['metadata']['name']}: TFJobs taken out of the webhook")
    plurals = _plurals(client)
    for each in client.send(requests.get(DEPLOYMENTS.path()))["items"]:
        if not _is_ours(each) and _reconciles(each):
            _replace_deployment(client, kubeflow.without_tfjobs(each, plurals))
            say(f"{_named(each)}: told to leave TFJobs alone")


def give_back(client: SyncClient, say: Say) -> None:
    """Undo `replace_kubeflow`; the webhook last, because its operator must run to answer."""
    for each in client.send(requests.get(DEPLOYMENTS.path()))["items"]:
        if (before := kubeflow.with_tfjobs(each)) is not None:
            _replace_deployment(client, before)
            say(f"{_named(each)}: works on TFJobs again")
    for each in client.send(requests.get(WEBHOOKS.path()))["items"]:
        if (before := kubeflow.with_webhooks(each)) is not None:
            _replace_webhooks(client, before)
            say(f"{each['metadata']['name']}: TFJobs put back into the webhook")


def _is_ours(deployment: Manifest) -> bool:
    labels = deployment["metadata"].get("labels") or {}
    return LABELS.items() <= labels.items()


def _reconciles(deployment: Manifest) -> bool:
    is_first = deployment["metadata"]["name"] == NAME  # the operator of 2017 had the same name
    return (is_first or kubeflow.is_kubeflow_operator(deployment)) and kubeflow.reconciles_tfjobs(deployment)


def _named(deployment: Manifest) -> str:
    metadata = deployment["metadata"]
    return f"deployment {metadata['name']} in the namespace {metadata['namespace']}"


def _plurals(client: SyncClient) -> list[str]:
    """The kinds of kubeflow.org/v1 that the cluster has."""
    try:
        found = client.send(requests.get("/apis/kubeflow.org/v1"))
    except NotFound:  # its CRDs are gone already
        return []
    return [each["name"] for each in found["resources"]]


def _replace_deployment(client: SyncClient, changed: Manifest) -> None:
    metadata = changed["metadata"]
    client.send(requests.replace(DEPLOYMENTS.path(metadata["namespace"], metadata["name"]), changed))


def _replace_webhooks(client: SyncClient, changed: Manifest) -> None:
    client.send(requests.replace(WEBHOOKS.path(name=changed["metadata"]["name"]), changed))
