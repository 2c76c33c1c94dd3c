"""`tfyard why` on a real control plane: real refusals, a real scheduler, and what kubelets say."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.running import Result, tfyard
from tests.controller.cluster import Bench, bench, tfjob
from tfyard.kube import Request, Resource, requests
from tfyard.kube.sync import SyncClient
from tfyard.kubelet.script import Pod
from tfyard.overview.why import Answer, explain
from tfyard.remote import evidence
from tfyard.remote.addresses import TFJOBS
from tfyard.testing import ControlPlane, Script, builders, eventually

pytestmark = pytest.mark.cluster

Manifest = dict[str, Any]
CLAIMS = Resource("", "v1", "persistentvolumeclaims")
QUOTAS = Resource("", "v1", "resourcequotas")
TRACEBACK = """\
Traceback (most recent call last):
  File "/code/train.py", line 12, in <module>
    model = build(int(arguments.size))
KeyError: 'size'"""
PULL = (
    'Back-off pulling image "example/train:1": ErrImagePull: rpc error: code = NotFound desc = failed to pull and'
    ' unpack image "example/train:1": failed to resolve reference: example/train:1: not found'
)
MOUNT = (
    'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32\nMounting command: mount\n'
    "Output: mount.nfs: access denied by server"
)
START = 'failed to create containerd task: exec: "pyhton": executable file not found in $PATH: unknown'


def job(
    name: str, policy: Manifest | None = None, restart: str = "Never", size: int = 1, **spec: Any
) -> Manifest:
    container = {"name": "tensorflow", "image": "example/train:1", **spec.pop("container", {})}
    template = {"spec": {"containers": [container], **spec}}
    worker = {"replicas": size, "restartPolicy": restart, "template": template}
    return tfjob(name, policy=policy, Worker=worker)


def limits(**amounts: Any) -> Manifest:
    return {"resources": {"limits": {name.replace("__", ".com/"): value for name, value in amounts.items()}}}


def claimed(claim: str) -> Manifest:
    return {"volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": claim}}]}


def apart() -> Manifest:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"training.kubeflow.org/job-name": "apart"}},
    }
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": rule}}


FAILS = Script(run_for=0.1, exit_codes=(1,), message=TRACEBACK)
REFUSED: dict[str, tuple[Manifest, str, str]] = {
    "quota": (
        job("quota", container=limits(example__fpga=2)),
        "quota",
        "asks for 2 of requests.example.com/fpga",
    ),
    "priority": (
        job("priority", priorityClassName="high"),
        "priority-class",
        "there is no PriorityClass high",
    ),
    "account": (job("account", serviceAccountName="trainer"), "service-account", "no ServiceAccount trainer"),
    "paused": (job("paused", {"suspend": True}), "suspended", "it is suspended"),
}
KUBELET: dict[str, tuple[Script, str, str]] = {
    "pull": (Script(waiting="ImagePullBackOff", message=PULL), "image-pull", "the registry does not have it"),
    "config": (
        Script(waiting="CreateContainerConfigError", message='secret "token" not found'),
        "secret-missing",
        "there is no Secret token",
    ),
    "command": (
        Script(waiting="RunContainerError", message=START),
        "command",
        "`pyhton` is not in the image",
    ),
    "mount": (Script(waiting="ContainerCreating"), "mount", "mount.nfs: access denied by server"),
    "fails": (FAILS, "program-error", "worker-0 failed with KeyError: 'size' (/code/train.py:12)"),
    "memory": (
        Script(run_for=0.1, exit_codes=(137,), exit_reason="OOMKilled"),
        "out-of-memory",
        "limit of 8Gi",
    ),
    "loop": (
        Script(run_for=0.1, exit_codes=(1,), message=TRACEBACK, restart_after=60),
        "program-error",
        "KeyError",
    ),
    "retries": (FAILS, "program-error", "KeyError"),
    "late": (Script(), "deadline", "longer than its deadline of 1s"),
    "evicted": (Script(), "evicted", "short of ephemeral-storage"),
}
"""What each script leads to."""
TAKEN_AWAY = Script(stop_after=20.0)
"""It goes slowly, so that it can be seen."""
SPECS: dict[str, Manifest] = {
    "memory": {"container": limits(memory="8Gi")},
    "loop": {"restart": "OnFailure"},
    "retries": {"restart": "OnFailure", "policy": {"backoffLimit": 1}},
    "late": {"policy": {"activeDeadlineSeconds": 1}},
}
UNPLACED: dict[str, tuple[Manifest, str, str]] = {
    "offers": (job("offers", container=limits(example__tpu=1)), "no-room", "no node offers example.com/tpu"),
    "large": (
        job("large", container=limits(cpu="5000")),
        "no-room",
        "asks for 5k cpu, and the largest node has 1k",
    ),
    "busy": (
        job("busy", size=2, container=limits(cpu="600")),
        "no-room",
        "400 is left in all; held by busy (600)",
    ),
    "taint": (job("taint", nodeSelector={"pool": "gpu"}), "taint", "but for the taint team=a:NoSchedule"),
    "label": (job("label", nodeSelector={"gpu": "a100"}), "selector", "no node has the label gpu=a100"),
    "apart": (job("apart", size=2, **apart()), "spread", "on different nodes"),
    "missing": (job("missing", **claimed("nope")), "claim-missing", "there is no claim nope"),
    "unbound": (job("unbound", **claimed("out")), "claim-pending", "storage class azurefile does not exist"),
}
"""What the real scheduler cannot place."""


def script(pod: Pod) -> Script:
    name = pod.metadata.name.rpartition("-worker-")[0]
    return (
        KUBELET[name][0] if name in KUBELET else TAKEN_AWAY if name in ("drained", "preempted") else Script()
    )


class Counted(SyncClient):
    """Counts what it asks."""

    requests = 0

    def read(self, request: Request) -> bytes:
        self.requests += 1
        return super().read(request)


def ask(plane: ControlPlane, namespace: str, name: str) -> Answer:
    with SyncClient(plane.admin) as client:
        manifest = client.send(requests.get(TFJOBS.path(namespace, name)))
        return explain(evidence.gather(client, manifest), datetime.now(UTC))


async def check(yard: Bench, plane: ControlPlane, name: str, kind: str, words: str) -> Answer:
    async def look() -> Answer:
        found = await asyncio.to_thread(ask, plane, yard.namespace, name)
        assert [found.causes[0].kind if found.causes else ""] == [kind], (name, found)
        assert words in found.sentence, (name, found)
        return found

    return await eventually(look, 60)


async def warn(yard: Bench, pod: str, reason: str, message: str) -> None:
    """As a kubelet does."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "metadata": {"name": f"{pod}.{reason.lower()}", "namespace": yard.namespace},
        "involvedObject": {"kind": "Pod", "namespace": yard.namespace, "name": pod},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": now,
    }
    await yard.client.send(requests.create(evidence.EVENTS.path(yard.namespace), event))


