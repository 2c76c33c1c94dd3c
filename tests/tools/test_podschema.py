"""The generator, on a schema small enough to see through."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "podschema.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("podschema", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/definitions/{name}"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        (ref("io.k8s.Quantity"), "quantity"),
        (ref("io.k8s.Probe"), "Probe"),
        ({"type": "array", "items": {"type": "string"}}, "[string]"),
        ({"type": "object", "additionalProperties": ref("io.k8s.Quantity")}, "{quantity}"),
        (
            {
                "type": "array",
                "items": ref("io.k8s.Volume"),
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge,retainKeys",
            },
            "[Volume]@name",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            "[string]@",
        ),
    ],
)
def test_a_schema_becomes_one_word(tool: ModuleType, schema: dict[str, Any], words: str) -> None:
    assert tool.shape(schema) == words


def test_only_what_is_reachable_is_kept_also_around_a_circle(tool: ModuleType) -> None:
    definitions = {
        "a": {"properties": {"b": ref("b"), "$ref": {"type": "string"}}},
        "b": {"properties": {"items": {"items": ref("a")}}},
        "c": {},
    }
    assert tool.reachable(definitions, "a") == {"a", "b"}


def test_the_release_is_taken_from_the_path_or_asked_for(tool: ModuleType, tmp_path: Path) -> None:
    assert tool.release_of(Path("/mod/k8s.io/kubernetes@v1.36.3/api/swagger.json")) == "1.36.3"
    with pytest.raises(SystemExit):
        tool.release_of(Path("/elsewhere/swagger.json"))


def test_a_description_keeps_text_requirements_and_lists(tool: ModuleType) -> None:
    schema = {
        "description": "D",
        "required": ["b"],
        "properties": {"b": {"type": "array", "items": ref("x.Y"), "x-kubernetes-list-type": "atomic"}},
    }
    assert tool.described(schema) == {
        "description": "D",
        "required": ["b"],
        "fields": {"b": {"type": "array", "items": {"ref": "Y"}, "listType": "atomic"}},
    }
