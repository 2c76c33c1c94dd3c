"""Pods run as real processes, and the API tells of them as of a cluster's."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.kubelet.process_node import box, eventually_logged, first, python, read_terminal, shell
from tests.ports import reserved_port
from tfyard import kube
from tfyard.kube import requests
from tfyard.kubelet.runtime import NoSuchContainer
from tfyard.testing import ControlPlane, builders

pytestmark = [pytest.mark.cluster, pytest.mark.processes]

PATIENT = {"periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 60}
"""A probe that fails because of the machine, which may be slow, is repeated."""


async def test_a_pod_runs_to_its_end_and_leaves_nothing(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        await here.create("hello", shell("echo hello from $HOSTNAME; hostname; exit 3"))
        pod = await here.until_phase("hello", "Failed")
        [status] = pod["status"]["containerStatuses"]
        assert status["state"]["terminated"]["exitCode"] == 3
        assert here.log("hello") == "hello from hello\nhello\n"
        await here.delete("hello")
        await here.until_gone("hello")
        await here.until_clean()


EVERYTHING = """
import json, os, pathlib, ssl, time, urllib.request

account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
request = urllib.request.Request(
    f"https://{host}:{port}/apis/authentication.k8s.io/v1/selfsubjectreviews",
    data=json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode(),
    headers={"Authorization": "Bearer " + (account / "token").read_text(), "Content-Type": "application/json"},
)
tls = ssl.create_default_context(cafile=account / "ca.crt")
answer = json.load(urllib.request.urlopen(request, context=tls))
read = lambda path: pathlib.Path(path).read_text().strip()
print(json.dumps({
    "user": answer["status"]["userInfo"]["username"],
    "namespace": read(account / "namespace"),
    "init": read("/pod-work/prepared"),
    "config": sorted(os.listdir("/config")),
    "single": read("/etc/single.conf"),
    "secret": [read("/secrets/key"), oct(os.stat("/secrets/key").st_mode & 0o777)],
    "labels": read("/info/labels"),
    "memory": read("/info/memory"),
    "env": [os.environ[name] for name in ("RATE", "PASSWORD", "NAME", "CPU", "ALL_rate", "BOTH", "IP")],
}), flush=True)
pathlib.Path("/dev/termination-log").write_text("all is read")
while not os.path.exists("/pod-work/stop"): time.sleep(0.02)
"""


def everything() -> dict[str, Any]:
    env: list[dict[str, Any]] = [
        {"name": "RATE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "rate"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "BOTH", "value": "$(RATE)-$(PASSWORD)"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    items: list[dict[str, Any]] = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "memory", "resourceFieldRef": {"containerName": "main", "resource": "limits.memory"}},
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "work", "emptyDir": {}},
        {"name": "config", "configMap": {"name": "settings"}},
        {"name": "secret", "secret": {"secretName": "keys", "defaultMode": 0o400}},
        {"name": "info", "downwardAPI": {"items": items}},
    ]
    mounts: list[dict[str, Any]] = [
        {"name": "work", "mountPath": "/pod-work"},
        {"name": "config", "mountPath": "/config"},
        {"name": "config", "mountPath": "/etc/single.conf", "subPath": "rate"},
        {"name": "secret", "mountPath": "/secrets"},
        {"name": "info", "mountPath": "/info"},
    ]
    work = mounts[:1]
    main = python(
        EVERYTHING,
        env=env,
        envFrom=[{"prefix": "ALL_", "configMapRef": {"name": "settings"}}],
        resources={"limits": {"cpu": "500m", "memory": "1Gi"}},
        volumeMounts=mounts,
        readinessProbe={"exec": {"command": ["test", "-e", "/pod-work/ready"]}, **PATIENT},
    )
    sidecar = shell("trap 'echo bye; exit 0' TERM; touch /pod-work/up; while :; do sleep 0.05; done", "proxy")
    sidecar |= {"restartPolicy": "Always", "volumeMounts": work}
    sidecar["startupProbe"] = {"exec": {"command": ["test", "-e", "/pod-work/up"]}, **PATIENT}
    init = shell("test -e /pod-work/up && echo yes > /pod-work/prepared", "prepare", volumeMounts=work)
    return {"containers": [main], "initContainers": [sidecar, init], "volumes": volumes}


async def test_a_pod_has_all_that_the_api_promises_it(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        for kind, name, fields in (
            ("configmaps", "settings", {"data": {"rate": "0.5"}}),
            ("secrets", "keys", {"stringData": {"key": "hidden"}}),
        ):
            path = kube.Resource("", "v1", kind).path(namespace)
            await here.client.send(requests.create(path, {"metadata": {"name": name}, **fields}))
        pod = {
            "metadata": {"name": "all", "labels": {"team": "vision"}},
            "spec": {**everything(), "restartPolicy": "Never"},
        }
        await here.client.send(requests.create(requests.PODS.path(namespace), pod))
        running = await here.until_phase("all", "Running")
        await eventually_logged(here, "all")
        assert json.loads(here.log("all")) == {
            "user": f"system:serviceaccount:{namespace}:default",
            "namespace": namespace,
            "init": "yes",
            "config": ["rate"],
            "single": "0.5",
            "secret": ["hidden", "0o400"],
            "labels": 'team="vision"',
            "memory": str(1 << 30),
            "env": ["0.5", "hidden", "all", "1", "0.5", "0.5-hidden", "127.0.0.1"],
        }
        assert [c["ready"] for c in running["status"]["containerStatuses"]] == [False]
        await here.run("all", "touch /pod-work/ready")
        await here.until("all", lambda pod: pod["status"]["containerStatuses"][0]["ready"])
        assert "2/2     Running" in here.kubectl("get", "pod", "all")
        await here.told("all", "Container started")
        assert "Container started" in here.kubectl("describe", "pod", "all")
        await here.run("all", "touch /pod-work/stop")
        ended = await here.until_phase("all", "Succeeded")
        assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["message"] == "all is read"
        assert "bye" in here.log("all", "proxy").splitlines(), "it was asked to end, and did"


async def test_failures_are_restarted_and_missing_objects_waited_for_in_a_kubelets_words(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        policy = {"restartPolicy": "OnFailure"}
        crash = shell("echo run; echo broken >&2; exit 7", terminationMessagePolicy="FallbackToLogsOnError")
        await here.create("crash", crash, **policy)
        source = {"configMapKeyRef": {"name": "later", "key": "rate"}}
        late = shell("echo $RATE", env=[{"name": "RATE", "valueFrom": source}])
        await here.create("late", late, **policy)
        await here.create("no-command", {"name": "main", "image": "python:3"}, **policy)
        missing = {"name": "files", "configMap": {"name": "later"}}
        await here.create("mounts", shell("true"), volumes=[missing])

        looped = await here.until(
            "crash", lambda pod: "waiting" in first(pod).get("state", {}) and first(pod)["restartCount"]
        )
        assert looped["status"]["phase"] == "Running"
        assert first(looped)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        delay = 2 ** (first(looped)["restartCount"] - 1)  # whoever comes late sees a later one
        assert first(looped)["state"]["waiting"]["message"].startswith(
            f"back-off {delay}s restarting failed container=main"
        )
        ended = first(looped)["lastState"]["terminated"]
        assert (ended["exitCode"], ended["reason"], ended["message"]) == (7, "Error", "run\nbroken")
        assert here.log("crash", previous=True) == "run\nbroken\n"

        waiting = await here.until(
            "late", lambda pod: first(pod).get("state", {}).get("waiting", {}).get("message")
        )
        assert first(waiting)["state"]["waiting"] == {
            "reason": "CreateContainerConfigError",
            "message": 'configmap "later" not found',
        }
        await here.told("mounts", 'configmap "later" not found')
        empty = builders.config_map("later", {"other": ""})
        await here.client.send(requests.create(requests.CONFIG_MAPS.path(namespace), empty))
        no_key = f"couldn't find key rate in ConfigMap {namespace}/later"
        await here.until(
            "late", lambda pod: first(pod).get("state", {}).get("waiting", {}).get("message") == no_key
        )
        refused = await here.until(
            "no-command", lambda pod: first(pod).get("state", {}).get("waiting", {}).get("message")
        )
        assert first(refused)["state"]["waiting"]["reason"] == "CreateContainerError"
        path = requests.CONFIG_MAPS.path(namespace, "later")
        await here.client.send(requests.patch(path, {"data": {"rate": "0.1"}}))
        await here.until_phase("late", "Succeeded")
        await here.until_phase("mounts", "Succeeded")
        assert here.log("late") == "0.1\n"


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1000), b""))


async def test_probes_kill_and_hooks_are_run(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    server = "from http.server import *; s = HTTPServer(('127.0.0.1', {port}), SimpleHTTPRequestHandler)"
    with reserved_port() as port:
        async with box(control_plane, namespace, tmp_path) as here:
            failing = {"exec": {"command": ["sh", "-c", "echo ill; exit 1"]}, "initialDelaySeconds": 1}
            liveness = {**PATIENT, **failing, "failureThreshold": 1}
            await here.create("ill", shell("sleep 600", livenessProbe=liveness))
            web = python(
                server.format(port=port) + "; s.serve_forever()",
                ports=[{"name": "web", "containerPort": port}],
            )
            web["readinessProbe"] = {"httpGet": {"path": "/", "port": "web"}, **PATIENT}
            web["startupProbe"] = {"tcpSocket": {"port": port}, **PATIENT}
            hook = {"exec": {"command": ["sh", "-c", f"echo stopped > {tmp_path}/hook"]}}
            start = {"exec": {"command": ["sh", "-c", f"echo started > {tmp_path}/post"]}}
            web["lifecycle"] = {"preStop": hook, "postStart": start}
            await here.create("web", web)
            await here.until("web", lambda pod: first(pod).get("ready"))
            assert (tmp_path / "post").read_text() == "started\n"
            with await here.runtime.connect(namespace, "web", port) as connection:
                connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
                assert b"200 OK" in await asyncio.to_thread(read_all, connection)
            await here.delete("web")
            await here.until_gone("web")
            assert (tmp_path / "hook").read_text() == "stopped\n"
            failed = await here.until_phase("ill", "Failed")
            assert first(failed)["state"]["terminated"]["exitCode"] == 143
            await here.told("ill", "Liveness probe failed: ill")


async def test_too_much_memory_or_scratch_space_is_not_survived(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        limit = {"resources": {"limits": {"memory": "64Mi"}}}
        await here.create(
            "hungry", python("x = bytearray(300_000_000)\nimport time; time.sleep(600)", **limit)
        )
        scratch = {"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}
        mounts = [{"name": "scratch", "mountPath": "/scratch"}]
        line = "head -c 3000000 /dev/zero > /scratch/big; sleep 600"
        await here.create("full", shell(line, volumeMounts=mounts), volumes=[scratch])
        hungry = await here.until_phase("hungry", "Failed")
        assert first(hungry)["state"]["terminated"]["reason"] == "OOMKilled"
        assert first(hungry)["state"]["terminated"]["exitCode"] == 137
        full = await here.until_phase("full", "Failed")
        assert full["status"]["reason"] == "Evicted"
        assert full["status"]["message"].startswith(
            'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi"'
        )


async def test_a_restarted_kubelet_doubles_nothing_and_tells_what_was_lost(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        await here.create("once", shell("echo one; sleep 600"))
        await here.create("again", shell("echo one; sleep 600"), restartPolicy="Always")
        await here.create("done", shell("echo done"))
        await here.create("deleted", shell("echo one; sleep 600"))
        await here.create("limited", shell("sleep 600"), restartPolicy="Always")
        await here.until_phase("done", "Succeeded")
        ready = [
            await here.until(name, lambda pod: first(pod).get("ready"))
            for name in ("once", "again", "deleted", "limited")
        ]
    started = {pod["metadata"]["name"]: first(pod)["state"]["running"]["startedAt"] for pod in ready}
    plane, stopped = control_plane, namespace
    plane.kubectl("-n", stopped, "delete", "pod", "deleted", "--wait=false")
    plane.kubectl("-n", stopped, "patch", "pod", "limited", "-p", '{"spec": {"activeDeadlineSeconds": 1}}')
    async with box(control_plane, namespace, tmp_path) as here:
        lost = await here.until_phase("once", "Failed")
        check_lost(first(lost)["state"]["terminated"], started["once"])
        assert first(lost)["restartCount"] == 0
        again = await here.until(
            "again", lambda pod: first(pod).get("ready") and first(pod)["restartCount"] == 1
        )
        check_lost(first(again)["lastState"]["terminated"], started["again"])
        await here.until_gone("deleted")
        assert here.log("done") == "done\n"
        limited = await here.until_phase("limited", "Failed")
        assert limited["status"]["reason"] == "DeadlineExceeded"


def check_lost(ended: Any, started: str) -> None:
    """As containerd tells it after a reboot."""
    assert (ended["exitCode"], ended["reason"], ended["startedAt"]) == (255, "Unknown", started)


async def test_containers_that_end_with_their_supervisor_are_lost(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        await here.create("once", shell("sleep 600"))
        await here.create("again", shell("sleep 600"), restartPolicy="OnFailure")
        once, again = [
            await here.until(name, lambda pod: first(pod).get("ready")) for name in ("once", "again")
        ]
        os.kill(here.runtime.engine._processes._supervisor.process.pid, signal.SIGKILL)
        lost = await here.until_phase("once", "Failed")
        check_lost(first(lost)["state"]["terminated"], first(once)["state"]["running"]["startedAt"])
        back = await here.until(
            "again", lambda pod: first(pod).get("ready") and first(pod)["restartCount"] == 1
        )
        check_lost(first(back)["lastState"]["terminated"], first(again)["state"]["running"]["startedAt"])


async def test_a_container_whose_command_does_not_exist_never_runs(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """As containerd tells it."""
    async with box(control_plane, namespace, tmp_path) as here:
        missing = {**shell(""), "command": ["no-such-program"]}
        once = await here.create("once", missing)
        await here.create("again", missing, restartPolicy="OnFailure")
        again = await here.until("again", lambda pod: first(pod).get("restartCount") == 1)
        versions = await here.versions(once, lambda pod: pod["status"]["phase"] == "Failed")
    for ended in (first(versions[-1])["state"]["terminated"], first(again)["lastState"]["terminated"]):
        assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
        assert ended["message"] == "cannot start no-such-program: No such file or directory"
    assert [pod["status"]["phase"] for pod in versions if pod["status"]["phase"] == "Running"] == []


async def test_a_terminal_can_be_attached_to_a_container(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with box(control_plane, namespace, tmp_path) as here:
        await here.create("main", shell("sleep 600"))
        await here.until("main", lambda pod: first(pod).get("ready"))
        process = await here.runtime.exec(namespace, "main", "main", ["/bin/sh"], stdin=True, tty=True)
        assert process.stdin is not None
        process.resize(91, 33)
        os.write(process.stdin, b"stty size; hostname; exit 5\n")
        assert await process.wait() == 5
        assert b"33 91" in await read_terminal(process.stdout)
        for end in (process.stdin, process.stdout):
            os.close(end)
        with pytest.raises(NoSuchContainer, match="not found"):
            await here.runtime.exec(namespace, "main", "other", ["true"], stdin=False, tty=False)


@pytest.mark.long
async def test_a_pod_with_the_longest_name_runs_and_goes(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Its folder has the namespace and the uid in its name, too, and a file name ends at 255 bytes."""
    name = ".".join(["a" * 62] * 4) + "a"
    async with box(control_plane, namespace, tmp_path) as here:
        await here.create(name, shell("hostname"))
        await here.until(name, lambda pod: pod["status"]["phase"] == "Succeeded")
        assert len(here.log(name)) > 1
        await here.delete(name)
        await here.until_gone(name)
        await here.until_clean()


