"""The operator never uses a CRD that drops what a job's status must remember."""

import asyncio
import re
from collections.abc import Iterable
from typing import Any

import pytest

from tests.controller.cluster import install
from tfyard.controller import crds
from tfyard.formats.crd.documents import crds as definitions
from tfyard.formats.crd.documents import served_by
from tfyard.formats.tfjob.versions import SERVED, VERSIONS
from tfyard.kube import Client, NotFound, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.testing import ControlPlane, builders, eventually

pytestmark = pytest.mark.cluster

NAME, OLD_NAME = "tfjobs.kubeflow.org", "tfjobs.tensorflow.org"


def upstreams_definition() -> dict[str, Any]:
    """As upstream's: a status of its own fields only, which is what makes the server drop ours."""
    status = {"type": "object", "properties": {"startTime": {"type": "string"}}}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": "TFJob", "plural": "tfjobs", "singular": "tfjob"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": "kubeflow.org", "names": names, "scope": "Namespaced", "versions": [version]},
    }


async def remove(client: Client, name: str) -> None:
    try:
        await client.send(requests.delete(requests.CRDS.path(name=name)))
    except NotFound:
        return

    async def gone() -> None:
        try:
            await client.send(requests.get(requests.CRDS.path(name=name)))
        except NotFound:
            return
        raise AssertionError("its jobs are still being deleted")

    await eventually(gone)


async def objects(client: Client, words: str) -> None:
    """For `eventually`, which does not take the failure of `pytest.raises` for an objection."""
    said = "nothing: it is content"
    try:
        await crds.ready(client, install=False)
    except crds.CrdNotUsable as problem:
        said = str(problem)
    assert re.search(words, said)


async def test_a_cluster_without_tfjobs_or_with_forgetful_ones_is_refused_until_it_is_upgraded(
    control_plane: ControlPlane,
) -> None:
    async with control_plane.client() as client:
        for name in (NAME, OLD_NAME):
            await remove(client, name)

        await eventually(lambda: objects(client, "no TFJobs; run tfyard operator --install-crds"))
        await client.send(requests.create(requests.CRDS.path(), upstreams_definition()))

        await eventually(lambda: objects(client, r"would drop .*tasks"))
        await crds.ready(client, install=True)
        await eventually(lambda: serves(client, SERVED))
        await install(client)  # other tests use the older versions


async def test_a_start_waits_for_definitions_that_are_installed_at_the_same_time(
    control_plane: ControlPlane,
) -> None:
    async with control_plane.client() as client:
        for name in (NAME, OLD_NAME):
            await remove(client, name)
        await eventually(lambda: objects(client, "no TFJobs"))
        starting = asyncio.create_task(crds.ready(client, install=False, wait=60.0))
        # The old one first: an operator cannot know that another definition will come.
        await builders.install_crds(client, *reversed(definitions(VERSIONS)))
        assert await starting == [TFJOBS, OLD_TFJOBS]


async def serves(client: Client, versions: Iterable[str]) -> None:
    """What is installed, and what the operator would watch."""
    found: list[str] = []
    for resource in await crds.ready(client, install=False):
        path = requests.CRDS.path(name=f"{resource.plural}.{resource.group}")
        found += served_by(await client.send(requests.get(path)))
    assert found == list(versions)


async def test_versions_that_a_cluster_serves_already_stay(control_plane: ControlPlane) -> None:
    async with control_plane.client() as client:
        await install(client)
        assert await crds.ready(client, install=True) == [TFJOBS, OLD_TFJOBS]
        await serves(client, VERSIONS)


async def test_a_definition_that_was_just_deleted_is_not_used(control_plane: ControlPlane) -> None:
    """For a moment, the server publishes an empty document in place of its schema."""
    async with control_plane.client() as client:
        await install(client)
        await eventually(lambda: serves(client, VERSIONS))
        await remove(client, OLD_NAME)
        assert await crds.ready(client, install=False) == [TFJOBS]
        await install(client)  # other tests use it
