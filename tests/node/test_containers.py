"""Commands and environments as the kubelet makes them."""

import pytest

from tfyard.errors import Usage
from tfyard.node.containers import Objects, argv, collect, environment, rewrite

POD = {"metadata": {"name": "p", "namespace": "n", "labels": {}, "annotations": {}}, "spec": {}}

REWRITES = {
    "the path itself": ("/out", "/here/o"),
    "a path below it": ("--dir=/out/logs", "--dir=/here/o/logs"),
    "in a list of paths": ("/out:/data", "/here/o:/here/d"),
    "in quotes": ("open('/out/x')", "open('/here/o/x')"),
    "not a longer name": ("/output/x", "/output/x"),
    "not in the middle of a path": ("/my/out/x", "/my/out/x"),
    "not in an address": ("http://host/out", "http://host/out"),
    "the deeper mount goes first": ("/out/deep/x", "/here/deep/x"),
}


@pytest.mark.parametrize(("text", "expected"), REWRITES.values(), ids=REWRITES.keys())
def test_paths_are_rewritten_at_their_boundaries_only(text: str, expected: str) -> None:
    mapping = {"/out": "/here/o", "/data": "/here/d", "/out/deep": "/here/deep"}
    assert rewrite(text, mapping) == expected


def test_a_command_and_its_arguments_are_one_list() -> None:
    assert argv({"command": ["python"], "args": ["$(X)", 3]}, {"X": "y"}) == ["python", "y", "3"]


def test_an_image_that_brings_its_own_command_is_refused() -> None:
    with pytest.raises(Usage, match="has no command"):
        argv({"name": "tensorflow", "args": ["--steps", "3"]}, {})


def test_config_maps_and_secrets_are_found_by_name() -> None:
    objects = collect(
        [
            {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}},
            {"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "dg=="}, "stringData": {"t": "w"}},
            {"kind": "Service", "metadata": {"name": "x"}},
        ]
    )
    assert objects == Objects({"c": {"a": "1"}}, {"s": {"k": "v", "t": "w"}})


def test_a_secret_that_is_not_base64_is_named() -> None:
    with pytest.raises(Usage, match="the entry k is not valid base64"):
        collect([{"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "not base64!"}}])


def test_later_variables_see_earlier_ones() -> None:
    entries = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(C)"}, {"name": "C", "value": "3"}]
    assert environment(POD, {"env": entries}, Objects()) == {"A": "1", "B": "1$(C)", "C": "3"}
