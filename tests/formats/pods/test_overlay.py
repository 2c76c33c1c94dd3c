"""The results in overlay_cases.yaml were recorded from kubectl, so these tests need none."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfyard import errors
from tfyard.formats.pods import overlay
from tfyard.formats.yaml import source
from tfyard.model.problem import format_path

CASES = [
    document.data for document in source.read(Path(__file__).with_name("overlay_cases.yaml").read_bytes())
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["title"])
def test_a_patch_gives_what_kubectl_gives(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case)
    assert overlay.merge(case["base"], case["patch"]) == case["result"]
    assert case == before, "the inputs must stay as they are"


def refusals(base: dict[str, Any], patch: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(errors.Invalid) as caught:
        overlay.merge(base, patch)
    return [(format_path(problem.path), problem.message) for problem in caught.value.problems]


BASE = {
    "metadata": {"finalizers": ["a"]},
    "spec": {"containers": [{"name": "a"}], "tolerations": [{"key": "k"}]},
}


@pytest.mark.parametrize(
    ("patch", "path", "message"),
    [
        ({"spec": []}, "spec", "a list cannot be merged into a mapping"),
        (
            {"spec": {"containers": {"name": "a"}}},
            "spec.containers",
            "a mapping cannot be merged into a list",
        ),
        ({"spec": {"nodeSelector": "x"}}, "spec.nodeSelector", "a single value cannot be"),
        ({"spec": {"hostname": {"a": "b"}}}, "spec.hostname", "into a single value"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0]", 'merged by "name"'),
        ({"spec": {"containers": [{"name": None}]}}, "spec.containers[0]", 'merged by "name"'),
        ({"spec": {"containers": [{"name": {}}]}}, "spec.containers[0]", 'merged by "name"'),
        ({"spec": {"containers": ["x"]}}, "spec.containers[0]", "a single value cannot be merged"),
        ({"spec": {"$patch": "destroy"}}, "spec.$patch", "must be merge, replace or delete, not 'destroy'"),
        ({"spec": {"$frobnicate": 1}}, "spec.$frobnicate", "unknown directive $frobnicate"),
        ({"spec": {"$retainKeys": "x"}}, "spec.$retainKeys", "a list of names"),
        ({"spec": {"$retainKeys": ["os"], "priority": 1}}, "spec.priority", "does not list it"),
        ({"spec": {"tolerations": [{"$patch": "delete"}]}}, "spec.tolerations[0].$patch", "as a whole"),
        (
            {"spec": {"$setElementOrder/tolerations": [{"key": "k"}]}},
            "spec[$setElementOrder/tolerations]",
            "only for lists that are merged",
        ),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}},
            "spec[$setElementOrder/containers]",
            "does not list",
        ),
        (
            {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
            "metadata[$deleteFromPrimitiveList/finalizers]",
            "a list of names",
        ),
    ],
)
def test_nonsense_is_refused_with_the_path_inside_the_patch(
    patch: dict[str, Any], path: str, message: str
) -> None:
    ((found_path, found_message),) = refusals(BASE, patch)
    assert found_path == path
    assert message in found_message


def test_all_problems_of_a_patch_are_reported_at_once() -> None:
    patch = {"metadata": 1, "spec": {"containers": [{}, 3], "nodeSelector": []}}
    assert [path for path, _ in refusals(BASE, patch)] == [
        *["metadata", "spec.containers[0]", "spec.containers[1]"],
        "spec.nodeSelector",
    ]


def test_directives_inside_of_a_new_value_are_executed_and_not_stored() -> None:
    patch = {
        "spec": {
            "securityContext": {"$patch": "replace", "runAsUser": 1},
            "initContainers": [
                {
                    "name": "i",
                    "image": None,
                    "$setElementOrder/env": [{"name": "A"}],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "$patch": "delete"}],
                }
            ],
        }
    }
    assert overlay.merge({}, patch) == {
        "spec": {
            "securityContext": {"runAsUser": 1},
            "initContainers": [{"name": "i", "env": [{"name": "A", "value": "1"}]}],
        }
    }


def test_an_explicit_merge_directive_changes_nothing() -> None:
    patch = {"spec": {"$patch": "merge", "containers": [{"name": "a", "$patch": "merge", "image": "x"}]}}
    assert overlay.merge(BASE, patch)["spec"]["containers"] == [{"name": "a", "image": "x"}]


def test_an_unknown_field_merges_as_a_mapping_or_is_replaced() -> None:
    base = {"spec": {"newThing": {"a": 1, "list": [1]}, "other": {"x": 1}}}
    patch = {"spec": {"newThing": {"b": {"c": None, "d": 2}, "list": [{"z": None}]}, "other": [1]}}
    assert overlay.merge(base, patch)["spec"] == {
        "newThing": {"a": 1, "b": {"d": 2}, "list": [{}]},
        "other": [1],
    }


def test_merge_keys_compare_as_json_does() -> None:
    base = {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]}}
    patch = {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": True}]}]}}
    assert len(overlay.merge(base, patch)["spec"]["containers"][0]["ports"]) == 2


def test_items_of_the_base_without_a_key_are_left_alone() -> None:
    base = {"spec": {"containers": [{"image": "x"}, {"name": "a"}]}}
    merged = overlay.merge(base, {"spec": {"containers": [{"name": "a", "image": "z"}]}})
    assert merged["spec"]["containers"] == [{"image": "x"}, {"name": "a", "image": "z"}]


NAMES = st.sampled_from(["a", "b", "c"])
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"image": NAMES, "args": st.lists(NAMES, max_size=2)}),
    unique_by=lambda container: container["name"],
    max_size=3,
)
TEMPLATES = st.fixed_dictionaries(
    {"spec": st.fixed_dictionaries({"containers": CONTAINERS}, optional={"priority": st.integers(0, 3)})}
)


@given(TEMPLATES, TEMPLATES)
def test_a_patch_applied_twice_changes_nothing_more(base: dict[str, Any], patch: dict[str, Any]) -> None:
    once = overlay.merge(base, patch)
    assert overlay.merge(once, patch) == once
    assert overlay.merge(once, {}) == once


@given(TEMPLATES)
def test_a_template_merged_into_nothing_or_into_itself_is_itself(template: dict[str, Any]) -> None:
    assert overlay.merge({}, template) == template
    assert overlay.merge(template, template) == template
