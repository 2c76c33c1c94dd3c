"""Small valid objects for tests, the requests that most cluster tests begin with, and waiting for a result."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from tfyard.formats.crd.documents import crds
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.kube import AlreadyExists, Client, KubeError, Resource, requests

T = TypeVar("T")


async def create_namespace(client: Client, prefix: str = "test") -> str:
    """A namespace in which pods can be created at once: with the default ServiceAccount, without which admission
    refuses pods. Otherwise a controller creates it, which may not run in a test."""
    name = f"{prefix}-{secrets.token_hex(4)}"
    await client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": name}}))
    await create_service_account(client, name, "default")
    return name


async def create_service_account(client: Client, namespace: str, name: str) -> None:
    account = {"metadata": {"name": name}}
    try:
        await client.send(requests.create(requests.SERVICE_ACCOUNTS.path(namespace), account))
    except AlreadyExists:
        return  # a controller-manager was faster


async def service_account_token(client: Client, namespace: str, name: str, seconds: int = 600) -> str:
    """A token of a ServiceAccount, as the kubelet projects one into a pod; the API's minimum is ten minutes."""
    path = requests.SERVICE_ACCOUNTS.path(namespace, name, "token")
    answer = await client.send(requests.create(path, {"spec": {"expirationSeconds": seconds}}))
    return str(answer["status"]["token"])


def pod(
    name: str, labels: dict[str, str] | None = None, restart: str = "Never", **spec: Any
) -> dict[str, Any]:
    container = {"name": "tensorflow", "image": "registry.example/train:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"restartPolicy": restart, "containers": [container], **spec},
    }


def config_map(name: str, data: dict[str, str] | None = None) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {}}


async def install_crds(client: Client, *definitions: dict[str, Any]) -> None:
    """Install CRDs, by default TFJob in all its versions, and wait until every version is served."""
    for definition in definitions or crds(VERSIONS):
        name, spec = definition["metadata"]["name"], definition["spec"]
        await client.send(requests.apply(requests.CRDS.path(name=name), definition))
        for version in spec["versions"]:
            resource = Resource(spec["group"], version["name"], spec["names"]["plural"])
            await eventually(partial(client.send, requests.get(resource.path(), {"limit": "1"})))
            await eventually(partial(_discover, client, resource))


async def _discover(client: Client, resource: Resource) -> None:
    """Assert that discovery has the resource: it is updated a moment after the resource is served."""
    api = await client.send(requests.get(f"/apis/{resource.group}/{resource.version}"))
    assert resource.plural in {each["name"] for each in api["resources"]}


async def eventually(look: Callable[[], Awaitable[T]], timeout: float = 60.0) -> T:
    """Call `look` until it neither fails an assertion nor is refused, and return its result; its last error is
    raised after the timeout. The apiserver's caches (RBAC, quotas, watches) lag behind by up to a second."""
    end = time.monotonic() + timeout
    while True:
        try:
            return await look()
        except (AssertionError, KubeError):
            if time.monotonic() > end:
                raise
        await asyncio.sleep(0.02)
