"""`tfyard why` of images that cannot be pulled, by what the registry, the way to it or the kubelet says."""

from collections.abc import Iterator

import pytest
from msgspec import Struct

from tests.cluster.clusters import Cluster, Registry
from tests.cluster.troubles import Situation, Troubles
from tfyard.model import Manifest
from tools.node import UNREACHABLE

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.usefixtures("registry")]


class Pull(Struct, frozen=True, kw_only=True):
    name: str
    image: str
    words: str
    fix: str
    status: int = 0
    """With which the registry refuses it."""
    pod: Manifest = {}
    container: Manifest = {}

    @property
    def situation(self) -> Situation:
        words = f"worker-0 cannot pull {self.image}: {self.words}"
        container = {"image": self.image, **self.container}
        return Situation(
            name=self.name,
            kind="image-pull",
            code=3,
            words=words,
            fix=self.fix,
            container=container,
            pod=self.pod,
        )


NO_LOGIN = "the registry wants a login that the pod does not have"
LOGIN = "TFJob: `imagePullSecrets: [{name: NAME}]` in the `spec:` of the pod template"
HUB = {"imagePullSecrets": [{"name": "hub"}]}
PULLS = (
    Pull(name="unauthorized", image="pulls/unauthorized:1", status=401, words=NO_LOGIN, fix=LOGIN),
    Pull(name="forbidden", image="pulls/forbidden:1", status=403, words=NO_LOGIN, fix=LOGIN),
    Pull(name="secretless", image="pulls/secretless:1", status=401, pod=HUB,
         words=f"{NO_LOGIN}; there is no Secret hub in namespace", fix="create secret docker-registry hub"),
    Pull(name="absent", image="pulls/absent:1", status=404, words="the registry does not have it",
         fix="check the name and the tag"),
    Pull(name="limited", image="pulls/limited:1", status=429, words="the registry's rate limit is reached",
         fix=LOGIN),
    Pull(name="broken", image="pulls/broken:1", status=500, words="the registry answers with an error",
         fix="ask the registry's administrator"),
    Pull(name="unreachable", image=f"{UNREACHABLE}/train:1", words="the registry cannot be reached from the node",
         fix="check the host of the registry"),
    Pull(name="never", image="pulls/never:1", words="it is not on the node, and imagePullPolicy is Never",
         fix="imagePullPolicy: IfNotPresent", container={"imagePullPolicy": "Never"}),
)  # fmt: skip


@pytest.fixture(scope="module")
def pulling(
    registry: Registry, _cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Troubles]:
    for pull in PULLS:
        if pull.status:
            registry.refuse(pull.image, pull.status)
    with Troubles.own(_cluster, tmp_path_factory.mktemp("pulls")) as troubles:
        troubles.create(*(pull.situation.manifest() for pull in PULLS))
        yield troubles


@pytest.mark.parametrize("pull", PULLS, ids=lambda each: str(each.name))
def test_a_pull_that_fails_is_explained_by_its_reason(pulling: Troubles, pull: Pull) -> None:
    pulling.until_told(pull.situation)
