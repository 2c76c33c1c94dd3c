"""Checks whether the apiserver accepts an object, by a dry run that stores nothing."""

from typing import Any

from tfyard.kube import Client, Resource, Unprocessable, requests
from tfyard.kube.errors import ErrorStatus

# Strict: a misspelt or misplaced field is refused; by default it is dropped with a warning.
STRICT_DRY_RUN = {"dryRun": "All", "fieldValidation": "Strict"}


async def accept(client: Client, manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The object as the server would store it; raises the server's error if it refuses the object."""
    resource = await find_resource(client, manifest["apiVersion"], manifest["kind"])
    path = resource.path(manifest["metadata"].get("namespace") or namespace)
    stored: dict[str, Any] = await client.send(requests.create(path, manifest, STRICT_DRY_RUN))
    return stored


async def find_resource(client: Client, api_version: str, kind: str) -> Resource:
    """The resource of a kind, by discovery as in kubectl: plurals cannot be guessed (endpoints, podmetrics, …)."""
    group, _, version = api_version.rpartition("/")
    root = f"/apis/{api_version}" if group else f"/api/{version}"
    served = await client.send(requests.get(root))
    for entry in served["resources"]:
        if entry["kind"] == kind and "/" not in entry["name"]:
            return Resource(group, version, entry["name"], entry["namespaced"])
    raise Unprocessable(ErrorStatus(422, "Invalid", f"{api_version} serves no {kind}"))
