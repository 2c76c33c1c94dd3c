"""`tfyard why` of jobs that the real scheduler cannot place, or whose pods the real controllers take away."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.background import Background, in_background
from tests.cli.running import tfyard
from tests.cli.test_describe import allow
from tests.controller.cluster import Bench, bench
from tests.remote.asking import told
from tests.remote.situations import (
    MINUTE,
    PATIENT,
    PRIORITIES,
    SLOW_TO_STOP,
    Manifest,
    Situation,
    claimed,
    job,
    limits,
    selecting,
)
from tests.wording import is_said
from tfyard.kube import Patch, Resource, requests
from tfyard.model.names import QUEUE_NAME
from tfyard.testing import CONTROLLERS, ControlPlane, builders
from tfyard.testing.script import Pod, Script

pytestmark = [pytest.mark.cluster, pytest.mark.long]

CLAIMS = Resource("", "v1", "persistentvolumeclaims")
VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
DEVICES = Resource("resource.k8s.io", "v1", "resourceclaims")
READER = "reader"
TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}
HOST = "kubernetes.io/hostname"


def apart(name: str) -> Manifest:
    rule = [{"topologyKey": HOST, "labelSelector": selecting(name)}]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}}


def spread(name: str) -> Manifest:
    rule = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": selecting(name)}]}


def beside(name: str) -> Manifest:
    rule = [{"topologyKey": HOST, "labelSelector": selecting(name)}]
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}}


def attracted(key: str, *values: str) -> Manifest:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": rule}}


def on(pool: str) -> Manifest:
    return {"nodeSelector": {"pool": pool}}


# --- what happens


async def add_node(yard: Bench, pool: str, ready: str = "True", **spec: Any) -> None:
    """One more node of the same kubelet."""
    name = f"{yard.namespace}-{pool}"
    labels = {"pool": pool, HOST: name}
    node = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    await yard.client.send(requests.create(requests.NODES.path(), node))
    yard.kubelet.nodes.names.append(name)
    await yard.kubelet.nodes.report(name, ready, "KubeletReady" if ready == "True" else "KubeletNotReady")


async def make_claims(yard: Bench) -> None:
    """Of a class that does not exist, without a class, of a class that makes no volumes, one whose volume is on a
    node that does not exist, and one for a single pod."""
    elsewhere = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["elsewhere"]}]}
    size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    volume = {
        "capacity": size,
        "accessModes": modes,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [elsewhere]}},
        "claimRef": {"namespace": yard.namespace, "name": "far"},
    }
    named = {"metadata": {"name": yard.namespace}, "spec": volume}
    await yard.client.send(requests.create(VOLUMES.path(), named))
    single = {
        **volume,
        "accessModes": ["ReadWriteOncePod"],
        "claimRef": {"namespace": yard.namespace, "name": "once"},
    }
    single |= {"local": None, "nodeAffinity": None, "hostPath": {"path": "/data"}}
    await yard.client.send(
        requests.create(VOLUMES.path(), {"metadata": {"name": f"{yard.namespace}-once"}, "spec": single})
    )
    waits = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    await yard.client.send(requests.create(CLASSES.path(), {"metadata": {"name": yard.namespace}, **waits}))
    claims: dict[str, Manifest] = {
        "nearby": {"storageClassName": yard.namespace},
        "once": {
            "storageClassName": "",
            "volumeName": f"{yard.namespace}-once",
            "accessModes": ["ReadWriteOncePod"],
        },
        "azure": {"storageClassName": "azurefile"},
        "plain": {},
        "far": {"storageClassName": "", "volumeName": yard.namespace},
    }
    for name, fields in claims.items():
        spec = {"accessModes": modes, "resources": {"requests": size}, **fields}
        await yard.client.send(
            requests.create(CLAIMS.path(yard.namespace), {"metadata": {"name": name}, "spec": spec})
        )


async def claim_a_device(yard: Bench) -> None:
    """Of a class that does not exist: the driver of these devices is not installed."""
    asked = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    claim = {"metadata": {"name": "classless"}, "spec": {"devices": {"requests": [asked]}}}
    await yard.client.send(requests.create(DEVICES.path(yard.namespace), claim))


async def submit_the_more_important(yard: Bench) -> None:
    await yard.phase("Running", "low")
    made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    await yard.client.send(requests.apply(PRIORITIES.path(name="urgent"), {**made, "value": 1000}))
    container = limits(nvidia__gpu=600)
    await yard.submit(job("high", priorityClassName="urgent", container=container))


async def taint(yard: Bench) -> None:
    await yard.phase("Running", "doomed")
    node = requests.NODES.path(name=f"{yard.namespace}-doomed")
    taints = [{"key": "maintenance", "effect": "NoExecute"}]
    await yard.client.send(requests.patch(node, {"spec": {"taints": taints}}, Patch.STRATEGIC))


async def fall_silent(yard: Bench) -> None:
    """The kubelet of a node stops answering; Kubernetes notices after 50 s."""
    await yard.phase("Running", "silent")
    yard.kubelet.nodes.lost.add(f"{yard.namespace}-silent")


SITUATIONS = {
    each.name: each
    for each in (
        Situation(
            name="offers",
            kind="no-room",
            words="no node offers example.com/tpu, and worker-0 asks for it",
            fix=("install the device plugin of these GPUs (`kubectl describe nodes` lists what they offer)"),
            job={"container": limits(example__tpu=1)},
        ),
        Situation(
            name="large",
            kind="no-room",
            words="worker-0 asks for 5k cpu, and the largest node has 1k",
            fix="TFJob: `resources: {limits: {cpu: 1k}}` of the container tensorflow at most",
            job={"container": limits(cpu="5000"), **on("main")},
        ),
        Situation(
            name="busy",
            kind="no-room",
            words="the nodes are busy: worker-… asks for 600 cpu, 400 is left in all; held by busy (600)",
            fix="wait, or ask for less: `cpu:`",
            job={"size": 2, "container": limits(cpu="600"), **on("main")},
        ),
        Situation(
            name="tainted",
            kind="taint",
            words="1 node would take worker-0, but for the taint team=a:NoSchedule",
            fix=(
                "TFJob: `tolerations: [{key: team, operator: Exists, effect: NoSchedule}]` in the "
                "`spec:` of the pod template"
            ),
            job=on("gpu"),
        ),
        Situation(
            name="closed",
            kind="cordoned",
            words="1 node that would take worker-0 is cordoned",
            fix="kubectl uncordon NAMESPACE-closed",
            job=on("closed"),
        ),
        Situation(
            name="sick",
            kind="node-state",
            words="1 node that would take worker-0 is not-ready",
            fix="kubectl describe nodes",
            job=on("sick"),
        ),
        Situation(
            name="label",
            kind="selector",
            words=(
                "no node has the label pool=a100 that worker-0 asks for; there are: pool=closed (1), "
                "pool=doomed (1), pool=gpu (1), pool=main (1), pool=sick (1)…"
            ),
            job=on("a100"),
            fix="TFJob: `nodeSelector:` in the `spec:` of the pod template",
        ),
        Situation(
            name="attracted",
            kind="selector",
            words="no node has all that worker-0 asks for: gpu In (a100, h100)",
            job=attracted("gpu", "a100", "h100"),
            fix=(
                "TFJob: `nodeSelector:` in the `spec:` of the pod template, or the affinity of its "
                "`template:`"
            ),
        ),
        Situation(
            name="apart",
            kind="spread",
            words="no node takes worker-…: its tasks must be on different nodes, and there are too few",
            fix="`tfyard convert FILE --to jobfile` writes a job file; there: `spread: prefer`",
            job={"size": 2, **apart("apart"), **on("main")},
        ),
        Situation(
            name="spread",
            kind="spread",
            words="no node takes worker-…: there are too few nodes to spread its tasks as demanded",
            fix="`tfyard convert FILE --to jobfile` writes a job file; there: `spread: prefer`",
            job={"size": 2, **spread("spread")},
        ),
        Situation(
            name="beside",
            kind="affinity",
            words="no node takes worker-0: no node has the pods beside which it wants to run",
            job=beside("nobody"),
        ),
        Situation(
            name="device",
            kind="resource-claim",
            words="worker-0 waits until there are its resource claims: none",
            fix="kubectl -n NAMESPACE get resourceclaims",
            job={"resourceClaims": [{"name": "gpu", "resourceClaimName": "none"}]},
            later=MINUTE,
        ),
        Situation(
            name="classless",
            kind="unschedulable",
            words="no node takes worker-0: request gpu: device class gpu.example.com does not exist",
            job={"resourceClaims": [{"name": "gpu", "resourceClaimName": "classless"}]},
        ),
        Situation(
            name="shared",
            kind="multi-attach",
            words=(
                "no node takes worker-…: another pod has its claim, and the access mode "
                "ReadWriteOncePod lets only one have it"
            ),
            fix=(
                "`tfyard convert FILE --to jobfile` writes a job file; there: a claim with `access: "
                "ReadWriteMany`"
            ),
            job={"size": 2, **claimed("once")},
        ),
        Situation(
            name="nearby",
            kind="claim-pending",
            words=(
                "no node takes worker-0: its claim waits for a volume, and none that fits is free on a node"
            ),
            fix="kubectl get pv",
            job=claimed("nearby"),
        ),
        Situation(
            name="port",
            kind="port-in-use",
            words="no node takes worker-…: the host port that it asks for is in use on every node",
            job={
                "size": 2,
                "container": {"ports": [{"containerPort": 2222, "hostPort": 2222}]},
                **on("main"),
            },
            fix="use another port, or no hostNetwork",
        ),
        Situation(
            name="missing",
            kind="claim-missing",
            words="worker-0 cannot start: there is no claim nope in namespace NAMESPACE",
            fix=(
                "`tfyard convert FILE --to jobfile` writes a job file; there: `volumes: {NAME: {claim: "
                "nope, size: 10Gi, at: PATH}}` creates it"
            ),
            job=claimed("nope"),
        ),
        Situation(
            name="unbound",
            kind="claim-pending",
            words=(
                "worker-0 cannot start: claim azure waits for a volume, because storage class "
                "azurefile does not exist; there are: …"
            ),
            job=claimed("azure"),
            fix=(
                "kubectl -n NAMESPACE delete pvc azure; then `tfyard convert FILE --to jobfile` writes "
                "a job file; there: `storageClass: …`"
            ),
        ),
        Situation(
            name="plain",
            kind="claim-pending",
            words=(
                "worker-0 cannot start: claim plain waits for a volume, because it names no storage "
                "class, and no class is the default; there are: …"
            ),
            job=claimed("plain"),
            fix=(
                "kubectl -n NAMESPACE delete pvc plain; then `tfyard convert FILE --to jobfile` writes "
                "a job file; there: `storageClass: …`"
            ),
        ),
        Situation(
            name="far",
            kind="volume-zone",
            words="no node takes worker-0: its volume is on nodes or in a zone where no fitting node is",
            fix=(
                "choose nodes of the volume's zone, or a new claim whose class waits for the pod "
                "(WaitForFirstConsumer)"
            ),
            job=claimed("far"),
        ),
        Situation(
            name="unseen",
            kind="no-scheduler",
            words="no scheduler has looked at worker-0: is volcano running?",
            job={"schedulerName": "volcano"},
            later=MINUTE,
            fix="kubectl -n kube-system get pods",
        ),
        Situation(
            name="gated",
            kind="queue",
            words=(
                "it waits for queue team, and Kueue has not taken it up: does Kueue run, and is there "
                "such a queue?"
            ),
            job={
                "labels": {QUEUE_NAME: "team"},
                "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
            },
            fix="kubectl -n NAMESPACE get localqueues",
        ),
        Situation(
            name="low",
            kind="preempted",
            words="worker-0: preempted by a pod of a higher priority",
            fix="it runs again, and that costs no retry",
            job={"container": limits(nvidia__gpu=600), **on("main"), **PATIENT},
            script=SLOW_TO_STOP,
            after=submit_the_more_important,
        ),
        Situation(
            name="doomed",
            kind="node-lost",
            words="worker-0: deleted because its node has a NoExecute taint: it is not ready, or drained",
            fix="it runs again, and that costs no retry",
            job={**on("doomed"), **PATIENT},
            script=SLOW_TO_STOP,
            after=taint,
        ),
        Situation(
            name="silent",
            kind="node-lost",
            words=(
                "the node NAMESPACE-silent of worker-0 has not answered for …: nobody knows whether it still "
                "runs"
            ),
            fix=(
                "kubectl describe node NAMESPACE-silent; unless its template says otherwise, Kubernetes takes "
                "the pod away after five minutes, and that costs no retry"
            ),
            job=on("silent"),
            after=fall_silent,
        ),
    )
}


def script(pod: Pod) -> Script:
    found = SITUATIONS.get(pod.metadata.name.rpartition("-worker-")[0])
    return found.script if found and isinstance(found.script, Script) else Script()


@asynccontextmanager
async def stage(plane: ControlPlane) -> AsyncIterator[Bench]:
    async with plane.client() as client:
        namespace = await builders.create_namespace(client)
    async with bench(plane, namespace, script, schedules=True) as yard:
        (main,) = yard.kubelet.nodes.names
        label = {"metadata": {"labels": {"pool": "main"}}}
        await yard.client.send(requests.patch(requests.NODES.path(name=main), label))
        await add_node(yard, "gpu", taints=[TEAM])
        await add_node(yard, "closed", unschedulable=True)
        await add_node(yard, "sick", ready="False")
        await add_node(yard, "doomed")
        await add_node(yard, "silent")
        await make_claims(yard)
        await claim_a_device(yard)
        for each in SITUATIONS.values():
            await yard.submit(job(each.name, **each.job))
        await asyncio.gather(*(each.after(yard) for each in SITUATIONS.values() if each.after))
        yield yard
        for path in (
            VOLUMES.path(name=namespace),
            VOLUMES.path(name=f"{namespace}-once"),
            CLASSES.path(name=namespace),
        ):
            await yard.client.send(requests.delete(path))


@pytest.fixture(scope="module")
def scene(_control_plane: ControlPlane) -> Iterator[Background[Bench]]:
    for name in CONTROLLERS:
        _control_plane.start(name)
    try:
        with in_background(stage(_control_plane)) as found:
            rules = [
                {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get", "list"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            ]
            allow(_control_plane, found.value.namespace, READER, rules)
            yield found
    finally:
        for name in CONTROLLERS:
            _control_plane.stop(name)


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=lambda each: each.name)
def test_what_the_scheduler_and_controllers_do_is_understood(
    situation: Situation, scene: Background[Bench], control_plane: ControlPlane
) -> None:
    where, admin = scene.value.namespace, control_plane.admin
    found = scene.do(told(admin, where, situation.name, situation.kind, situation.later))
    assert is_said(situation.words, found.sentence), found.sentence
    assert is_said(situation.fix, found.causes[0].fix), found.causes[0].fix
    assert (found.code, bool(found.causes[0].evidence)) == (3, True)


def test_a_preemption_names_the_pod_for_which_it_was(
    scene: Background[Bench], control_plane: ControlPlane
) -> None:
    found = scene.do(told(control_plane.admin, scene.value.namespace, "low", "preempted"))
    event, words = (quote.text for quote in found.causes[0].evidence)
    assert event.startswith("Preempted by pod ")
    assert "preempting to accommodate a higher priority pod" in words


def test_what_the_user_may_not_read_is_said_and_the_rest_is_answered(
    scene: Background[Bench], control_plane: ControlPlane
) -> None:
    where = scene.value.namespace
    scene.do(told(control_plane.admin, where, "tainted", "taint"))
    words = ("why", "-n", where, "tainted", "--as", READER)
    done = tfyard(*words, KUBECONFIG=str(control_plane.kubeconfig))
    assert done.code == 3, done.err
    assert "the scheduler does not name it, and you may not list nodes" in done.out
    assert "could not be read: events: you may not list events" in done.out
    assert "could not be read: nodes: you may not list nodes" in done.out
