"""The CRDs as data: complete, small enough, and with the whole status."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import inspect as mi

from tests.formats.test_validation import container, old, replica, tfjob
from tfyard import formats
from tfyard.formats.crd.documents import crds, served_by
from tfyard.formats.crd.status import missing_memory
from tfyard.formats.pods.fields import fields as pod_fields
from tfyard.formats.tfjob import v1alpha1
from tfyard.formats.tfjob.fields import TFJobSpec
from tfyard.formats.tfjob.versions import SERVED, VERSIONS
from tfyard.model import Manifest, Status

ALL = crds(VERSIONS)
KUBEFLOW, TENSORFLOW = ALL
LARGEST = 400_000
"""Limit in bytes as JSON. etcd accepts 1.5 MB; an upgrade keeps two copies, and each watcher of CRDs gets it."""


def versions(crd: Manifest) -> dict[str, Manifest]:
    return {version["name"]: version for version in crd["spec"]["versions"]}


def schema(crd: Manifest, version: str, *steps: str) -> Any:
    part = versions(crd)[version]["schema"]["openAPIV3Schema"]
    for step in steps:
        part = part["additionalProperties"] if step == "*" else part["properties"][step]
    return part


EVERY = [(crd, name) for crd in (KUBEFLOW, TENSORFLOW) for name in versions(crd)]
IDS = [f"{crd['spec']['group']}/{name}" for crd, name in EVERY]


def nodes(part: Any) -> Iterator[Manifest]:
    """Every schema in a schema."""
    yield part
    below = [*part.get("properties", {}).values(), part.get("items"), part.get("additionalProperties")]
    for inner in below:
        if isinstance(inner, dict):
            yield from nodes(inner)


def field_names(kind: Any) -> Any:
    """The fields of a Struct, as nested names."""
    kind = kind.type if isinstance(kind, mi.Metadata) else kind
    if isinstance(kind, mi.UnionType):
        return next((names for option in kind.types if (names := field_names(option))), {})
    if isinstance(kind, mi.DictType):
        return {"*": field_names(kind.value_type)} if field_names(kind.value_type) else {}
    if isinstance(kind, mi.ListType | mi.VarTupleType):
        return {"[]": field_names(kind.item_type)} if field_names(kind.item_type) else {}
    if isinstance(kind, mi.StructType):
        return {f.encode_name: field_names(f.type) for f in kind.fields}
    return {}


def absent(names: Any, part: Manifest, path: str = "") -> list[str]:
    missing = []
    for name, below in names.items():
        inner = {"*": "additionalProperties", "[]": "items"}.get(name)
        node = part.get(inner) if inner else part.get("properties", {}).get(name)
        missing += [f"{path}.{name}"] if node is None else absent(below, node, f"{path}.{name}")
    return missing


def test_all_versions_that_we_read_are_served_and_v1_is_stored() -> None:
    served = [f"{crd['spec']['group']}/{name}" for crd, name in EVERY]
    assert served == list(VERSIONS)
    assert [name for crd, name in EVERY if versions(crd)[name]["storage"]] == ["v1", "v1alpha1"]


def test_v1_and_v1beta1_are_served_unless_more_are_asked_for() -> None:
    (kubeflow,) = crds()
    assert list(versions(kubeflow)) == ["v1", "v1beta1"]
    assert served_by(kubeflow) == SERVED
    (only,) = crds(())
    assert list(versions(only)) == ["v1"], "v1 is stored"


def test_a_version_is_the_same_whichever_others_are_served() -> None:
    (some,) = crds(["kubeflow.org/v1alpha2"])
    assert versions(some)["v1"] == versions(KUBEFLOW)["v1"]
    assert versions(some)["v1alpha2"] == versions(KUBEFLOW)["v1alpha2"]


def test_a_version_that_is_served_or_stored_is_known_from_the_definition() -> None:
    stored = {**crds(())[0], "status": {"storedVersions": ["v1beta2", "v1"]}}
    assert served_by(stored) == ("kubeflow.org/v1", "kubeflow.org/v1beta2")
    assert served_by(KUBEFLOW) == tuple(VERSIONS)[:-1]
    assert served_by(TENSORFLOW) == ("tensorflow.org/v1alpha1",)
    theirs = upstream({"type": "object"})
    theirs["spec"]["group"] = "kubeflow.org"
    assert served_by({**theirs, "status": None}) == ("kubeflow.org/v1",)


def test_the_names_are_those_that_kubectl_users_type() -> None:
    assert KUBEFLOW["spec"]["names"] == {
        "plural": "tfjobs",
        "singular": "tfjob",
        "kind": "TFJob",
        "listKind": "TFJobList",
        "shortNames": ["tfj"],
        "categories": ["all", "ml", "training"],
    }
    assert TENSORFLOW["spec"]["names"]["kind"] == "TfJob"
    assert TENSORFLOW["spec"]["names"]["categories"] == ["training"], "every `kubectl get all` would warn"
    assert TENSORFLOW["spec"]["names"]["shortNames"] == ["oldtfj"], "`tfj` would be ambiguous"
    assert KUBEFLOW["spec"]["conversion"] == {"strategy": "None"}


def test_both_fit_well_into_etcd() -> None:
    assert [len(json.dumps(crd, separators=(",", ":"))) < LARGEST for crd in ALL] == [True, True]


def test_every_old_version_says_what_to_do_about_it() -> None:
    for crd, name in EVERY:
        if name != "v1":
            assert versions(crd)[name]["deprecated"]
            assert "tfyard convert" in versions(crd)[name]["deprecationWarning"]


@pytest.mark.parametrize(("crd", "name"), EVERY, ids=IDS)
def test_every_field_that_we_read_is_listed(crd: Manifest, name: str) -> None:
    spec = schema(crd, name, "spec")
    assert absent(field_names(mi.type_info(v1alpha1.TfJobSpec)), spec) == []
    if crd is KUBEFLOW:
        assert absent(field_names(mi.type_info(TFJobSpec)), spec) == []


@pytest.mark.parametrize(("crd", "name"), EVERY, ids=IDS)
def test_every_field_of_the_status_is_listed(crd: Manifest, name: str) -> None:
    names = field_names(mi.type_info(Status))
    if name == "v1alpha1":
        del names["replicaStatuses"]  # kept, whatever it is
    assert absent(names, schema(crd, name, "status")) == []


def test_v1_describes_the_pod_as_kubernetes_does() -> None:
    pod = schema(KUBEFLOW, "v1", "spec", "tfReplicaSpecs", "*", "template", "spec")
    assert set(pod["properties"]) == set(pod_fields("PodSpec"))
    container = pod["properties"]["containers"]["items"]
    assert set(container["properties"]) == set(pod_fields("Container"))
    assert "Image pull policy" in container["properties"]["imagePullPolicy"]["description"]


def test_nothing_inside_a_pod_template_is_dropped_because_it_is_new() -> None:
    for crd, name in EVERY:
        spec = schema(crd, name, "spec", "replicaSpecs")["items"]["properties"]
        templates = [spec["template"]]
        if crd is KUBEFLOW:
            templates.append(schema(crd, name, "spec", "tfReplicaSpecs", "*", "template"))
        closed = [node for template in templates for node in nodes(template) if _is_closed(node)]
        assert closed == []


def _is_closed(node: Manifest) -> bool:
    is_object = node.get("type") == "object" and "additionalProperties" not in node
    return is_object and not node.get("x-kubernetes-preserve-unknown-fields")


@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_that_tfyard_declares_has_a_description(part: str) -> None:
    fields = schema(KUBEFLOW, "v1", part)["properties"]
    assert [name for name, field in fields.items() if not field.get("description")] == []


def test_keys_of_lists_are_required_or_have_a_default() -> None:
    for crd, name in EVERY:
        for node in nodes(schema(crd, name)):
            for key in node.get("x-kubernetes-list-map-keys", []):
                item = node["items"]
                assert key in item.get("required", []) or "default" in item["properties"][key]


def test_each_old_version_stores_its_own_defaults() -> None:
    for name in ("v1beta2", "v1beta1", "v1alpha2"):
        defaults = VERSIONS[f"kubeflow.org/{name}"]
        assert schema(KUBEFLOW, name, "spec", "cleanPodPolicy")["default"] == defaults.clean
        assert schema(KUBEFLOW, name, "spec", "dialect")["default"] == defaults.dialect
    for crd in ALL:
        defaults = VERSIONS[f"{crd['spec']['group']}/v1alpha1"]
        assert schema(crd, "v1alpha1", "spec", "cleanupPodPolicy")["default"] == defaults.clean
        assert schema(crd, "v1alpha1", "spec", "dialect")["default"] == "tf1"
    assert "default" not in schema(KUBEFLOW, "v1", "spec", "dialect")


def test_the_yaml_text_is_read_back_as_the_same_data() -> None:
    text = formats.to_yaml(*ALL)
    assert tuple(yaml.load_all(text, Loader=yaml.CSafeLoader)) == ALL


# --- v1 objects that were created as v1alpha1


def test_the_dialect_may_be_in_the_spec_and_the_annotation_wins() -> None:
    document = tfjob(dialect="tf1")
    assert formats.load(document).dialect == "tf1"
    annotated = {**document["metadata"], "annotations": {"tfyard.dev/dialect": "kubeflow"}}
    assert formats.load({**document, "metadata": annotated}).dialect == "kubeflow"


def test_what_was_created_as_v1alpha1_and_is_read_as_v1_is_the_same_job() -> None:
    created = {
        **old(replica(), tfImage="example/tf:1"),
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "TFJob",
    }
    read = {**created, "apiVersion": "kubeflow.org/v1"}
    assert formats.load(read) == msgspec.structs.replace(formats.load(created), api_version="kubeflow.org/v1")
    assert formats.load(read).dialect == "tf1"


def test_a_problem_of_a_v1alpha1_job_that_is_read_as_v1_has_its_own_path() -> None:
    read = {**old({**replica(), "replicas": 2}), "apiVersion": "kubeflow.org/v1", "kind": "TFJob"}
    (problem,) = formats.check(read).errors
    assert problem.path == ("spec", "replicaSpecs", 0, "replicas")


def test_both_forms_at_once_are_refused_as_v1() -> None:
    both = tfjob(replicaSpecs=[replica(container())])
    assert [problem.path for problem in formats.check(both).errors] == [("spec", "replicaSpecs")]


# --- fields of the status that a CRD would drop


def upstream(status: Manifest) -> Manifest:
    """A CRD like training-operator's."""
    root = {"type": "object", "properties": {"spec": {"type": "object"}, "status": status}}
    served = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {"spec": {"versions": [{**served, "schema": {"openAPIV3Schema": root}}]}}


