"""CRDs only ever grow: what the last release accepted is accepted, and nothing that it stored is lost."""

import copy
import json
from typing import Any

import pytest

from tools import crd_snapshot
from tools.crd_snapshot import Fields

V1 = "kubeflow.org/v1"
REPLICAS = ".spec.tfReplicaSpecs{}.replicas"
POLICY = ".spec.tfReplicaSpecs{}.restartPolicy"


@pytest.fixture(scope="module")
def released() -> dict[str, Fields]:
    found: dict[str, Fields] = json.loads(crd_snapshot.last().read_text())
    return found


def test_todays_definitions_accept_all_that_the_last_release_accepted(released: dict[str, Fields]) -> None:
    problems = crd_snapshot.narrowed(released, crd_snapshot.snapshot())
    advice = (
        "if that release is not out yet, run `python tools/crd_snapshot.py`; else these changes break jobs"
    )
    assert problems == [], f"{crd_snapshot.last().name}: {advice}"


def test_every_field_of_every_version_is_in_the_snapshot(released: dict[str, Fields]) -> None:
    assert released[V1][REPLICAS]["maximum"] == 100000
    assert released[V1][f"{REPLICAS.rpartition('.')[0]}.template.spec.containers[].image"]["type"] == "string"
    assert released["tensorflow.org/v1alpha1"][".spec.replicaSpecs[].tfPort"]["minimum"] == 1


@pytest.mark.parametrize(
    ("path", "change", "told"),
    [
        (REPLICAS, {"type": "string"}, 'type was "integer", is "string"'),
        (REPLICAS, {"maximum": 10}, "maximum was 100000, is 10"),
        (REPLICAS, {"minimum": 1}, "minimum was 0, is 1"),
        (REPLICAS, {"multipleOf": 2}, "multipleOf was null, is 2"),
        (REPLICAS, {"default": 2}, "default was 1, is 2"),
        (REPLICAS, {"rules": ["self > 1"]}, 'rules was null, is ["self > 1"]'),
        (POLICY, {"enum": ["Never"]}, 'enum was ["Always"'),
        (POLICY, {"pattern": "^N"}, 'pattern was null, is "^N"'),
        (".spec", {"required": ["runPolicy"]}, 'required was null, is ["runPolicy"]'),
        (
            ".status",
            {"x-kubernetes-preserve-unknown-fields": None},
            "x-kubernetes-preserve-unknown-fields was",
        ),
        ("(version)", {"subresources": ["status"]}, 'subresources was ["scale", "status"]'),
        ("(version)", {"storage": False}, "storage was true, is false"),
    ],
)
def test_a_schema_that_accepts_less_is_reported(
    released: dict[str, Fields], path: str, change: dict[str, Any], told: str
) -> None:
    now = copy.deepcopy(released)
    now[V1][path] |= change
    (problem,) = crd_snapshot.narrowed(released, now)
    assert problem.startswith(f"{V1} {path}: {told}")


def test_a_field_that_is_gone_is_reported(released: dict[str, Fields]) -> None:
    now = copy.deepcopy(released)
    del now[V1][REPLICAS]
    del now["kubeflow.org/v1beta1"]
    assert crd_snapshot.narrowed(released, now) == [
        "kubeflow.org/v1beta1 is gone",
        f"{V1} {REPLICAS} is gone",
    ]


def test_what_accepts_more_is_allowed(released: dict[str, Fields]) -> None:
    now = copy.deepcopy(released)
    now[V1][".spec.added"] = {"type": "string", "enum": ["a"]}
    now[V1][REPLICAS] |= {"maximum": 200000, "minimum": None}
    now[V1][POLICY] |= {"enum": [*now[V1][POLICY]["enum"], "Sometimes"], "default": "Never"}
    now[V1]["."] |= {"rules": [], "required": []}
    now["kubeflow.org/v2"] = {}
    assert crd_snapshot.narrowed(released, now) == []
