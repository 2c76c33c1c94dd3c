"""Installing the operator on a cluster, and removing it: everything that stands in the way is found first.

Other TFJob operators are configured to leave TFJobs alone, if asked, and get them back when ours is removed.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.formats.crd import documents as crd
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.install import installed as of_installed
from tfyard.install import kubeflow, manifests, roles
from tfyard.install.settings import CONFIG_NAME, LABELS, NAME, Settings
from tfyard.kube import Forbidden, KubeError, NotFound, Refused, Resource, requests
from tfyard.kube.access_reviews import is_allowed, review
from tfyard.kube.requests import DEPLOYMENTS, TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.model.callbacks import Say
from tfyard.model.names import LEASE_NAME
from tfyard.model.permission import Permission
from tfyard.remote.installing import pod_waits
from tfyard.remote.installing.addresses import KINDS, WEBHOOKS, helm_release, named, path_of, title
from tfyard.remote.installing.doctor import has_operator_of_dev, is_ours, minor_version, works_on_tfjobs

OLDEST_MINOR = 30
"""Oldest minor version of Kubernetes 1: the CRDs' rules use `optionalOldSelf`."""
FIELD_MANAGER = "tfyard-install"
STRICT = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
INSTALLED = [kind for kind in KINDS if kind not in ("Namespace", "CustomResourceDefinition")]
"""Kinds of objects that belong to an installation alone."""


class CannotInstall(TfyardError):
    """Carries every reason at once."""

    def __init__(self, reasons: Iterable[str]) -> None:
        super().__init__("nothing was installed:\n" + "\n".join(f"  - {reason}" for reason in reasons))


def run(client: SyncClient, settings: Settings, *, replace_kubeflow: bool, dry_run: bool, say: Say) -> None:
    """Installs the operator. `dry_run`: the server checks everything and stores nothing."""
    settings = with_served_versions(client, settings)
    reasons = [*_reasons(client, settings, replace_kubeflow), *_conflicts(client, settings, replace_kubeflow)]
    if reasons:
        raise CannotInstall(reasons)
    if replace_kubeflow and not dry_run:
        _take_over(client, say)
    objects = [manifests.namespace(settings), *manifests.objects(settings)]
    has_namespace = client.find(path_of(objects[0])) is not None
    for manifest in objects:
        if dry_run and not has_namespace and "namespace" in manifest["metadata"]:
            say(f"{title(manifest)} not checked: the namespace does not exist yet")
        else:
            _apply(client, manifest, dry_run=dry_run)
            say(f"{title(manifest)} serverside-applied{' (server dry run)' if dry_run else ''}")
    if not dry_run:
        _prune(client, objects, say)


def with_installed_settings(
    client: SyncClient, settings: Settings, unset: Collection[str], say: Say
) -> Settings:
    """Keeps what is installed already, of the settings named in `unset`, and says what it keeps."""
    try:
        deployment = client.send(requests.get(DEPLOYMENTS.path(settings.namespace, NAME)))
    except (NotFound, Forbidden):
        return settings  # who may not read Deployments may not install
    if not unset or not is_ours(deployment) or helm_release(deployment):
        return settings
    there = of_installed.of_deployment(deployment, settings)
    with contextlib.suppress(NotFound):
        role = client.send(requests.get(path_of(roles.operator_roles(there)[0])))
        there = replace(there, read_logs=of_installed.reads_logs(role))
    with contextlib.suppress(NotFound):
        config = client.send(requests.get(requests.CONFIG_MAPS.path(settings.namespace, CONFIG_NAME)))
        there = replace(there, cloud=of_installed.cloud_of(config))
        if "cloud" in unset and not there.cloud:
            text = f"configmap {CONFIG_NAME} was edited, and would be lost; --cloud or --reset replaces it"
            raise CannotInstall([text])
    kept = replace(settings, **{name: getattr(there, name) for name in unset})
    if flags := of_installed.flags(kept, settings):
        say(f"kept as installed: {' '.join(flags)} (--reset: the defaults instead)")
    return kept