async def submit(yard: Bench, *manifests: Manifest) -> None:
    for manifest in manifests:
        await yard.submit(manifest)


async def limit_fpgas(yard: Bench) -> None:
    """Who asks for none is not concerned."""
    quota = {"metadata": {"name": "team"}, "spec": {"hard": {"requests.example.com/fpga": "1"}}}
    made = await yard.client.send(requests.create(QUOTAS.path(yard.namespace), quota))
    status = {"status": {"hard": made["spec"]["hard"], "used": {"requests.example.com/fpga": "0"}}}
    await yard.client.send(requests.patch(QUOTAS.path(yard.namespace, "team", "status"), status))


async def test_refusals_and_what_kubelets_say(control_plane: ControlPlane, namespace: str) -> None:
    async with bench(control_plane, namespace, script) as yard:
        await limit_fpgas(yard)
        await submit(yard, *(manifest for manifest, _, _ in REFUSED.values()))
        await submit(yard, *(job(name, **SPECS.get(name, {})) for name in KUBELET))
        await warn(yard, "mount-worker-0", "FailedMount", MOUNT)
        text = "The node was low on resource: ephemeral-storage."
        await yard.phase("Running", "evicted")
        await yard.kubelet.evict("evicted-worker-0", text, own_fault=True)
        for name, (_, kind, words) in (REFUSED | KUBELET).items():
            found = await check(yard, control_plane, name, kind, words)
            assert found.causes[0].evidence, name
        told = await asyncio.to_thread(ask, control_plane, namespace, "retries")
        assert [cause.kind for cause in told.causes] == ["program-error", "retries"]
        assert await asyncio.to_thread(commands, control_plane, namespace) == []


def commands(plane: ControlPlane, namespace: str) -> list[str]:
    """The command itself, as users with all rights and with few see it; what is wrong with it."""
    wrong = []
    done = why(plane, namespace, "fails", "-o", "json")
    answer = json.loads(done.out)
    if (done.code, answer["state"], answer["causes"][0]["tasks"]) != (1, "failed", ["worker-0"]):
        wrong.append(done.out + done.err)
    done = why(plane, namespace, "pull", "--as", "somebody", "--as-group", "readers")
    if done.code != 1 or "cannot get resource" not in done.err or done.err.count("\n") != 1:
        wrong.append(done.out + done.err)
    wrong += [f"imports {module}" for module in imported(plane, namespace) if module in SLOW]
    with Counted(plane.admin) as client:
        evidence.gather(client, client.send(requests.get(TFJOBS.path(namespace, "pull"))))
        if client.requests != len(("job", "pods", "events")):
            wrong.append(f"{client.requests} requests")
    done = why(plane, namespace, "nothing")
    if done.code != 1 or "TFJob 'nothing' not found in the namespace" not in done.err:
        wrong.append(done.out + done.err)
    return wrong


SLOW = ("aiohttp", "asyncio", "subprocess", "rich", "tfyard.planner", "tfyard.formats")