COUNTS = {"type": "object", "properties": {"active": {"type": "integer"}, "selector": {"type": "string"}}}
UPSTREAM = upstream(
    {
        "type": "object",
        "properties": {
            "conditions": {"type": "array", "items": {"type": "object", "properties": {"type": {}}}},
            "replicaStatuses": {"type": "object", "additionalProperties": COUNTS},
            "startTime": {"type": "string"},
        },
    }
)


@pytest.mark.parametrize("crd", ALL, ids=["kubeflow", "tensorflow"])
def test_the_crds_of_tfyard_drop_no_field_of_the_status(crd: Manifest) -> None:
    assert missing_memory(crd) == []


@pytest.mark.parametrize("crd", ALL, ids=["kubeflow", "tensorflow"])
def test_the_endings_that_a_status_keeps_are_bounded(crd: Manifest) -> None:
    for version in crd["spec"]["versions"]:
        endings = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["endings"]
        assert endings["maxItems"] == 20
        assert endings["items"]["properties"]["message"]["maxLength"] == 512


def test_the_crd_of_training_operator_drops_fields_of_the_status() -> None:
    missing = missing_memory(UPSTREAM)
    for field in ("phase", "tasks", "cluster", "failure", "observedGeneration", "replicaStatuses.*.ready"):
        assert f"status.{field}" in missing
    assert "status.conditions[].status" in missing
    assert "status.startTime" not in missing
    assert "status.replicaStatuses.*.active" not in missing