def with_served_versions(client: SyncClient, settings: Settings) -> Settings:
    """Adds every version that the cluster serves already: there may be jobs and manifests of it."""
    served = {*settings.served}
    for definition in crd.crds(VERSIONS):
        try:
            served |= {*crd.served_by(client.send(requests.get(path_of(definition))))}
        except (NotFound, Forbidden):
            continue  # what may not be read is a reason not to install
    return replace(settings, versions=tuple(name for name in VERSIONS if name in served))


def uninstall(client: SyncClient, *, crds: bool, force: bool, say: Say) -> None:
    """Deletes all with tfyard's labels but the namespace. Jobs and pods stay, and CRDs unless asked for."""
    if crds and not force and (jobs := _jobs(client)):
        cost = "deleting the CRDs deletes them and their pods"
        raise TfyardError(f"nothing was deleted: {jobs} exist, and {cost}; add --force to do that")
    objects = [each for kind in reversed(INSTALLED) for each in installed(client, kind)]
    if not objects:
        _refuse_helm_releases(client)
        say("the operator is not installed here")
    _end_operators(client, objects, say)
    for manifest in objects:
        if manifest["kind"] != "Deployment":
            _delete(client, manifest, say)
    _give_back(client, say)
    if crds:
        for definition in crd.crds(VERSIONS):
            _delete(client, definition, say)


def installed(client: SyncClient, kind: str) -> list[Manifest]:
    """The objects of a kind that `tfyard install` or the manifest has made, in all namespaces; not Helm's."""
    return [each for each in _with_our_labels(client, kind) if not helm_release(each)]


def _with_our_labels(client: SyncClient, kind: str) -> list[Manifest]:
    answer = client.send(requests.get(KINDS[kind].path(), requests.selecting(LABELS)))
    return [{**each, "kind": kind} for each in answer["items"]]


def _refuse_helm_releases(client: SyncClient) -> None:
    """Refuses Helm releases: their objects would go, but Helm would still list the release."""
    commands = [
        f"helm uninstall {release} --namespace {each['metadata']['namespace']}"
        for each in _with_our_labels(client, "Deployment")
        if (release := helm_release(each))
    ]
    if commands:
        raise TfyardError(f"nothing was deleted: Helm installed the operator; run {' and '.join(commands)}")


def _end_operators(client: SyncClient, objects: list[Manifest], say: Say) -> None:
    """Ends operators while they have permissions: they send their last events and release their lease."""
    for manifest in objects:
        if manifest["kind"] == "Deployment":
            _delete(client, manifest, say)
    for manifest in objects:
        if manifest["kind"] == "ServiceAccount":  # deleted last, so it is also there after half an uninstall
            namespace = manifest["metadata"]["namespace"]
            pod_waits.until_pods_are_gone(client, namespace, say)
            with contextlib.suppress(NotFound):
                client.send(requests.delete(requests.LEASES.path(namespace, LEASE_NAME)))


# --- what stands in the way


def _reasons(client: SyncClient, settings: Settings, replace_kubeflow: bool) -> Iterator[str]:
    version = client.send(requests.get("/version"))
    if minor_version(version) < OLDEST_MINOR:
        yield f"this is Kubernetes {version['gitVersion']}; at least 1.{OLDEST_MINOR} is needed"
    needed = [*_needed(settings), *(_NEEDED_TO_REPLACE if replace_kubeflow else ())]
    problems = [f"you may not {each}" for each in needed if not _has(client, each)]
    problems += _absent(client, settings)
    yield from problems or _refused(client, settings)


def _needed(settings: Settings) -> list[Permission]:
    """Permissions to create or change each object, and to know which versions of TFJob are served."""
    objects = [manifests.namespace(settings), *manifests.objects(settings)]
    permissions = {}
    for manifest in objects:
        kind, namespace = KINDS[manifest["kind"]], manifest["metadata"].get("namespace", "")
        permissions[kind, namespace] = Permission(
            kind.group, kind.plural, ("create", "patch"), namespace=namespace
        )
    return [*permissions.values(), Permission(requests.CRDS.group, requests.CRDS.plural, ("get",))]


_NEEDED_TO_REPLACE = [
    *(Permission(each.group, each.plural, ("update",)) for each in (DEPLOYMENTS, WEBHOOKS)),
    Permission("", requests.PODS.plural, ("list",)),
]


