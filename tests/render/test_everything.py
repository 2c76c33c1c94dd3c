"""Properties of all rendered objects."""

from collections import Counter

import pytest

from . import schema
from .calling import JOBS, tfyard
from .everything import rendered


def test_every_rendered_object_is_valid_to_kubernetes_own_openapi() -> None:
    problems = {
        name: [text for manifest in objects for text in schema.problems(manifest)]
        for name, objects in rendered().items()
    }
    assert {name: texts for name, texts in problems.items() if texts} == {}
    assert sum(map(len, rendered().values())) > 200


def test_the_schema_finds_what_is_wrong() -> None:
    """A check that never fails proves nothing."""
    wrong = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"completions": "4", "templates": {}, "template": {"spec": {"containers": [{"image": "x"}]}}},
    }
    assert schema.problems(wrong) == [
        "Job.spec.completions: '4' is no integer",
        "Job.spec.templates: unknown field",
        "Job.spec.template.spec.containers[0].name: is required",
    ]


def test_no_two_objects_of_one_rendering_have_the_same_name() -> None:
    for name, objects in rendered().items():
        keys = Counter((o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects)
        assert [key for key, count in keys.items() if count > 1] == [], name


def test_whatever_a_pod_mounts_is_a_volume_of_it_and_whatever_it_names_is_rendered() -> None:
    for name, objects in rendered().items():
        known = {o["metadata"]["name"] for o in objects if o["kind"] == "ConfigMap"}
        for spec in _pods(objects):
            volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
            containers = [*spec["containers"], *spec.get("initContainers", [])]
            mounted = {mount["name"] for c in containers for mount in c.get("volumeMounts", [])}
            assert mounted <= set(volumes), name
            used = {v["configMap"]["name"] for v in volumes.values() if "configMap" in v}
            used |= {
                e["valueFrom"]["configMapKeyRef"]["name"]
                for c in containers
                for e in c.get("env", [])
                if "configMapKeyRef" in e.get("valueFrom", {})
            }
            assert used <= known, name


def _pods(objects: list[dict]) -> list[dict]:  # type: ignore[type-arg]
    specs = [o["spec"]["template"]["spec"] for o in objects if "template" in (o.get("spec") or {})]
    for o in objects:
        if o["kind"] == "TFJob":
            specs += [spec["template"]["spec"] for spec in o["spec"]["tfReplicaSpecs"].values()]
    return specs


@pytest.mark.parametrize("form", ["tfjob", "plain", "legacy"])
def test_the_same_file_gives_the_same_bytes_and_comments_change_nothing_but_comments(form: str) -> None:
    first, again, explained = (
        tfyard("render", JOBS / "mnist.yaml", "--as", form, *more) for more in ((), (), ("--explain",))
    )
    assert first.out == again.out
    assert explained.objects == first.objects
    assert explained.out.count("\n# ") >= len(first.objects)
