"""The ConfigMaps and Secrets that a pod refers to, read from the API."""

from collections.abc import Iterator
from typing import Any

from tfyard.kube import Client, NotFound, requests
from tfyard.node.containers import Objects, collect

_RESOURCES = {
    "configMapRef": requests.CONFIG_MAPS,
    "configMapKeyRef": requests.CONFIG_MAPS,
    "configMap": requests.CONFIG_MAPS,
    "secretRef": requests.SECRETS,
    "secretKeyRef": requests.SECRETS,
    "secret": requests.SECRETS,
}


async def fetch(client: Client, namespace: str, *parts: Any) -> Objects:
    """Those that parts of the pod's manifest name; what does not exist is left out."""
    wanted = {path for part in parts for path in _paths(part, namespace)}
    found = []
    for path in sorted(wanted):
        try:
            found.append(await client.send(requests.get(path)))
        except NotFound:
            continue  # optional, or an error that names it where it is used
    return collect(found)


def _paths(part: Any, namespace: str) -> Iterator[str]:
    if isinstance(part, list):
        for each in part:
            yield from _paths(each, namespace)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in _RESOURCES and isinstance(value, dict):
                yield _RESOURCES[key].path(namespace, str(value.get("name") or value.get("secretName") or ""))
            yield from _paths(value, namespace)
