"""Checks of a cluster for `doctor`, one after the other. A list that may not be read is a finding, too."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

from msgspec.structs import replace

from tfyard.install import kubeflow
from tfyard.install.settings import LABELS, NAME
from tfyard.kube import Forbidden, Kind, KubeError, NotFound, Resource, requests, sync_lists
from tfyard.kube.access_reviews import is_allowed, review
from tfyard.kube.requests import DEPLOYMENTS, OLD_TFJOBS, TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.model.names import BOX_OPERATOR, LEASE_NAME
from tfyard.model.permission import Permission
from tfyard.overview import doctor, nodes
from tfyard.overview.causes import no_operator
from tfyard.overview.doctor import Finding
from tfyard.overview.nodes import NodeUse
from tfyard.remote.installing.addresses import KINDS, WEBHOOKS
from tfyard.remote.reading.views import list_pods
from tfyard.views.objects import SERVICE_NAME, Lease, NodeView, Quota, Slice, StorageClass
from tfyard.views.pods import PodDetails

DNS_SERVICES = ("kube-dns", "dns-default", "rke2-coredns-rke2-coredns")
"""Names of the DNS Service in most clusters, in OpenShift and in RKE2."""
WHO_AM_I = requests.create(
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
)
RIGHTS = {
    "list jobs": Permission("kubeflow.org", "tfjobs", ("list",)),
    "submit jobs": Permission("kubeflow.org", "tfjobs", ("create",)),
    "change jobs": Permission("kubeflow.org", "tfjobs", ("patch",)),
    "delete jobs": Permission("kubeflow.org", "tfjobs", ("delete",)),
    "see pods": Permission("", "pods", ("list",)),
    "read logs": Permission("", "pods", ("get",), "log"),
    "see events": Permission("", "events", ("list",)),
    "forward ports": Permission("", "pods", ("create",), "portforward"),
    "open shells": Permission("", "pods", ("create",), "exec"),
    "copy results": Permission("", "pods", ("create",)),
}
"""Actions of users -> a permission that each needs."""
WEBSOCKETS = ("exec", "portforward")
CREATE_OPENS = 35
"""Minor version of Kubernetes 1 since which a WebSocket asks for `create`; before, it asks for `get`, too."""

REPLACE = "`tfyard install --replace-kubeflow`"
NO_TFJOBS = Finding("wrong", "crd", "the cluster does not serve TFJobs", "`tfyard install`")

SLICES = Kind(Slice)
Look = Callable[[SyncClient], Iterator[Finding]]


def examine(client: SyncClient) -> Iterator[Finding]:
    """Yields finding by finding, so that progress is seen. Raises if the server cannot be reached."""
    yield doctor.version(client.send(requests.get("/version")), client.access.cluster.server)
    for subject, look in LOOKS.items():
        try:
            yield from look(client)
        except Forbidden as problem:
            yield Finding("warning", subject, f"may not be seen: {problem.status.message}")
        except KubeError as problem:
            yield Finding("wrong", subject, str(problem))


def _definitions(client: SyncClient) -> Iterator[Finding]:
    try:
        yield _definition(
            client.send(requests.get(requests.CRDS.path(name=f"{TFJOBS.plural}.{TFJOBS.group}")))
        )
    except NotFound:
        yield NO_TFJOBS
    except Forbidden:
        yield _discovered(client)
    with suppress(NotFound, Forbidden):  # few clusters have it
        old = client.send(requests.get(requests.CRDS.path(name=f"{OLD_TFJOBS.plural}.{OLD_TFJOBS.group}")))
        yield _definition(old, OLD_TFJOBS)


def _definition(crd: Manifest, resource: Resource = TFJOBS) -> Finding:
    """A definition that is not established stops the operator."""
    name, finding = crd["metadata"]["name"], doctor.definition(crd)
    if "deletionTimestamp" in crd["metadata"]:
        fix = "when it is gone, `tfyard install`; objects with finalizers delay it"
        return Finding("wrong", "crd", f"{name} is being deleted, with all its jobs", fix)
    conditions = (crd.get("status") or {}).get("conditions") or []
    needed = [each for each in conditions if each["type"] in ("NamesAccepted", "Established")]
    refused = [each.get("message", "") for each in needed if each["status"] == "False"]
    if refused:
        return Finding("wrong", "crd", f"{name} does not work: {refused[0]}", "`tfyard install`")
    if all(each["name"] != resource.version for each in crd["spec"]["versions"] if each.get("served")):
        return Finding(
            "wrong", "crd", f"{finding.text}; {resource.version} is not served", "`tfyard install`"
        )
    return finding


def _discovered(client: SyncClient) -> Finding:
    """Looks for TFJobs by discovery, which every user may read. The group has many other kinds."""
    try:
        resources = client.send(requests.get(f"/apis/{TFJOBS.group}/{TFJOBS.version}"))["resources"]
    except NotFound:
        return NO_TFJOBS
    if all(each["name"] != TFJOBS.plural for each in resources):
        return NO_TFJOBS
    text = f"{TFJOBS.group}/{TFJOBS.version} has TFJobs; their definition may not be read"
    return Finding("ok", "crd", text)


def operators(client: SyncClient) -> Iterator[Finding]:
    deployments = _items(client, DEPLOYMENTS)
    ours = [each for each in deployments if is_ours(each)]
    others = [each for each in deployments if each not in ours and works_on_tfjobs(each)]
    if not ours and not others:
        if has_operator_of_dev(client):
            yield Finding("ok", "operator", "the one of `tfyard dev`")
        else:
            yield Finding("wrong", "operator", "no operator works on TFJobs here", "`tfyard install`")
    yield from map(_operator, ours)
    for each in others:
        text = f"{_named(each)} works on TFJobs{', too' if ours else ''}"
        yield Finding("wrong" if ours else "ok", "operator", text, REPLACE if ours else "")


def has_operator_of_dev(client: SyncClient) -> bool:
    """Whether `tfyard dev` runs its one operator here: it is outside of the cluster, and restarted if it ends."""
    try:
        client.send(requests.get(KINDS["ClusterRole"].path(name=BOX_OPERATOR)))
    except (NotFound, Forbidden):
        return False
    return True


def _operator(deployment: Manifest) -> Finding:
    replicas, status = deployment["spec"].get("replicas", 1), deployment.get("status") or {}
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    text = f"{_named(deployment)}: {status.get('readyReplicas', 0)} of {replicas} ready, {image}"
    unready = no_operator.not_ready(deployment)
    if unready is None:
        return Finding("ok", "operator", text)
    words, fix = unready
    return Finding("wrong", "operator", f"{text}: {words}", f"`{fix}`" + (" says why" if replicas else ""))


def minor_version(version: Manifest) -> int:
    """The minor version of Kubernetes 1 in an answer of /version; some distributions append a `+`."""
    return int("".join(filter(str.isdigit, version["minor"])) or 0)


def is_ours(deployment: Manifest) -> bool:
    return LABELS.items() <= (deployment["metadata"].get("labels") or {}).items()


def works_on_tfjobs(deployment: Manifest) -> bool:
    """Whether a Deployment that is not tfyard's works on TFJobs."""
    is_first = deployment["metadata"]["name"] == NAME  # the operator of 2017 had the same name
    return (is_first or kubeflow.is_kubeflow_operator(deployment)) and kubeflow.reconciles_tfjobs(deployment)


