"""The server's own judgement on manifests, by strict dry run.

The place for every object that `tfyard render` makes for every example: add them to MANIFESTS, one entry per
object, once rendering exists.
"""

from typing import Any

import pytest

from tfyard import kube
from tfyard.kube import requests
from tfyard.testing import ControlPlane, acceptance, builders

pytestmark = pytest.mark.cluster

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {"template": {"spec": builders.pod("x")["spec"]}},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "machine"}}
MANIFESTS: list[dict[str, Any]] = [builders.pod("worker-0"), builders.config_map("words"), JOB, NODE]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: str(manifest["kind"]))
async def test_the_server_accepts_every_manifest_and_keeps_none(
    control_plane: ControlPlane, namespace: str, manifest: dict[str, Any]
) -> None:
    async with control_plane.client() as client:
        stored = await acceptance.accept(client, manifest, namespace)
        resource = await acceptance.find_resource(client, manifest["apiVersion"], manifest["kind"])
        with pytest.raises(kube.NotFound):
            await client.send(requests.get(resource.path(namespace, manifest["metadata"]["name"])))
    assert stored["metadata"]["uid"]


async def test_a_misspelt_field_is_refused(control_plane: ControlPlane, namespace: str) -> None:
    async with control_plane.client() as client:
        with pytest.raises(kube.Refused, match="unknown field"):
            await acceptance.accept(client, builders.pod("worker-0", restartpolicy="Never"), namespace)


async def test_a_kind_that_is_not_served_is_named(control_plane: ControlPlane, namespace: str) -> None:
    async with control_plane.client() as client:
        with pytest.raises(kube.Unprocessable, match="v1 serves no Unicorn"):
            await acceptance.find_resource(client, "v1", "Unicorn")