def _has(client: SyncClient, permission: Permission) -> bool:
    return all(is_allowed(client.send(review(permission, verb))) for verb in permission.verbs)


def _absent(client: SyncClient, settings: Settings) -> Iterator[str]:
    """Namespaces that do not exist, and namespaces and CRDs that are being deleted, with all that is in them."""
    for namespace in dict.fromkeys((settings.namespace, *settings.namespaces)):
        manifest = manifests.namespace(replace(settings, namespace=namespace))
        try:
            yield from _leaving(client, manifest)
        except NotFound:
            if namespace != settings.namespace:
                fix = f"kubectl create namespace {namespace} creates it"
                yield f"there is no namespace {namespace}; {fix}"
    for definition in crd.crds(settings.served):
        with contextlib.suppress(NotFound):
            yield from _leaving(client, definition)


def _leaving(client: SyncClient, manifest: Manifest) -> Iterator[str]:
    try:
        live = client.send(requests.get(path_of(manifest)))
    except Forbidden:
        return  # a dry run shows whether it can be written
    if "deletionTimestamp" in live["metadata"]:
        yield f"{title(manifest)} is being deleted; install again when it is gone"


def _refused(client: SyncClient, settings: Settings) -> Iterator[str]:
    """Refusals of a dry run: users may grant only what they have, some fields never change, and policies apply."""
    for manifest in manifests.objects(settings):
        try:
            _apply(client, manifest, dry_run=True)
        except NotFound:
            continue  # in a namespace that is about to be created, or of a role that is
        except Refused as refusal:
            is_unknown = (
                "does not support dry run" in refusal.status.message
            )  # a webhook that dry runs do not call
            if not is_unknown:
                yield f"{title(manifest)}: {refusal}"


def _jobs(client: SyncClient) -> str:
    """Text with the number of TFJobs; empty: none."""
    count = 0
    for definition in crd.crds(VERSIONS):
        with contextlib.suppress(NotFound):
            # As the cluster has it: the CRD of another operator may serve other versions.
            spec = client.send(requests.get(path_of(definition)))["spec"]
            served = next(version["name"] for version in spec["versions"] if version["served"])
            count += len(client.send(requests.get(f"/apis/{spec['group']}/{served}/tfjobs"))["items"])
    return f"{count} TFJob{'s' if count > 1 else ''}" if count else ""


# --- other operators


def _conflicts(client: SyncClient, settings: Settings, replace_kubeflow: bool) -> Iterator[str]:
    """Why tfyard's operator must not run here. Two operators on one job would undo each other's work."""
    try:
        deployments = _items(client, DEPLOYMENTS)
        webhooks = _items(client, WEBHOOKS)
    except Forbidden as refusal:
        yield f"whether another TFJob operator works here cannot be seen: {refusal}"
        return
    for each in deployments:
        namespace, release = each["metadata"]["namespace"], helm_release(each)
        if is_ours(each) and release:
            yield f"{named(each)} is Helm's; helm upgrade {release} --namespace {namespace} changes it"
        elif is_ours(each) and namespace != settings.namespace:
            yield f"tfyard's operator is already installed in the namespace {namespace}"
        elif not is_ours(each) and not replace_kubeflow and works_on_tfjobs(each):
            yield f"{named(each)} works on TFJobs; --replace-kubeflow makes it leave them to tfyard"
    if has_operator_of_dev(client):
        yield "`tfyard dev` runs its operator here; `tfyard dev up --no-operator` starts a cluster without it"
    for each in webhooks:
        if kubeflow.blocks_tfjobs(each) and not replace_kubeflow:
            name = each["metadata"]["name"]
            yield f"the webhook {name} must answer for each TFJob; --replace-kubeflow takes TFJobs out of it"


