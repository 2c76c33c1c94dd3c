"""Requests are values: tests compare all that is sent."""

import msgspec
import pytest

from tfyard.kube import Patch, Request, requests
from tfyard.kube.requests import CRDS, LEASES, PODS


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.path(), "/api/v1/pods"),
        (PODS.path("ml"), "/api/v1/namespaces/ml/pods"),
        (PODS.path("ml", "w-0", "status"), "/api/v1/namespaces/ml/pods/w-0/status"),
        (LEASES.path("ml", "op"), "/apis/coordination.k8s.io/v1/namespaces/ml/leases/op"),
        (CRDS.path(name="tfjobs.kubeflow.org"), f"{CRDS.path()}/tfjobs.kubeflow.org"),
        (PODS.path("ml", "../secrets"), "/api/v1/namespaces/ml/pods/..%2Fsecrets"),
    ],
)
def test_paths_name_collections_objects_and_subresources(path: str, expected: str) -> None:
    assert path == expected


def test_selectors_become_a_query_and_empty_ones_vanish() -> None:
    query = requests.selecting(labels={"job": "a", "role": "ps"}, fields={})
    assert requests.get(PODS.path("ml"), query) == Request(
        "GET", "/api/v1/namespaces/ml/pods?labelSelector=job%3Da%2Crole%3Dps"
    )


def test_each_kind_of_patch_has_its_content_type() -> None:
    body = {"status": {"phase": "Running"}}
    request = requests.patch("/x", body, Patch.STRATEGIC)
    assert request == Request("PATCH", "/x", b'{"status":{"phase":"Running"}}', Patch.STRATEGIC)
    assert request.content_type == "application/strategic-merge-patch+json"


def test_apply_names_its_manager_and_takes_ownership() -> None:
    request = requests.apply("/x", {"kind": "Lease"})
    assert request.path == "/x?fieldManager=tfyard&force=true"
    assert request.content_type == "application/apply-patch+yaml"


def test_a_delete_can_insist_on_the_very_object() -> None:
    request = requests.delete("/x", uid="u1", grace=0, propagation="Background")
    assert request.method == "DELETE"
    assert msgspec.json.decode(request.body or b"") == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }


def test_a_dry_run_says_so_where_the_server_looks_for_it() -> None:
    """For a DELETE with a body, the server ignores the query: the object would be deleted."""
    patched = requests.dry_run(requests.patch("/x", {}, query={"fieldManager": "tfyard"}))
    assert patched.path == "/x?fieldManager=tfyard&dryRun=All"
    assert requests.dry_run(requests.create("/x", {})).path == "/x?dryRun=All"
    deleted = requests.dry_run(requests.delete("/x", uid="u"))
    assert deleted.path == "/x"
    assert b'"dryRun":["All"]' in (deleted.body or b"")
    assert b'"uid":"u"' in (deleted.body or b"")
