"""`tfyard why` on a cluster that others have set up: without nodes, with owners guarded as OpenShift does it, and
with CRDs that are not tfyard's."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import pytest

from tests.cli.test_describe import allow
from tests.controller.cluster import install, operating
from tests.controller.test_crds import NAME, OLD_NAME, remove, upstreams_definition
from tests.remote.asking import ask, told
from tests.remote.situations import MINUTE, job
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.formats.crd.documents import crds
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.kube import Client, requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, builders, eventually, fixtures

pytestmark = [pytest.mark.cluster, pytest.mark.long]

OPERATOR = "careless-operator"
NO_FINALIZERS = [
    {
        "apiGroups": ["kubeflow.org", "tensorflow.org"],
        "resources": ["tfjobs", "tfjobs/status"],
        "verbs": ["*"],
    },
    {
        "apiGroups": ["", "apps"],
        "resources": ["pods", "services", "configmaps", "deployments", "events"],
        "verbs": ["*"],
    },
]
GUARD = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
LONG = "a" * 60


@pytest.fixture(scope="module")
def foreign(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    try:
        plane = ControlPlane(controllers=("kube-scheduler",), flags={"kube-apiserver": GUARD})
    except MissingBinaries as problem:
        fixtures.missing(request.config, f"no real control plane: {problem}")
    with plane:
        yield plane


@asynccontextmanager
async def new_namespace(plane: ControlPlane) -> AsyncIterator[tuple[Client, str]]:
    async with plane.client() as client:
        yield client, await builders.create_namespace(client)


async def submit(client: Client, namespace: str, manifest: dict[str, Any]) -> None:
    await client.send(requests.create(TFJOBS.path(namespace), manifest))


async def test_a_cluster_without_nodes(foreign: ControlPlane) -> None:
    async with new_namespace(foreign) as (client, namespace):
        await install(client)
        async with operating(client, namespace):
            await submit(client, namespace, job("placed"))
            found = await told(foreign.admin, namespace, "placed", "no-nodes")
    assert found.code == 3
    assert found.sentence == "no node takes worker-0: the cluster has no nodes"
    assert "no nodes available to schedule pods" in found.causes[0].evidence[0].text


async def test_an_operator_that_may_not_own_its_objects(foreign: ControlPlane) -> None:
    async with new_namespace(foreign) as (client, namespace):
        await install(client)
        allow(foreign, namespace, OPERATOR, NO_FINALIZERS)
        async with foreign.client(foreign.access(OPERATOR)) as careless, operating(careless, namespace):
            await submit(client, namespace, job("owned"))
            found = await told(foreign.admin, namespace, "owned", "operator-permission")
    assert found.sentence.endswith("it lacks the permission on tfjobs/finalizers")
    assert "cannot set blockOwnerDeletion" in found.causes[0].evidence[0].text
    assert (found.code, found.causes[0].fix) == (3, "tfyard install")


def without_rules() -> list[dict[str, Any]]:
    """Our definitions in a simplified form."""
    definitions = deepcopy(crds(VERSIONS))
    for definition in definitions:
        for version in definition["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"].pop("x-kubernetes-validations", None)
    return definitions


async def test_a_name_that_is_too_long_for_pods_where_the_crd_does_not_refuse_it(
    foreign: ControlPlane,
) -> None:
    async with new_namespace(foreign) as (client, namespace):
        await builders.install_crds(client, *without_rules())
        async with operating(client, namespace):

            async def accepted() -> None:
                await submit(client, namespace, job(LONG))

            await eventually(accepted)
            found = await told(foreign.admin, namespace, LONG, "invalid-spec")
        await install(client)
    assert f"is too long: the name '{LONG}-worker-0' would have 69 characters" in found.sentence


async def test_the_crd_of_another_operator(foreign: ControlPlane) -> None:
    async with new_namespace(foreign) as (client, namespace):
        for name in (NAME, OLD_NAME):
            await remove(client, name)
        await builders.install_crds(client, upstreams_definition())
        await submit(client, namespace, job("alone"))
        found = await asyncio.to_thread(ask, foreign.admin, namespace, "alone", MINUTE)
    words = f"no operator works on it: the CRD {NAME} is not tfyard's, so tfyard's operator does not start"
    assert (found.code, found.sentence, found.causes[0].fix) == (3, words, "tfyard install")