def test_an_open_status_drops_nothing() -> None:
    assert missing_memory(upstream({"type": "object", "x-kubernetes-preserve-unknown-fields": True})) == []


def test_a_field_that_is_listed_is_closed_even_inside_an_open_status() -> None:
    tasks = {"type": "object", "additionalProperties": {"type": "object", "properties": {"finished": {}}}}
    half = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"tasks": tasks}}
    assert missing_memory(upstream(half)) == [
        f"status.tasks.*.{field}" for field in ("attempts", "retries", "excused", "backoff")
    ]


def test_an_old_crd_that_prunes_nothing_drops_nothing() -> None:
    crd = upstream({"type": "object"})
    assert missing_memory({"spec": {**crd["spec"], "preserveUnknownFields": True}}) == []


def test_a_crd_without_a_status_subresource_is_reported() -> None:
    crd = upstream({"type": "object"})
    bare = {key: value for key, value in crd["spec"]["versions"][0].items() if key != "subresources"}
    assert missing_memory({"spec": {"versions": [bare]}}) == ["subresources.status"]


def test_a_version_that_is_neither_served_nor_stored_does_not_count() -> None:
    retired = {**UPSTREAM["spec"]["versions"][0], "served": False, "storage": False}
    assert missing_memory({"spec": {"versions": [*KUBEFLOW["spec"]["versions"], retired]}}) == []
