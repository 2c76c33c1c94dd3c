"""The operator never acts on a definition that cannot remember."""

from typing import Any

import pytest

from tfyard.controller import definitions
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
        with pytest.raises(NotFound):
            await client.send(requests.get(requests.CRDS.path(name=NAME)))

    await eventually(gone)


async def test_a_cluster_without_tfjobs_or_with_forgetful_ones_is_refused_until_it_is_upgraded(
    control_plane: ControlPlane,
) -> None:
    async with control_plane.client() as client:
        await remove(client)

        async def none() -> None:
            with pytest.raises(
                definitions.CannotRemember, match="no TFJobs; run tfyard operator --install-crds"
            ):
                await definitions.ready(client, install=False)

        await eventually(none)
        await client.send(requests.create(requests.CRDS.path(), upstreams_definition()))

        async def forgetful() -> None:
            with pytest.raises(definitions.CannotRemember, match=r"would drop .*tasks"):
                await definitions.ready(client, install=False)

        await eventually(forgetful)
        assert len(await definitions.ready(client, install=True)) == 2
