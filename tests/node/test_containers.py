"""Commands and environments as the kubelet makes them."""

from typing import Any

import pytest

from tfyard.errors import Usage
from tfyard.node.containers import (
    argv,
    environment,
    refuse_root,
    rewrite,
    unused_security,
)
from tfyard.node.pod_data import ContainerConfigError, Objects, collect

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


def secured(of_pod: dict[str, object], of_container: dict[str, object]) -> dict[str, Any]:
    container = {"name": "main", "securityContext": of_container}
    return {"metadata": {"name": "p"}, "spec": {"securityContext": of_pod, "containers": [container]}}


def test_security_settings_that_a_process_of_this_user_does_not_have_are_named() -> None:
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 1000}
    pod = secured({"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 7, "sysctls": []}, restricted)
    always = ["allowPrivilegeEscalation", "capabilities", "fsGroup"]
    assert unused_security(pod, 1000, 1000) == always
    assert unused_security(pod, 0, 0) == [*always, "runAsUser"]
    plain = {"privileged": False, "readOnlyRootFilesystem": False, "allowPrivilegeEscalation": True}
    policies = {"fsGroup": 5, "fsGroupChangePolicy": "Always", "seccompProfile": {"type": "Unconfined"}}
    assert unused_security(secured(policies, plain), 1000, 5) == []
    assert unused_security(secured({}, {"readOnlyRootFilesystem": True}), 0, 0) == ["readOnlyRootFilesystem"]


ROOT_OR_NOT = {
    "the user of the node is root": ({"runAsNonRoot": True}, {}, 0, "image will run as root"),
    "the user of the node is not": ({"runAsNonRoot": True}, {}, 1000, ""),
    "root is asked for": ({"runAsNonRoot": True}, {"runAsUser": 0}, 1000, "breaks non-root policy"),
    "another user is asked for": ({"runAsNonRoot": True, "runAsUser": 1000}, {}, 0, ""),
    "the container says otherwise": ({"runAsNonRoot": True}, {"runAsNonRoot": False}, 0, ""),
    "nobody asks": ({}, {}, 0, ""),
}


@pytest.mark.parametrize(("of_pod", "of_container", "user", "refusal"), ROOT_OR_NOT.values(), ids=ROOT_OR_NOT)
def test_root_is_refused_as_a_kubelet_does(
    of_pod: dict[str, object], of_container: dict[str, object], user: int, refusal: str
) -> None:
    pod = secured(of_pod, of_container)
    if not refusal:
        refuse_root(pod, pod["spec"]["containers"][0], user)
        return
    with pytest.raises(ContainerConfigError, match=refusal):
        refuse_root(pod, pod["spec"]["containers"][0], user)