def _webhooks(client: SyncClient) -> Iterator[Finding]:
    for each in _items(client, WEBHOOKS):
        if kubeflow.blocks_tfjobs(each):
            text = f"the webhook {each['metadata']['name']} must answer before a TFJob is stored"
            fix = f"without its operator it refuses every TFJob: {REPLACE}"
            yield Finding("warning", "webhook", text, fix)


def _leader(client: SyncClient) -> Iterator[Finding]:
    of = requests.selecting(fields={"metadata.name": LEASE_NAME})
    leases = sync_lists.list_all(client, Kind(Lease), requests.LEASES.path(), of)
    if not leases and has_operator_of_dev(client):
        yield Finding("ok", "leader", "the operator of `tfyard dev` is the only one")
    else:
        yield doctor.lease(leases, datetime.now(UTC))


def _rights(client: SyncClient) -> Iterator[Finding]:
    user = client.send(WHO_AM_I)["status"]["userInfo"]["username"]
    namespace, allowed = client.access.namespace, dict[str, bool]()
    opens_by_get = minor_version(client.send(requests.get("/version"))) < CREATE_OPENS
    for action, permission in RIGHTS.items():
        asked = replace(permission, namespace=namespace)
        verbs = ("get", *asked.verbs) if opens_by_get and asked.subresource in WEBSOCKETS else asked.verbs
        allowed[action] = all(is_allowed(client.send(review(asked, verb))) for verb in verbs)
    yield doctor.rights(user, namespace, allowed)


def _nodes(client: SyncClient) -> Iterator[Finding]:
    listed = _list_nodes(client)
    yield doctor.nodes(listed)
    yield doctor.gpus(listed, _pods_on_nodes(client))


def node_uses(client: SyncClient) -> list[NodeUse]:
    """What each node has and what is asked of it."""
    return nodes.uses(_list_nodes(client), _pods_on_nodes(client))


def _list_nodes(client: SyncClient) -> list[NodeView]:
    return sync_lists.list_all(client, Kind(NodeView), requests.NODES.path())


def _pods_on_nodes(client: SyncClient) -> list[PodDetails] | None:
    """Pods of all namespaces that have a node and have not ended; None: they may not be listed."""
    running = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="}
    try:
        return list_pods(client, "", running)
    except Forbidden:
        return None


def _storage(client: SyncClient) -> Iterator[Finding]:
    yield doctor.storage(sync_lists.list_all(client, Kind(StorageClass), requests.STORAGE_CLASSES.path()))


def _dns(client: SyncClient) -> Iterator[Finding]:
    of = {"labelSelector": f"{SERVICE_NAME} in ({','.join(DNS_SERVICES)})"}
    try:
        slices = sync_lists.list_all(client, SLICES, requests.ENDPOINT_SLICES.path(), of)
    except Forbidden:
        slices = sync_lists.list_all(client, SLICES, requests.ENDPOINT_SLICES.path("kube-system"), of)
    if not slices and has_operator_of_dev(client):
        yield Finding(
            "ok", "dns", "`tfyard dev` writes the names of tasks and Services into each pod's hosts file"
        )
    else:
        yield doctor.dns(slices)


def _quotas(client: SyncClient) -> Iterator[Finding]:
    quotas = sync_lists.list_all(client, Kind(Quota), requests.QUOTAS.path(client.access.namespace))
    yield from doctor.quotas(quotas)
    if not quotas:
        yield Finding("ok", "quota", f"the namespace {client.access.namespace} has no quota")


LOOKS: dict[str, Look] = {
    "crd": _definitions,
    "operator": operators,
    "webhook": _webhooks,
    "leader": _leader,
    "rights": _rights,
    "nodes": _nodes,
    "storage": _storage,
    "dns": _dns,
    "quota": _quotas,
}


def _items(client: SyncClient, resource: Resource) -> list[Manifest]:
    items: list[Manifest] = client.send(requests.get(resource.path()))["items"]
    return items


def _named(deployment: Manifest) -> str:
    return f"{deployment['metadata']['name']} in the namespace {deployment['metadata']['namespace']}"
