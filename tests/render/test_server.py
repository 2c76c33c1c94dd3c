"""A real apiserver accepts everything that is rendered: with strict validation, as a dry run."""

import pytest

from tests.render.everything import rendered
from tfyard.controller import crds
from tfyard.kube import AlreadyExists, Client, requests
from tfyard.testing import ControlPlane, acceptance, eventually

pytestmark = pytest.mark.cluster


async def test_every_object_of_every_example_is_accepted_by_a_strict_dry_run(
    control_plane: ControlPlane, namespace: str
) -> None:
    objects = [(words, manifest) for words, manifests in rendered().items() for manifest in manifests]
    async with control_plane.client() as client:
        await crds.ready(client, install=True)
        await eventually(lambda: acceptance.find_resource(client, "kubeflow.org/v1", "TFJob"))
        await _make_namespaces(
            client, {str(manifest["metadata"].get("namespace") or namespace) for _, manifest in objects}
        )
        refused = [
            answer
            for words, manifest in objects
            if (answer := await _answer(client, words, manifest, namespace))
        ]
    assert refused == []
    assert len(objects) > 200


async def _make_namespaces(client: Client, names: set[str]) -> None:
    for name in names:
        try:
            await client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": name}}))
        except AlreadyExists:
            continue


async def _answer(client: Client, words: str, manifest: dict[str, object], namespace: str) -> str:
    try:
        await acceptance.accept(client, manifest, namespace)
    except AlreadyExists:
        return ""  # a namespace that stands in the file and was made above
    except Exception as error:  # noqa: BLE001 - whatever is said belongs into the report of the test
        return f"{words}: {manifest['kind']} {manifest['metadata']}: {error}"
    return ""
