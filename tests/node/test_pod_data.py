"""What pods find in volumes and variables that come from the API."""

from typing import Any

import pytest

from tfyard.node.pod_data import ContainerConfigError, File, Objects, files, resource_value, with_limits

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "ns", "annotations": {"b": 'say "hi"', "a": "1\n2"}},
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "250m"}}}]},
}
OBJECTS = Objects({"settings": {"a": "1", "b": "2"}}, {"keys": {"k": "secret"}})


def test_a_projected_volume_gathers_all_its_sources_with_their_modes() -> None:
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "settings", "items": [{"key": "a", "path": "deep/a", "mode": 0o600}]}},
        {"secret": {"name": "keys"}},
        {"downwardAPI": {"items": [{"path": "notes", "fieldRef": {"fieldPath": "metadata.annotations"}}]}},
    ]
    volume = {"name": "all", "projected": {"sources": sources, "defaultMode": 0o440}}
    assert files(volume, POD, OBJECTS, {("", 3607): "abc"}) == {
        "token": File(b"abc", 0o600),
        "deep/a": File(b"1", 0o600),
        "k": File(b"secret", 0o440),
        "notes": File(b'a="1\\n2"\nb="say \\"hi\\""', 0o440),
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"configMap": {"name": "gone"}}, 'configmap "gone" not found'),
        ({"secret": {"secretName": "gone"}}, 'secret "gone" not found'),
        (
            {"configMap": {"name": "settings", "items": [{"key": "c", "path": "c"}]}},
            "references non-existent config key: c",
        ),
    ],
)
def test_what_is_missing_is_told_in_a_kubelets_words_unless_it_is_optional(source: Any, said: str) -> None:
    with pytest.raises(ContainerConfigError, match=said):
        files({"name": "v", **source}, POD, OBJECTS, {})
    [kind] = source
    optional = {"name": "v", kind: {**source[kind], "optional": True}}
    assert files(optional, POD, OBJECTS, {}) == {}


def test_resources_are_whole_numbers_of_their_unit() -> None:
    resources = {"limits": {"cpu": "1500m", "memory": "1Gi"}, "requests": {"cpu": "250m"}}
    container = with_limits({"resources": resources}, {"cpu": "64"})
    assert resource_value(container, {"resource": "limits.cpu"}) == "2"
    assert resource_value(container, {"resource": "requests.cpu", "divisor": "1m"}) == "250"
    assert resource_value(container, {"resource": "limits.memory", "divisor": "1Mi"}) == "1024"
    assert resource_value(container, {"resource": "requests.memory"}) == str(1 << 30)
