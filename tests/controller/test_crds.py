"""The operator never acts on a definition that cannot remember."""

import re
from typing import Any

import pytest

from tfyard.controller import crds
from tfyard.kube import Client, NotFound, requests
from tfyard.testing import ControlPlane, eventually

pytestmark = pytest.mark.cluster

NAME = "tfjobs.kubeflow.org"


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


async def remove(client: Client) -> None:
    try:
        await client.send(requests.delete(requests.CRDS.path(name=NAME)))
    except NotFound:
        return

    async def gone() -> None:
        try:
            await client.send(requests.get(requests.CRDS.path(name=NAME)))
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
        await remove(client)

        await eventually(lambda: objects(client, "no TFJobs; run tfyard operator --install-crds"))
        await client.send(requests.create(requests.CRDS.path(), upstreams_definition()))

        await eventually(lambda: objects(client, r"would drop .*tasks"))
        assert len(await crds.ready(client, install=True)) == 2