async def test_a_container_that_is_added_by_kubectl_debug_runs_once_inside_the_pod(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    def state(pod: Any, name: str) -> Any:
        found = pod["status"].get("ephemeralContainerStatuses", [])
        return next((each["state"] for each in found if each["name"] == name), {})

    async with box(control_plane, namespace, tmp_path) as here:
        await here.create("main", shell("sleep 600"))
        await here.until("main", lambda pod: first(pod).get("ready"))
        path = requests.PODS.path(namespace, "main", "ephemeralcontainers")
        quick, shells = shell("hostname; exit 7", "quick"), shell("read X; echo got $X; exit 3", "shell")
        idle = shell("echo early; sleep 600", "idle")
        added = [quick, {**shells, "stdin": True, "tty": True}, {**idle, "stdin": True}]
        await here.client.send(requests.patch(path, {"spec": {"ephemeralContainers": added}}))
        ended = await here.until("main", lambda pod: "terminated" in state(pod, "quick"))
        assert state(ended, "quick")["terminated"]["exitCode"] == 7
        assert here.log("main", "quick") == "main\n"
        await here.until(
            "main", lambda pod: "running" in state(pod, "shell") and "running" in state(pod, "idle")
        )
        console = here.runtime.console(namespace, "main", "shell")
        assert console is not None
        await console.write(b"hello\n")
        after = await here.until("main", lambda pod: "terminated" in state(pod, "shell"))
        assert state(after, "shell")["terminated"]["exitCode"] == 3
        assert "got hello" in here.log("main", "shell")
        assert here.runtime.console(namespace, "main", "shell") is None, "it has ended"
        assert (first(after)["ready"], first(after)["restartCount"]) == (True, 0), "the pod goes on"
        idle_process = here.runtime.pods[after["metadata"]["uid"]].pod.ephemeral["idle"].process
        await here.delete("main", grace=1)
        await here.until_gone("main")
        assert idle_process is not None
        assert idle_process.ended.done()
        await here.until_clean()
