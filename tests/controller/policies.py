"""Admission policies that change the operator's objects when they are created."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import msgspec

from tfyard.kube import Client, Refused, Request, Resource, requests
from tfyard.model import Manifest
from tfyard.testing import builders, eventually

POLICIES = Resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", namespaced=False)
BINDINGS = Resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", namespaced=False)
VALIDATING = Resource(POLICIES.group, "v1", "validatingadmissionpolicies", namespaced=False)
VALIDATING_BINDINGS = Resource(POLICIES.group, "v1", "validatingadmissionpolicybindings", namespaced=False)
PROBES: dict[str, tuple[Resource, Manifest]] = {
    "pods": (requests.PODS, builders.pod("probe")),
    "services": (requests.SERVICES, {"metadata": {"name": "probe"}, "spec": {"ports": [{"port": 80}]}}),
}


@asynccontextmanager
async def changing(
    client: Client,
    namespace: str,
    field: Literal["labels", "annotations"],
    key: str,
    value: str | None = None,
    of: str = "pods",
) -> AsyncIterator[None]:
    """A policy that removes a label or an annotation from each new object, or gives it another value."""
    path = f"/metadata/{field}/{key.replace('/', '~1')}"
    change = (
        f'op: "remove", path: "{path}"'
        if value is None
        else f'op: "replace", path: "{path}", value: "{value}"'
    )
    patch = {"expression": f"[JSONPatch{{{change}}}]"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [of]}
    spec = {
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceRules": [rule],
        },
        "matchConditions": [
            {"name": "has-it", "expression": f"'{key}' in object.metadata.?{field}.orValue({{}})"}
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": patch}],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
    }
    named = {"metadata": {"name": namespace}}
    await client.send(requests.create(POLICIES.path(), {**named, "spec": spec}))
    await client.send(requests.create(BINDINGS.path(), {**named, "spec": {"policyName": namespace}}))
    try:
        await eventually(lambda: becomes(client, namespace, field, key, value, of), 60)
        yield
    finally:
        await client.send(requests.delete(BINDINGS.path(name=namespace)))
        await client.send(requests.delete(POLICIES.path(name=namespace)))
        await eventually(lambda: becomes(client, namespace, field, key, "1", of), 60)


@asynccontextmanager
async def denying_deletes(client: Client, namespace: str) -> AsyncIterator[None]:
    """A policy that denies to delete pods of this namespace."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}
    spec = {
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceRules": [rule],
        },
        "validations": [{"expression": "false", "message": "pods stay"}],
        "failurePolicy": "Fail",
    }
    binding = {"policyName": namespace, "validationActions": ["Deny"]}
    named = {"metadata": {"name": namespace}}
    await client.send(requests.create(VALIDATING.path(), {**named, "spec": spec}))
    await client.send(requests.create(VALIDATING_BINDINGS.path(), {**named, "spec": binding}))
    probe = await client.send(requests.create(requests.PODS.path(namespace), builders.pod("probe")))
    path = requests.PODS.path(namespace, probe["metadata"]["name"])

    async def denied() -> None:
        body = {"dryRun": ["All"], "gracePeriodSeconds": 0}
        try:
            await client.send(Request("DELETE", path, msgspec.json.encode(body)))
        except Refused:
            return
        raise AssertionError("the server does not know the policy yet")

    try:
        await eventually(denied, 60)
        yield
    finally:
        await client.send(requests.delete(VALIDATING_BINDINGS.path(name=namespace)))
        await client.send(requests.delete(VALIDATING.path(name=namespace)))


async def becomes(client: Client, namespace: str, field: str, key: str, value: str | None, of: str) -> None:
    """The server takes a moment to learn its policies."""
    resource, probe = PROBES[of]
    body = {**probe, "metadata": {**probe["metadata"], field: {key: "1"}}}
    made = await client.send(requests.create(resource.path(namespace), body, {"dryRun": "All"}))
    assert made["metadata"].get(field, {}).get(key) == value