def _take_over(client: SyncClient, say: Say) -> None:
    """Takes TFJobs from other operators: from the webhook first, which would refuse every TFJob without its
    operator. Returns when no pod is left that works on them."""
    for each in _items(client, WEBHOOKS):
        if kubeflow.blocks_tfjobs(each):
            _replace_webhooks(client, kubeflow.without_webhooks(each))
            say(f"{each['metadata']['name']}: TFJobs taken out of the webhook")
    plurals = _plurals(client)
    for each in _items(client, DEPLOYMENTS):
        if not is_ours(each) and works_on_tfjobs(each):
            _replace_deployment(client, kubeflow.without_tfjobs(each, plurals))
            say(f"{named(each)}: configured to ignore TFJobs")
    for each in _items(client, DEPLOYMENTS):
        if kubeflow.with_tfjobs(each) is not None:  # also by an earlier attempt
            pod_waits.until_rolled_out(client, each, say)


def _give_back(client: SyncClient, say: Say) -> None:
    """Undoes `_take_over`; the webhook last, because its operator must run to answer."""
    for each in _items(client, DEPLOYMENTS):
        if (before := kubeflow.with_tfjobs(each)) is not None:
            _replace_deployment(client, before)
            say(f"{named(each)}: works on TFJobs again")
            _restore_state_column(client)
    if any(kubeflow.with_webhooks(each) for each in _items(client, WEBHOOKS)):
        for each in _items(client, DEPLOYMENTS):
            if not is_ours(each) and works_on_tfjobs(each):
                pod_waits.until_rolled_out(client, each, say)
    for each in _items(client, WEBHOOKS):  # again: an operator that starts writes its certificate into them
        if (before := kubeflow.with_webhooks(each)) is not None:
            _replace_webhooks(client, before)
            say(f"{each['metadata']['name']}: TFJobs put back into the webhook")


def _restore_state_column(client: SyncClient) -> None:
    path = requests.CRDS.path(name=f"{TFJOBS.plural}.{TFJOBS.group}")
    with contextlib.suppress(NotFound):
        client.send(requests.replace(path, kubeflow.showing_its_state(client.send(requests.get(path)))))


def _items(client: SyncClient, resource: Resource) -> list[Manifest]:
    return list(client.send(requests.get(resource.path()))["items"])


def _plurals(client: SyncClient) -> list[str]:
    """Plurals of the kinds of kubeflow.org/v1 that the cluster has."""
    try:
        group = client.send(requests.get("/apis/kubeflow.org/v1"))
    except NotFound:  # its CRDs are gone already
        return []
    return [each["name"] for each in group["resources"]]


def _replace_deployment(client: SyncClient, changed: Manifest) -> None:
    metadata = changed["metadata"]
    client.send(requests.replace(DEPLOYMENTS.path(metadata["namespace"], metadata["name"]), changed))


def _replace_webhooks(client: SyncClient, changed: Manifest) -> None:
    client.send(requests.replace(WEBHOOKS.path(name=changed["metadata"]["name"]), changed))


# --- one object


def _apply(client: SyncClient, manifest: Manifest, *, dry_run: bool) -> Any:
    query = {**STRICT, **({"dryRun": "All"} if dry_run else {})}
    request = requests.patch(path_of(manifest), manifest, requests.Patch.APPLY, query)
    try:
        return client.send(request)
    except Refused as refusal:
        if dry_run:
            raise
        raise TfyardError(f"{title(manifest)}: {refusal}") from refusal


def _prune(client: SyncClient, applied: list[Manifest], say: Say) -> None:
    """Deletes what an earlier installation with other settings has left, such as roles in a namespace that is no
    longer among `namespaces`."""
    kept, unseen = {path_of(manifest) for manifest in applied}, list[str]()
    for kind in INSTALLED:
        try:
            objects = installed(client, kind)
        except Forbidden as refusal:
            unseen.append(refusal.status.message)
            continue
        for manifest in (each for each in objects if path_of(each) not in kept):
            _delete(client, manifest, say)
    if unseen:
        say(f"not looked for: what an earlier installation has left ({'; '.join(unseen)})")


def _delete(client: SyncClient, manifest: Manifest, say: Say) -> None:
    try:
        client.send(requests.delete(path_of(manifest), propagation="Background"))
    except NotFound:
        return
    except KubeError as problem:
        raise TfyardError(f"{title(manifest)} was not deleted: {problem}") from problem
    say(f"{title(manifest)} deleted")
