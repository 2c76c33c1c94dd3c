"""The life of one pod: what it is given while it runs, how it is ended, and what its failure costs the others."""

import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kubelet.process_node import box, eventually_logged, first, shell
from tfyard.kube import requests
from tfyard.kubelet import sources as api_sources
from tfyard.kubelet.processes import ProcessNodeOptions
from tfyard.node import pod as pods
from tfyard.testing import ControlPlane, builders
from tfyard.views.pods import PodDetails as SeenPod

pytestmark = [pytest.mark.cluster, pytest.mark.processes]


def broken(text: str, _namespace: str) -> str:
    """A defect of the node that only some pods meet."""
    if "defect" in text:
        raise ValueError("cannot rewrite this")
    return text


async def test_an_error_of_the_node_fails_the_pod_that_met_it_and_no_other(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with box(control_plane, namespace, tmp_path, ProcessNodeOptions(rewrite=broken)) as here:
        await here.create("good", shell("sleep 600"))
        await here.create("bad", shell("echo side; sleep 600", "side"), shell("echo defect"))
        failed = await here.until_phase("bad", "Failed")
        assert failed["status"]["reason"] == "NodeError"
        assert "ValueError: cannot rewrite this" in failed["status"]["message"]
        await here.told("bad", "ValueError: cannot rewrite this")
        assert f"{namespace}/bad" in caplog.text
        await here.until("good", lambda pod: first(pod).get("ready"))
        await here.delete("bad")
        await here.until_gone("bad")


async def test_a_probe_of_a_port_that_has_no_such_name_fails_in_words(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        probe = {"tcpSocket": {"port": "web"}, "periodSeconds": 1, "failureThreshold": 1}
        await here.create("nameless", shell("sleep 600", livenessProbe=probe))
        await here.until_phase("nameless", "Failed")
        await here.told("nameless", "Liveness probe failed: the container has no port web")


async def test_security_settings_without_effect_are_reported_once(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    strict = {"securityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}}
    async with box(control_plane, namespace, tmp_path) as here:
        await here.create("strict", shell("true", **strict), shell("true", "other", **strict))
        await here.create("plain", shell("true"))
        await here.create("nobody", shell("true", securityContext={"runAsNonRoot": True, "runAsUser": 0}))
        for name in ("strict", "plain"):
            await here.until_phase(name, "Succeeded")
        said = await here.told("strict", "Container started")
        assert said.count("SecurityContextNotSupported") == 1
        assert said.count(": capabilities, readOnlyRootFilesystem\n") == 1
        assert "SecurityContext" not in await here.told("plain", "Container started")
        refused = await here.until("nobody", lambda pod: "non-root policy" in str(first(pod).get("state")))
        assert first(refused)["state"]["waiting"]["reason"] == "CreateContainerConfigError"


async def test_a_hook_that_cannot_be_called_keeps_no_pod_from_ending(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        request = {"port": 80, "httpHeaders": [{"name": "X-Two", "value": "a\nb"}]}
        await here.create("hooked", shell("sleep 600", lifecycle={"preStop": {"httpGet": request}}))
        await here.until("hooked", lambda pod: first(pod).get("ready"))
        await here.delete("hooked", 20)
        await here.until_gone("hooked")
        await here.told("hooked", "PreStopHook failed")


async def test_a_second_deletion_with_less_time_shortens_the_first(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    line = "trap 'echo asked' TERM; echo up; while :; do sleep 0.1; done"
    async with box(control_plane, namespace, tmp_path) as here:
        await here.create(
            "stubborn", shell(line), initContainers=[shell(line, "side", restartPolicy="Always")]
        )
        await here.until("stubborn", lambda pod: first(pod).get("ready"))
        await eventually_logged(here, "stubborn", "up")
        await here.delete("stubborn", 600)
        await eventually_logged(here, "stubborn", "asked")
        assert here.log("stubborn").count("asked") == 1
        await here.delete("stubborn", 1)
        await here.until_gone("stubborn")
        await here.until_clean()


async def test_files_of_a_running_pod_follow_the_api_and_tokens_are_renewed(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods, "CHECK_SIZES_EVERY", 0.05)
    monkeypatch.setattr(api_sources, "RENEW_AT", 0.0)
    mounts = [{"name": "files", "mountPath": "/files"}]
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    sources = [token, {"configMap": {"name": "settings"}}]
    line = "cat /files/rate; echo; old=$(cat /files/token);"
    line += " until test $(cat /files/rate) = 0.2; do sleep 0.1; done;"
    line += " while test $(cat /files/token) = $old; do sleep 0.1; done; ls /files"
    path = requests.CONFIG_MAPS.path(namespace)
    async with box(control_plane, namespace, tmp_path) as here:
        await here.client.send(
            requests.create(path, builders.config_map("settings", {"rate": "0.1", "gone": ""}))
        )
        files = {"name": "files", "projected": {"sources": sources}}
        await here.create("reads", shell(line, volumeMounts=mounts), volumes=[files])
        await here.until("reads", lambda pod: first(pod).get("ready"))
        await eventually_logged(here, "reads", "0.1")
        changes: dict[str, Any] = {"data": {"rate": "0.2", "gone": None}}
        await here.client.send(requests.patch(f"{path}/settings", changes))
        await here.until_phase("reads", "Succeeded")
        assert here.log("reads") == "0.1\nrate\ntoken\n"


async def test_without_a_limit_the_downward_api_tells_what_the_node_has(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    memory = {
        "name": "MIB",
        "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
    }
    request = {"name": "ASKED", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory"}}}
    item = {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}}
    about = {"name": "about", "downwardAPI": {"items": [item]}}
    options = ProcessNodeOptions(allocatable={"cpu": "3", "memory": "2048Mi"})
    async with box(control_plane, namespace, tmp_path, options) as here:
        mounts = [{"name": "about", "mountPath": "/about"}]
        line = "echo $MIB $ASKED $(cat /about/cpu)"
        await here.create("asks", shell(line, env=[memory, request], volumeMounts=mounts), volumes=[about])
        await here.until_phase("asks", "Succeeded")
        assert here.log("asks") == "2048 0 3\n"


async def test_a_pod_whose_containers_have_ended_is_never_reported_as_running(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """An operator would delete it as one that still runs, and its log with it."""
    async with box(control_plane, namespace, tmp_path) as here:
        told: set[tuple[str, bool]] = set()
        for made in [await here.create(f"short-{number}", shell("true")) for number in range(5)]:
            for version in await here.versions(made, lambda pod: pod["status"]["phase"] == "Succeeded"):
                pod = msgspec.convert(version, SeenPod)
                told.add((pod.status.phase, pod.program.state.terminated is not None))
        assert ("Succeeded", True) in told
        assert ("Running", True) not in told
