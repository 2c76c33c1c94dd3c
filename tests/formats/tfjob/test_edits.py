"""Changes of a stored TFJob, in both of its forms."""

from typing import Any

from tfyard.formats.tfjob import edits
from tfyard.formats.tfjob.edits import Edit

ENV = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]
TEMPLATE = {"spec": {"containers": [{"name": "sidecar"}, {"name": "tensorflow", "env": ENV}]}}
ROLES = {"WORKER": {"replicas": 2, "template": TEMPLATE}, "PS": {}}
MAP: dict[str, Any] = {"spec": {"tfReplicaSpecs": ROLES}}
LISTED = [{"template": TEMPLATE}, {"tfReplicaType": "WORKER", "replicas": 3}]
LIST: dict[str, Any] = {"spec": {"replicaSpecs": LISTED}}


def test_roles_are_found_by_their_names_whatever_the_form() -> None:
    assert {name: role.replicas for name, role in edits.roles(MAP).items()} == {"Worker": 2, "PS": 1}
    assert {name: role.replicas for name, role in edits.roles(LIST).items()} == {"Master": 1, "Worker": 3}
    assert (edits.has_list(MAP), edits.has_list(LIST)) == (False, True)


def test_a_role_is_scaled_where_it_is() -> None:
    assert edits.scaled(MAP, {"Worker": 4}) == [Edit(("spec", "tfReplicaSpecs", "WORKER", "replicas"), 4)]
    assert edits.scaled(LIST, {"Worker": 4}) == [Edit(("spec", "replicaSpecs", 1, "replicas"), 4)]
    (operation,) = edits.patch(edits.scaled(LIST, {"Worker": 4}))
    assert operation == {"op": "add", "path": "/spec/replicaSpecs/1/replicas", "value": 4}


def test_a_name_with_a_slash_is_escaped_in_a_patch() -> None:
    (operation,) = edits.patch([Edit(("metadata", "labels", "a/b~c"), "")])
    assert operation["path"] == "/metadata/labels/a~1b~0c"


def test_a_job_is_suspended_in_its_run_policy_and_resumed_wherever_it_was_suspended() -> None:
    assert edits.suspended(MAP) == [Edit(("spec", "runPolicy"), {"suspend": True})]
    both = {"spec": {"suspend": True, "runPolicy": {"suspend": True, "backoffLimit": 1}}}
    assert edits.suspended(both) == [Edit(("spec", "runPolicy", "suspend"), True)]
    assert edits.is_suspended(both)
    resumed = edits.edited(both, edits.resumed(both))
    assert resumed == {"spec": {"suspend": False, "runPolicy": {"suspend": False, "backoffLimit": 1}}}
    assert not edits.is_suspended(resumed)
    assert edits.is_suspended(both), "the given one is not changed"


def test_variables_are_set_in_the_container_that_trains_and_keep_their_order() -> None:
    changed = edits.edited(MAP, edits.with_variables(MAP, {"A": "costs $(x)", "C": "3"}))
    sidecar, trainer = changed["spec"]["tfReplicaSpecs"]["WORKER"]["template"]["spec"]["containers"]
    assert "env" not in sidecar
    assert trainer["env"] == [
        {"name": "A", "value": "costs $$(x)"},
        {"name": "B", "value": "$(A)"},
        {"name": "C", "value": "3"},
    ]
    assert edits.with_variables(MAP, {}) == []
