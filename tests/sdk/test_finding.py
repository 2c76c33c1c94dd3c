"""Which job a name means, on the real API server."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.test_get import tfjob
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.sdk import finding
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster


def attempt(name: str, trial: str, owner: dict[str, Any]) -> dict[str, Any]:
    job = tfjob(name, **{"tfyard.dev/sweep": "s", "tfyard.dev/trial": trial})
    metadata = owner["metadata"]
    of = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
    return {**job, "metadata": {**job["metadata"], "ownerReferences": [of]}}


@pytest.fixture
def sweeps(control_plane: ControlPlane, crds: None, namespace: str) -> str:
    """The namespace of trials of a sweep, and of one before it, whose trials are not gone yet."""
    with SyncClient(control_plane.admin) as client:
        sweep, old = (
            client.send(requests.create(requests.CONFIG_MAPS.path(namespace), {"metadata": {"name": name}}))
            for name in ("s", "old")
        )
        trials = [attempt(name, "1", sweep) for name in ("s-001", "s-001-10", "s-001-2")]
        others = [attempt("s-002", "2", sweep), tfjob("s-002-2"), attempt("s-003", "3", sweep)]
        for each in (*trials, *others, attempt("s-003-2", "3", old)):
            client.send(requests.create(TFJOBS.path(namespace), each))
    return namespace


def test_the_name_of_a_trial_means_its_newest_attempt_and_those_before_it_have_names_of_their_own(
    control_plane: ControlPlane, sweeps: str
) -> None:
    access, said = replace(control_plane.admin, namespace=sweeps), list[str]()
    search = finding.Search(connect=lambda: SyncClient(access), say=said.append, asks_again=True)

    def found(name: str) -> str:
        return finding.find(name, search).name

    assert found("s-001") == "s-001-10"
    assert said == ["s-001 means s-001-10, the newest attempt at this trial; before it: tfjob/s-001, s-001-2"]
    names = ("s-001-2", "tfjob/s-001", "s-002", "s-003", "s-003-2")
    assert [found(name) for name in names] == ["s-001-2", "s-001", "s-002", "s-003", "s-003-2"]
    assert len(said) == 1
