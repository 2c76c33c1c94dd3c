import json
from pathlib import Path
from typing import Any

import pytest

from tfyard.formats.pods import checks, fields
from tfyard.formats.pods.fields import Shape
from tfyard.model.problem import Problem, format_path

DATA = Path(fields._DATA)


def template(**container: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "a", **container}]}}


def found(value: object) -> list[tuple[str, str, str, str]]:
    problems = checks.unknown_fields(value)
    return [(each.severity, format_path(each.path), each.message, each.fix) for each in problems]


def test_a_full_template_has_no_problems() -> None:
    value = template(
        env=[{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
        resources={"limits": {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": 1}, "requests": {"cpu": 0.5}},
        livenessProbe={"httpGet": {"port": "http"}, "periodSeconds": 1e3},
        readinessProbe={"tcpSocket": {"port": 80}},
        args=None,
    )
    value["metadata"] = {"labels": {"any.key/at-all": "x"}, "creationTimestamp": None}
    value["spec"] |= {"tolerations": [{"operator": "Exists"}], "volumes": [{"name": "v", "emptyDir": {}}]}
    assert found(value) == []


@pytest.mark.parametrize(
    ("field", "guess"),
    [("imagge", "image"), ("Image", "image"), ("volumeMount", "volumeMounts"), ("enV", "env")],
)
def test_a_misspelt_field_is_a_warning_with_a_guess(field: str, guess: str) -> None:
    message = f'unknown field in Kubernetes 1.36; did you mean "{guess}"?'
    assert found(template(**{field: 1})) == [("warning", f"spec.containers[0].{field}", message, "")]


def test_a_field_that_resembles_nothing_is_a_warning_without_a_guess() -> None:
    assert found({"zzz": {}}) == [("warning", "zzz", "unknown field in Kubernetes 1.36", "")]


@pytest.mark.parametrize(
    ("container", "field", "message", "fix"),
    [
        ({"env": [{"name": "A", "value": True}]}, "env[0].value", "must be text, not true", "quote it"),
        (
            {"env": [{"name": "A", "value": 8}]},
            "env[0].value",
            "must be text, not 8",
            "quote it",
        ),
        (
            {"env": {"A": "1"}},
            "env",
            "must be a list, not a mapping",
            "start each item with -",
        ),
        ({"args": "x"}, "args", 'must be a list, not "x"', "write it as a list: [ ]"),
        ({"args": [1]}, "args[0]", "must be text, not 1", "quote it"),
        ({"image": {"a": "b"}}, "image", "must be text, not a mapping", ""),
        ({"image": ["x"]}, "image", "must be text, not a list", ""),
        ({"resources": []}, "resources", "must be a mapping, not a list", ""),
        ({"resources": {"limits": {"cpu": True}}}, "resources.limits.cpu", "not true", ""),
        (
            {"ports": [{"containerPort": "80"}]},
            "ports[0].containerPort",
            "a whole number",
            "write it without quotes",
        ),
        (
            {"ports": [{"containerPort": True}]},
            "ports[0].containerPort",
            "a whole number",
            "write it without quotes",
        ),
        ({"tty": "yes"}, "tty", "true or false", "write true or false, without quotes"),
        ({"livenessProbe": {"tcpSocket": {"port": 1.5}}}, "livenessProbe.tcpSocket.port", "not 1.5", ""),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error(
    container: dict[str, Any], field: str, message: str, fix: str
) -> None:
    ((severity, path, found_message, found_fix),) = found(template(**container))
    assert (severity, path, found_fix) == ("error", f"spec.containers[0].{field}", fix)
    assert message in found_message


def test_paths_begin_with_the_path_of_the_template_and_problems_have_the_value() -> None:
    path = ("spec", "tfReplicaSpecs", "Worker", "template")
    (problem,) = checks.unknown_fields({"spec": 3}, path)
    message = "must be a mapping, not 3"
    assert problem == Problem((*path, "spec"), message, value=3)
    assert len(checks.unknown_fields([], path)) == 1


def test_the_problems_of_a_template_with_only_unknown_fields_are_limited() -> None:
    assert len(checks.unknown_fields({f"field{n}": n for n in range(100_000)})) == checks.MAX_PROBLEMS
    assert len(checks.unknown_fields(template(args=list(range(100_000))))) == checks.MAX_PROBLEMS


@pytest.mark.parametrize(
    ("definition", "field", "shape"),
    [
        ("PodSpec", "containers", Shape("list", "Container", "name")),
        ("PodSpec", "tolerations", Shape("list", "Toleration")),
        ("PodSpec", "topologySpreadConstraints", Shape("list", "TopologySpreadConstraint", "topologyKey")),
        ("PodSpec", "volumes", Shape("list", "Volume", "name")),
        ("PodSpec", "overhead", Shape("map", "quantity")),
        ("Container", "ports", Shape("list", "ContainerPort", "containerPort")),
        ("Container", "volumeMounts", Shape("list", "VolumeMount", "mountPath")),
        ("Container", "resources", Shape("object", "ResourceRequirements")),
        ("ObjectMeta", "finalizers", Shape("list", "string", "")),
        ("HTTPGetAction", "port", Shape("scalar", "int-or-string")),
        ("ManagedFieldsEntry", "fieldsV1", Shape("map", "any")),
    ],
)
def test_the_table_says_what_the_openapi_of_kubernetes_says(
    definition: str, field: str, shape: Shape
) -> None:
    assert fields.shape(fields.fields(definition)[field]) == shape


def test_both_tables_name_the_same_fields_and_the_small_one_is_small() -> None:
    names = json.loads((DATA / "podfields.json").read_text())
    full = json.loads((DATA / "podschema.json").read_text())
    assert names["kubernetes"] == full["kubernetes"]
    assert {
        name: set(entry["fields"]) for name, entry in full["definitions"].items() if "fields" in entry
    } == {name: set(fields) for name, fields in names["definitions"].items()}
    assert all(
        field["description"]
        for entry in full["definitions"].values()
        for field in entry.get("fields", {}).values()
    )
    assert (DATA / "podfields.json").stat().st_size < 40_000


def test_every_shape_leads_to_a_definition_that_is_there() -> None:
    definitions = fields._table().definitions
    shapes = [fields.shape(words) for known in definitions.values() for words in known.values()]
    inner = [fields.shape(shape.of) if shape.form in ("list", "map") else shape for shape in shapes]
    assert {shape.of for shape in inner if shape.form == "object"} <= set(definitions)
    scalars = {shape.of for shape in inner if shape.form == "scalar"}
    assert scalars == {"string", "integer", "boolean", "quantity", "int-or-string", "time", "any"}
