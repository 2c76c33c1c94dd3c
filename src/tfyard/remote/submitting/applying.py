"""Server-side apply of objects of any kind, as the field manager `tfyard`; and what the server's refusals mean."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.install.roles import EDIT
from tfyard.kube import AlreadyExists, Conflict, Forbidden, NotFound, Refused, Resource, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.remote.installing.addresses import KINDS
from tfyard.remote.reading.refusals import missing_right

STRICT = {"fieldManager": requests.FIELD_MANAGER, "fieldValidation": "Strict"}
OF_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
"""Fields of metadata that the server writes."""
KNOWN = {**KINDS, "PersistentVolumeClaim": requests.CLAIMS, "TFJob": TFJOBS}
"""Kinds that jobs come with: the server need not be asked where they are."""

Resources = dict[tuple[str, str], Resource]
"""(apiVersion, kind) -> where such objects are."""


class ApplyOptions(Struct, frozen=True):
    """Like the options of `kubectl apply --server-side`."""

    force_conflicts: bool = False
    dry_run: bool = False
    compares: bool = False
    """Whether objects may be there as they are wanted."""

    @property
    def query(self) -> dict[str, str]:
        force = {"force": "true"} if self.force_conflicts else {}
        return {**STRICT, **force, **({"dryRun": "All"} if self.dry_run else {})}


def find_resources(
    client: SyncClient, manifests: Iterable[Manifest], known: Mapping[str, Resource] = KNOWN
) -> Resources:
    """One request for each version of which a kind is not known. TfyardError if the cluster has no such kind."""
    resources, asked = Resources(), set[str]()
    for manifest in manifests:
        version, kind = str(manifest.get("apiVersion")), str(manifest["kind"])
        resource = known.get(kind)
        if resource is not None and version == "/".join(filter(None, (resource.group, resource.version))):
            resources[version, kind] = resource
        elif version not in asked:
            asked.add(version)
            resources |= _discover(client, version)
        if (version, kind) not in resources:
            hint = "; `tfyard install` installs the operator" if kind == "TFJob" else ""
            raise TfyardError(f"this cluster knows no {kind} of {version}{hint}")
    return resources


def _discover(client: SyncClient, version: str) -> Resources:
    group, _, number = version.rpartition("/")
    try:
        listed = client.send(requests.get(f"/apis/{version}" if group else f"/api/{version}"))["resources"]
    except NotFound:
        return {}
    return {
        (version, each["kind"]): Resource(group, number, each["name"], each["namespaced"])
        for each in listed
        if "/" not in each["name"]
    }


def apply(client: SyncClient, resource: Resource, manifest: Manifest, how: ApplyOptions) -> Manifest:
    """The object as the server has it now, or a TfyardError with what to do."""
    path = _path(resource, manifest)
    try:
        answer: Manifest = client.send(requests.patch(path, manifest, requests.Patch.APPLY, how.query))
        return answer
    except Refused as refusal:
        if isinstance(refusal, Conflict) and _owners(refusal).keys() == {requests.FIELD_MANAGER}:
            # `tfyard scale` and `tfyard stop` wrote it, which the server takes for another writer of our name.
            return apply(client, resource, manifest, replace(how, force_conflicts=True))
        raise explained(resource, manifest, refusal) from refusal


def stored_object(client: SyncClient, resource: Resource, manifest: Manifest) -> Manifest | None:
    """The object of this name; None: there is none, or the user may not read it."""
    try:
        answer: Manifest = client.send(requests.get(_path(resource, manifest)))
        return answer
    except Refused:
        return None


def content(manifest: Manifest) -> Manifest:
    """The object without what the server and controllers write, which may change at any time."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in OF_SERVER}
    return {**{key: value for key, value in manifest.items() if key != "status"}, "metadata": metadata}


def create(client: SyncClient, resource: Resource, manifest: Manifest, how: ApplyOptions) -> bool:
    """Creates an object; False: one of that name exists, and is left as it is."""
    namespace = manifest["metadata"].get("namespace", "")
    query = {key: value for key, value in how.query.items() if key != "force"}
    try:
        client.send(requests.create(resource.path(namespace), manifest, query))
    except AlreadyExists:
        return False
    except Refused as refusal:
        raise explained(resource, manifest, refusal) from refusal
    return True


def title(resource: Resource, manifest: Manifest) -> str:
    """Name of an object, as kubectl writes it: tfjob.kubeflow.org/mnist."""
    group = f".{resource.group}" if resource.group else ""
    return f"{str(manifest['kind']).lower()}{group}/{manifest['metadata']['name']}"


def _path(resource: Resource, manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return resource.path(metadata.get("namespace", ""), metadata["name"])


def explained(resource: Resource, manifest: Manifest, refusal: Refused) -> TfyardError:
    name = title(resource, manifest)
    if isinstance(refusal, Conflict) and _owners(refusal):
        owners = "; ".join(f"{owner} owns {', '.join(names)}" for owner, names in _owners(refusal).items())
        fix = "leave them out of the file, or `tfyard submit --force-conflicts` takes them over"
        return TfyardError(f"{name}: {owners}; {fix}")
    if isinstance(refusal, NotFound) and resource == TFJOBS and _is_unknown(refusal):
        return TfyardError("this cluster does not serve TFJobs; `tfyard install` installs the operator")
    namespace = manifest["metadata"].get("namespace", "")
    if isinstance(refusal, Forbidden) and (right := missing_right(refusal, namespace, EDIT)):
        return TfyardError(right)
    return TfyardError(f"{name}: {refusal.status.message or refusal}")


def _owners(conflict: Conflict) -> dict[str, list[str]]:
    """Owner -> its fields that conflict."""
    fields: dict[str, list[str]] = {}
    for cause in (conflict.status.details or {}).get("causes") or []:
        if cause.get("reason") == "FieldManagerConflict":
            owner = re.search(r'conflict with "([^"]+)"', str(cause.get("message")))
            fields.setdefault(owner[1] if owner else "another manager", []).append(str(cause.get("field")))
    return fields


def _is_unknown(refusal: NotFound) -> bool:
    """Whether the kind is unknown, not the namespace."""
    return (refusal.status.details or {}).get("kind") != "namespaces"