def imported(plane: ControlPlane, namespace: str) -> list[str]:
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from tfyard.cli.main import main; main()"
    )
    command = [sys.executable, "-c", program, "why", "-n", namespace, "pull"]
    env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    return done.stderr.split()


def why(plane: ControlPlane, namespace: str, *args: str) -> Result:
    return tfyard("why", "-n", namespace, *args, KUBECONFIG=str(plane.kubeconfig))


FEW_RIGHTS = [
    {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
]


async def grant_few_rights(yard: Bench) -> None:
    api = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + yard.namespace
    await yard.client.send(
        requests.create(f"{api}/roles", {"metadata": {"name": "few"}, "rules": FEW_RIGHTS})
    )
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "reader"}
    role = {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": "few"}
    binding = {"metadata": {"name": "few"}, "roleRef": role, "subjects": [subject]}
    await yard.client.send(requests.create(f"{api}/rolebindings", binding))


async def make_a_tainted_node(yard: Bench) -> str:
    name = f"{yard.namespace}-gpu"
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    node = {"metadata": {"name": name, "labels": {"pool": "gpu"}}, "spec": {"taints": [taint]}}
    await yard.client.send(requests.create(requests.NODES.path(), node))
    await yard.kubelet.nodes.report(name, "True", "KubeletReady")
    return name


async def be_taken_away(yard: Bench, plane: ControlPlane) -> None:
    """By a drain, and by the scheduler."""
    path = requests.PODS.path(yard.namespace, "drained-worker-0", "eviction")
    await submit(yard, job("drained"), job("preempted"))
    await yard.phase("Running", "drained")
    await yard.phase("Running", "preempted")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "drained-worker-0"}}
    await yard.client.send(requests.create(path, eviction))
    await yard.kubelet.preempt("preempted-worker-0")
    for name in ("drained", "preempted"):
        await check(yard, plane, name, name, "worker-0")


async def be_refused(yard: Bench, plane: ControlPlane) -> None:
    """By PodSecurity, and by a webhook that nobody serves."""
    hook = {
        "name": "pods.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
        ],
        "objectSelector": {"matchLabels": {"training.kubeflow.org/job-name": "hooked"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    hooks = Resource(
        "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
    )
    made = {"metadata": {"name": f"{yard.namespace}-hooks"}, "webhooks": [hook]}
    await yard.client.send(requests.create(hooks.path(), made))
    await asyncio.sleep(1.5)  # until the server has noticed
    await yard.submit(job("hooked"))
    await check(yard, plane, "hooked", "webhook-down", "pods.example.com cannot be reached")
    await yard.client.send(requests.delete(hooks.path(name=f"{yard.namespace}-hooks")))
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await yard.client.send(requests.patch(requests.NAMESPACES.path(name=yard.namespace), label))
    await yard.submit(job("secure"))
    await check(yard, plane, "secure", "pod-security", "PodSecurity restricted:latest")


@pytest.mark.long
async def test_what_the_real_scheduler_cannot_place(controllers: ControlPlane, namespace: str) -> None:
    async with bench(controllers, namespace, script, schedules=True) as yard:
        await grant_few_rights(yard)
        node = await make_a_tainted_node(yard)
        claim = {
            "metadata": {"name": "out"},
            "spec": {
                "storageClassName": "azurefile",
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        await yard.client.send(requests.create(CLAIMS.path(namespace), claim))
        for name, (manifest, kind, words) in UNPLACED.items():
            await yard.submit(manifest)
            found = await check(yard, controllers, name, kind, words)
            assert found.code == 3
            await yard.client.send(requests.delete(TFJOBS.path(namespace, name)))
        await yard.submit(UNPLACED["taint"][0])
        await check(yard, controllers, "taint", "taint", "")
        done = await asyncio.to_thread(why, controllers, namespace, "taint", "--as", "reader")
        await yard.client.send(requests.delete(requests.NODES.path(name=node)))
        await be_taken_away(yard, controllers)
        await be_refused(yard, controllers)
    assert done.code == 3, done.err
    assert "which one, the scheduler does not say, and the nodes may not be listed" in done.out
    assert "could not be read: events: you may not list events" in done.out
    assert "could not be read: nodes: you may not list nodes" in done.out


async def test_a_job_on_which_nobody_works(control_plane: ControlPlane, namespace: str) -> None:
    async with control_plane.client() as client:
        await builders.install_crds(client)
        await client.send(requests.create(TFJOBS.path(namespace), job("alone")))
    with SyncClient(control_plane.admin) as client:
        manifest = client.send(requests.get(TFJOBS.path(namespace, "alone")))
        found = evidence.gather(client, manifest)
    created = datetime.fromisoformat(manifest["metadata"]["creationTimestamp"])
    told = explain(found, created + timedelta(minutes=1))
    assert (told.code, told.causes[0].kind, told.causes[0].fix) == (3, "no-operator", "tfyard install")
    assert explain(found, created + timedelta(seconds=1)).causes == ()
