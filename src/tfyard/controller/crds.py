"""The cluster's CRDs of TFJob: installed on request, and refused if they drop what a job's status must remember.

Upstream's CRD prunes the status fields in which this operator remembers restarts and finished tasks. An operator
that wrote them and read back nothing would run finished tasks again.
"""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tfyard import kube
from tfyard.errors import TfyardError
from tfyard.formats.crd.documents import crds, served_by
from tfyard.formats.crd.status import missing_memory
from tfyard.formats.tfjob.versions import SERVED
from tfyard.kube import requests
from tfyard.kube.requests import BOTH_TFJOBS, TFJOBS
from tfyard.model import Manifest

log = logging.getLogger(__name__)

ESTABLISH_TIMEOUT = 60.0
LOGIN_TIMEOUT, RETRY = 30.0, 1.0
"""Seconds. A restarting apiserver rejects all credentials, and a pod may be older than its ServiceAccount."""
PUBLICATION_TIMEOUT = 20.0
"""Seconds. The CRDs are often created together with the operator, and servers publish them a moment later."""
REMEDY = (
    "tfyard operator --install-crds, or: tfyard crds | kubectl apply --server-side --force-conflicts -f -"
)


class CrdNotUsable(TfyardError):
    """The cluster has no CRD of TFJob, or one that drops what a job's status must remember."""


class CrdNotPublished(CrdNotUsable):
    """The server has not published the schema of TFJob yet."""


class CrdForgets(TfyardError):
    """A CRD in use was replaced by one that drops what a job's status must remember."""


@contextmanager
def _expecting(what: str) -> Iterator[None]:
    """A relay, or a server of another kind, may answer in another form: that is no error of this program."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as problem:
        raise kube.Undecodable(f"cannot read {what}: {type(problem).__name__} {problem}", b"") from problem


async def ready(client: kube.Client, *, install: bool, wait: float = 0.0) -> list[kube.Resource]:
    """The resources of jobs that can be used in this cluster; `wait`: seconds to wait for CRDs."""
    started = time.monotonic()
    while True:
        try:
            return await _ready(client, install)
        except kube.Unauthorized as refusal:
            if time.monotonic() - started >= LOGIN_TIMEOUT:
                raise
            log.warning("not authenticated: %s (retrying)", refusal)
        except CrdNotPublished as absence:
            if time.monotonic() - started >= wait:
                raise
            log.info("waiting for the CRDs: %s", absence)
        await asyncio.sleep(RETRY)


async def _ready(client: kube.Client, install: bool) -> list[kube.Resource]:
    if install:
        installed = await _install(client)
        async with asyncio.timeout(ESTABLISH_TIMEOUT):
            await _published(client, installed)
    usable = [resource for resource in BOTH_TFJOBS if await _is_usable(client, resource)]
    if TFJOBS not in usable:
        raise CrdNotPublished(f"this cluster has no TFJobs; run {REMEDY}")
    return usable


async def _install(client: kube.Client) -> list[kube.Resource]:
    """Install the CRDs, with every version that the cluster serves already: jobs and manifests may use it."""
    resources = {f"{resource.plural}.{resource.group}": resource for resource in BOTH_TFJOBS}
    served = {*SERVED, *[version for name in resources for version in await _served(client, name)]}
    definitions = {definition["metadata"]["name"]: definition for definition in crds(served)}
    for name, definition in definitions.items():
        await client.send(requests.apply(requests.CRDS.path(name=name), definition))
        async with asyncio.timeout(ESTABLISH_TIMEOUT):
            await _established(client, name)
        versions = ", ".join(version["name"] for version in definition["spec"]["versions"])
        log.info("installed the CRD %s: %s", name, versions)
    return [resources[name] for name in definitions]


async def _served(client: kube.Client, name: str) -> tuple[str, ...]:
    try:
        return served_by(await client.send(requests.get(requests.CRDS.path(name=name))))
    except kube.NotFound:
        return ()


async def _established(client: kube.Client, name: str) -> None:
    while True:
        crd = await client.send(requests.get(requests.CRDS.path(name=name)))
        conditions = (crd.get("status") or {}).get("conditions") or []
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            return
        await asyncio.sleep(0.2)


async def _published(client: kube.Client, resources: list[kube.Resource]) -> None:
    """Wait until the server publishes a new schema, which happens a moment after it serves the resource."""
    while True:
        try:
            if all([await _is_usable(client, resource) for resource in resources]):
                return
        except CrdNotUsable:
            log.debug("the older definition is still published")
        await asyncio.sleep(0.2)


async def _is_usable(client: kube.Client, resource: kube.Resource) -> bool:
    definition, name = await _definition(client, resource), f"{resource.plural}.{resource.group}"
    if definition is None:
        if await is_served(client, resource):
            raise CrdNotPublished(f"{name} is served, but its schema is not published yet")
        return False
    with _expecting(f"the definition of {name}"):
        missing = missing_memory(definition)
    if missing:
        raise CrdNotUsable(f"{name} would drop {', '.join(missing)}; run {REMEDY}")
    return True


async def published_apis(client: kube.Client) -> dict[str, str]:
    """All API versions of the cluster, such as `apps/v1`, each with a URL that changes with its schema."""
    index = await client.send(requests.get("/openapi/v3"))
    with _expecting("the list of APIs"):
        return {
            path.removeprefix("apis/"): each["serverRelativeURL"] for path, each in index["paths"].items()
        }


async def refuse_forgetful(client: kube.Client, resources: list[kube.Resource]) -> None:
    """Raise CrdForgets if the CRD of a resource in use now drops what a job's status must remember."""
    for resource in resources:
        try:
            await _is_usable(client, resource)
        except CrdNotPublished:
            continue
        except CrdNotUsable as problem:
            raise CrdForgets(str(problem)) from None


async def unserved(client: kube.Client, resources: list[kube.Resource]) -> list[str]:
    """The resources whose CRD is gone, such as `tfjobs.kubeflow.org/v1`."""
    gone = [each for each in resources if not await is_served(client, each)]
    return [f"{each.plural}.{each.group}/{each.version}" for each in gone]


async def is_served(client: kube.Client, resource: kube.Resource) -> bool:
    try:
        api = await client.send(requests.get(f"/apis/{resource.group}/{resource.version}"))
    except kube.NotFound:
        return False
    with _expecting(f"the list of {resource.group}/{resource.version}"):
        return any(each["name"] == resource.plural for each in api["resources"])


async def _definition(client: kube.Client, resource: kube.Resource) -> Manifest | None:
    """The CRD as far as the server publishes it as OpenAPI: reading CRDs needs a cluster-wide permission, which an
    operator of a few namespaces does not have. For a CRD that was just deleted, the document is empty."""
    try:
        published = await client.send(requests.get(f"/openapi/v3/apis/{resource.group}/{resource.version}"))
    except (kube.NotFound, kube.Undecodable):
        return None
    with _expecting(f"the schema of {resource.group}/{resource.version}"):
        for schema in published["components"]["schemas"].values():
            kinds = schema.get("x-kubernetes-group-version-kind") or []
            if any(k["group"] == resource.group and k["kind"] in ("TFJob", "TfJob") for k in kinds):
                has_status = any(path.endswith("/status") for path in published["paths"])
                return _as_definition(resource, schema, has_status)
    return None


def _as_definition(resource: kube.Resource, schema: Any, has_status: bool) -> Manifest:
    version = {"name": resource.version, "served": True, "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"versions": [version | ({"subresources": {"status": {}}} if has_status else {})]}}
