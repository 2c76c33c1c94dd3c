"""Situations of jobs that a real API server and what kubelets say bring about, and what `tfyard why` says of them.

The words of kubelets and controllers are those of Kubernetes 1.36.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from msgspec import Struct

from tests.controller.cluster import Bench, tfjob
from tfyard.kube import Client, KubeError, Patch, Resource, requests
from tfyard.kube.requests import TFJOBS
from tfyard.model.names import ATTEMPT, JOB_NAME, QUEUE_NAME
from tfyard.testing import Pod, Script, builders, eventually
from tfyard.testing.script import Scripts

Manifest = dict[str, Any]
Step = Callable[[Bench], Awaitable[None]]
QUOTAS = Resource("", "v1", "resourcequotas")
PRIORITIES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
MINUTE = timedelta(minutes=1)


class Situation(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    words: str
    """In the sentence."""
    fix: str = ""
    code: int = 3
    also: str = ""
    """The kind of another cause that is told after it."""
    place: str = "open"
    """Of the namespaces; the others are stricter."""
    job: Manifest = {}
    """Arguments of `job`."""
    script: Scripts = Script()
    before: Step | None = None
    after: Step | None = None
    """Once the job is submitted."""
    later: timedelta = timedelta()
    """So long after it happened, `why` is asked."""


def job(
    name: str,
    policy: Manifest | None = None,
    restart: str = "Never",
    size: int = 1,
    labels: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    container = {"name": "tensorflow", "image": "example/train:1", **spec.pop("container", {})}
    template = {"spec": {"containers": [container], **spec}}
    worker = {"replicas": size, "restartPolicy": restart, "template": template}
    made = tfjob(name, policy=policy, Worker=worker)
    return {**made, "metadata": {"name": name, "labels": labels or {}}}


def limits(**amounts: Any) -> Manifest:
    """`example__fpga` is example.com/fpga."""
    return {"resources": {"limits": {name.replace("__", ".com/"): value for name, value in amounts.items()}}}


def claimed(claim: str) -> Manifest:
    return {"volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": claim}}]}


def selecting(*names: str) -> Manifest:
    """The pods of these jobs."""
    return {"matchExpressions": [{"key": JOB_NAME, "operator": "In", "values": [*names]}]}


def warning(pod: str, reason: str, message: str) -> Step:
    """As kubelets and controllers write events, of a pod that is on its node."""

    async def write(yard: Bench) -> None:
        await eventually(partial(_is_set_up, yard, pod))
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "metadata": {"name": f"{pod}.{reason.lower()}", "namespace": yard.namespace},
            "involvedObject": {"kind": "Pod", "namespace": yard.namespace, "name": pod},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await yard.client.send(requests.create(requests.EVENTS.path(yard.namespace), event))

    return write


async def _is_set_up(yard: Bench, pod: str) -> None:
    found = await yard.client.send(requests.get(requests.PODS.path(yard.namespace, pod)))
    assert "startTime" in found["status"]


# --- what the API server refuses


async def is_refused(client: Client, pod: Manifest, why: str = "") -> None:
    """The server notices its new guards a moment later."""
    path = requests.PODS.path(pod["metadata"]["namespace"])
    try:
        await client.send(requests.create(path, pod, {"dryRun": "All"}))
    except KubeError as problem:
        if why in str(problem):
            return
        raise
    raise AssertionError("this pod is still accepted")


def quota(name: str, hard: Manifest, refused: Manifest, **spec: Any) -> Step:
    """Its status is written by a controller that does not run here, so it is written by us. `refused`: arguments
    of a job whose pods it refuses from then on."""

    async def make(yard: Bench) -> None:
        made = {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}
        await yard.client.send(requests.create(QUOTAS.path(yard.namespace), made))
        counted = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        await yard.client.send(requests.patch(QUOTAS.path(yard.namespace, name, "status"), counted))
        (worker,) = job("try", **refused)["spec"]["tfReplicaSpecs"].values()
        tried = {"metadata": {"name": "try", "namespace": yard.namespace}, **worker["template"]}
        await eventually(partial(is_refused, yard.client, tried, "quota"))

    return make


async def count_pods_of_a_priority(yard: Bench) -> None:
    """A quota for the pods of one priority class, so that no other job is concerned."""
    await yard.client.send(
        requests.apply(PRIORITIES.path(name="counted"), {**CLASS, "metadata": {"name": "counted"}})
    )
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["counted"]}
    selector = {"matchExpressions": [scope]}
    await quota("counted", {"limits.cpu": "4"}, {"priorityClassName": "counted"}, scopeSelector=selector)(
        yard
    )


CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5}


async def take_the_name(yard: Bench) -> None:
    stranger = builders.pod("taken-worker-0")
    await yard.client.send(requests.create(requests.PODS.path(yard.namespace), stranger))


async def scale_beyond_tf_config(yard: Bench) -> None:
    await yard.phase("Running", "edited")
    scale = {"spec": {"replicas": 2400}}  # with a namespace of one letter, TF_CONFIG could list them
    await yard.client.send(requests.patch(TFJOBS.path(yard.namespace, "edited", "scale"), scale))


async def write_nonsense(yard: Bench) -> None:
    await yard.phase("Suspended", "nonsense")
    path = TFJOBS.path(yard.namespace, "nonsense", "status")
    broken = {"tasks": {"Worker": {"finished": "some of them"}}}
    await yard.client.send(requests.patch(path, {"status": broken}))


REFUSED = (
    Situation(
        name="quota",
        kind="quota",
        words=(
            "quota team leaves too little: the next pod asks for 2 of requests.example.com/fpga, "
            "and 0 of 1 are in use"
        ),
        fix="kubectl -n NAMESPACE describe quota team",
        job={"container": limits(example__fpga=2)},
        before=quota("team", {"requests.example.com/fpga": "1"}, {"container": limits(example__fpga=2)}),
    ),
    Situation(
        name="unsaid",
        kind="quota-unsaid",
        words=("quota counted accepts only pods that say how much they need: limits.cpu for: tensorflow"),
        fix=(
            "TFJob: `resources: {limits: {cpu: 1}}` of the container tensorflow and `resources: "
            "{limits: {memory: 4Gi}}` of the container tensorflow"
        ),
        job={"priorityClassName": "counted"},
        before=count_pods_of_a_priority,
    ),
    Situation(
        name="priority",
        kind="priority-class",
        words="there is no PriorityClass high",
        job={"priorityClassName": "high"},
        fix="kubectl get priorityclasses",
    ),
    Situation(
        name="account",
        kind="service-account",
        words="there is no ServiceAccount trainer in namespace NAMESPACE",
        fix="kubectl -n NAMESPACE create serviceaccount trainer",
        job={"serviceAccountName": "trainer"},
    ),
    Situation(
        name="taken",
        kind="refused",
        words=(
            "it is blocked: pod taken-worker-0 exists and is not this job's; delete or rename one of them"
        ),
        before=take_the_name,
    ),
    Situation(
        name="edited",
        kind="invalid-spec",
        words=(
            "its spec is invalid: TFJob NAMESPACE/edited is invalid: "
            "spec.tfReplicaSpecs[Worker].replicas: TF_CONFIG would have … bytes; Linux allows at "
            "most 131,072 (…)"
        ),
        fix="correct it: kubectl -n NAMESPACE edit tfjob edited",
        after=scale_beyond_tf_config,
    ),
    Situation(
        name="nonsense",
        kind="status-unreadable",
        words=(
            "its stored status cannot be read, so the operator does nothing: "
            "status.tasks.Worker.finished: must be indexes such as 0-2,7, not 'some of them'"
        ),
        fix="kubectl -n NAMESPACE edit tfjob nonsense --subresource=status",
        job={"policy": {"suspend": True}},
        after=write_nonsense,
    ),
    Situation(
        name="paused",
        kind="suspended",
        words="it is suspended until it is resumed",
        fix="tfyard resume paused -n NAMESPACE",
        job={"policy": {"suspend": True}},
    ),
    Situation(
        name="queued",
        kind="queue",
        words=(
            "it waits for queue team, and Kueue has not taken it up: does Kueue run, and is there "
            "such a queue?"
        ),
        fix="kubectl -n NAMESPACE get localqueues",
        job={"policy": {"suspend": True}, "labels": {QUEUE_NAME: "team"}},
    ),
    Situation(
        name="elsewhere",
        kind="managed-by",
        words=(
            "another controller is to run it: managedBy is kueue.x-k8s.io/multikueue, so tfyard's "
            "operator leaves it alone"
        ),
        fix="remove `spec.runPolicy.managedBy: kueue.x-k8s.io/multikueue`",
        job={"policy": {"managedBy": "kueue.x-k8s.io/multikueue"}},
        later=MINUTE,
    ),
)


# --- what kubelets say

TRACEBACK = """\
Traceback (most recent call last):
  File "/code/train.py", line 12, in <module>
    model = build(int(arguments.size))
KeyError: 'size'"""
PULL = 'Back-off pulling image "example/train:1": ErrImagePull: '
NO_SUCH_IMAGE = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "example/train:1": failed to resolve'
    " reference: example/train:1: not found"
)
PRIVATE = (
    'failed to pull and unpack image "example/train:1": failed to resolve reference "example/train:1": pull access'
    " denied, repository does not exist or may require authorization: server message: insufficient_scope:"
    " authorization failed"
)
INVALID_NAME = (
    'Failed to apply default image tag "example/Train": couldn\'t parse image name "example/Train": invalid'
    " reference format: repository name (library/example/Train) must be lowercase"
)
NEVER = 'Container image "example/train:1" is not present with pull policy of Never'
NO_PULL_SECRET = (
    "Unable to retrieve some image pull secrets (hub); attempting to pull the image may not succeed."
)
MOUNT = (
    'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32\nMounting command: mount\n'
    "Output: mount.nfs: access denied by server"
)
ATTACHED = 'Multi-Attach error for volume "pvc-4f1c" Volume is already used by pod(s) other-worker-1'
NOT_FOUND = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed:"
    ' unable to start container process: error during container init: exec: "pyhton": executable file not found in'
    " $PATH: unknown"
)
NOT_ALLOWED = NOT_FOUND.replace(
    '"pyhton": executable file not found in $PATH', '"./run.sh": permission denied'
)
RESERVED = 'failed to reserve container name "tensorflow_1": name "tensorflow_1" is reserved for "4f1c"'
AS_ROOT = (
    'container has runAsNonRoot and image will run as root (pod: "root-worker-0_x(1)", container: tensorflow)'
)


def fails(text: str = TRACEBACK, code: int = 1, **fields: Any) -> Script:
    return Script(run_for=0.1, exit_codes=(code,), message=text, **fields)


def waits(reason: str, message: str) -> Script:
    return Script(waiting=reason, message=message)


def half(pod: Pod) -> Script:
    return waits("ImagePullBackOff", PULL + NO_SUCH_IMAGE) if pod.metadata.name.endswith("-1") else Script()


def first_succeeds(pod: Pod) -> Script:
    is_first = pod.metadata.name.endswith("-0")
    return Script(run_for=0.1) if is_first else Script(message=TRACEBACK)


async def fail_afterwards(yard: Bench) -> None:
    """worker-1, when the job has succeeded with worker-0."""
    await yard.phase("Succeeded", "partly")
    await yard.kubelet.finish("partly-worker-1", 1)


def rebooted(pod: Pod) -> Script:
    """The node of the first attempt."""
    is_first = pod.metadata.annotations[ATTEMPT] == "0"
    return fails("", 255, exit_reason="Unknown") if is_first else Script()


async def evict(yard: Bench) -> None:
    await yard.phase("Running", "evicted")
    text = "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 900Mi."
    await yard.kubelet.evict("evicted-worker-0", text, own_fault=True)


SLOW_TO_STOP = Script(stop_after=600.0)
PATIENT = {"terminationGracePeriodSeconds": 600}
"""Its pods go so slowly that this can be seen."""


def drain(name: str) -> Step:
    async def ask(yard: Bench) -> None:
        await yard.phase("Running", name)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": f"{name}-worker-0"}}
        path = requests.PODS.path(yard.namespace, f"{name}-worker-0", "eviction")
        await yard.client.send(requests.create(path, eviction))

    return ask


def delete_pod(name: str, grace: int | None = None) -> Step:
    """And wait until its successor runs. It is gone before the operator looks at its job again."""

    async def delete(yard: Bench) -> None:
        await yard.phase("Running", name)
        path = requests.PODS.path(yard.namespace, f"{name}-worker-0")
        first: Any = await yard.client.send(requests.get(path))
        await yard.client.send(requests.delete(path, grace=grace))

        async def is_replaced() -> None:
            now: Any = await yard.client.send(requests.get(path))
            assert now["metadata"]["uid"] != first["metadata"]["uid"]
            assert now["status"]["phase"] == "Running"

        await eventually(is_replaced)

    return delete


async def delete_slowly(yard: Bench) -> None:
    await yard.phase("Running", "ending")
    await yard.client.send(requests.delete(requests.PODS.path(yard.namespace, "ending-worker-0")))


async def submit_again(yard: Bench) -> None:
    """Another job of this name, while a pod of the first one still ends. No garbage collector runs here."""
    await yard.phase("Running", "again")
    await yard.client.send(requests.delete(TFJOBS.path(yard.namespace, "again")))
    await yard.client.send(requests.delete(requests.PODS.path(yard.namespace, "again-worker-0")))
    await yard.submit(job("again"))


async def is_back(yard: Bench) -> None:
    async def look() -> None:
        pod: Any = await yard.client.send(
            requests.get(requests.PODS.path(yard.namespace, "rebooted-worker-0"))
        )
        assert pod["metadata"]["annotations"][ATTEMPT] == "1"
        assert pod["status"]["phase"] == "Running"

    await eventually(look)


async def preempt(yard: Bench) -> None:
    await yard.phase("Running", "preempted")
    await yard.kubelet.preempt("preempted-worker-0")


async def collect_as_garbage(yard: Bench) -> None:
    """As the garbage collector of pods does whose node is gone; it waits 40 seconds before that."""
    await yard.phase("Running", "lost")
    told = {"reason": "DeletionByPodGC", "message": "PodGC: node no longer exists"}
    path = requests.PODS.path(yard.namespace, "lost-worker-0")
    conditions = [{"type": "DisruptionTarget", "status": "True", **told}]
    status = {"status": {"phase": "Failed", "conditions": conditions}}
    await yard.client.send(requests.patch(f"{path}/status", status, Patch.STRATEGIC))
    await yard.client.send(requests.delete(path, grace=0))


KUBELETS = (
    Situation(
        name="pull",
        kind="image-pull",
        words="worker-0 cannot pull example/train:1: the registry does not have it",
        fix="check the name and the tag: `image: NAME:TAG`",
        script=waits("ImagePullBackOff", PULL + NO_SUCH_IMAGE),
    ),
    Situation(
        name="private",
        kind="image-pull",
        words=(
            "worker-0 cannot pull example/train:1: there is no such repository, or it is private; "
            "there is no Secret hub in namespace NAMESPACE"
        ),
        fix="kubectl -n NAMESPACE create secret docker-registry hub --docker-server=REGISTRY …",
        job={"imagePullSecrets": [{"name": "hub"}]},
        script=waits("ImagePullBackOff", PULL + PRIVATE),
        after=warning("private-worker-0", "FailedToRetrieveImagePullSecret", NO_PULL_SECRET),
    ),
    Situation(
        name="misnamed",
        kind="image-pull",
        words="worker-0 cannot pull example/train:1: the name is not valid",
        script=waits("InvalidImageName", INVALID_NAME),
        fix="check the name and the tag: `image: NAME:TAG`",
    ),
    Situation(
        name="never",
        kind="image-pull",
        words=("worker-0 cannot pull example/train:1: it is not on the node, and imagePullPolicy is Never"),
        fix=("TFJob: `template: {spec: {containers: [{name: tensorflow, imagePullPolicy: IfNotPresent}]}}`"),
        script=waits("ErrImageNeverPull", NEVER),
    ),
    Situation(
        name="secret",
        kind="secret-missing",
        words="worker-0 cannot start: there is no Secret token in namespace NAMESPACE",
        fix="kubectl -n NAMESPACE create secret generic token --from-literal=KEY=VALUE",
        script=waits("CreateContainerConfigError", 'secret "token" not found'),
    ),
    Situation(
        name="settings",
        kind="configmap-missing",
        words="worker-0 cannot start: there is no ConfigMap settings in namespace NAMESPACE",
        fix="kubectl -n NAMESPACE create configmap settings --from-literal=KEY=VALUE",
        script=waits("CreateContainerConfigError", 'configmap "settings" not found'),
    ),
    Situation(
        name="key",
        kind="key-missing",
        words="worker-0 cannot start: Secret token has no key TOKEN",
        fix='kubectl -n NAMESPACE patch secret token -p \'{"stringData":{"TOKEN":"VALUE"}}\'',
        script=waits("CreateContainerConfigError", "couldn't find key TOKEN in Secret ml/token"),
    ),
    Situation(
        name="mounted",
        kind="secret-missing",
        words="worker-0 cannot start: there is no Secret token in namespace NAMESPACE",
        script=waits("ContainerCreating", ""),
        after=warning(
            "mounted-worker-0",
            "FailedMount",
            'MountVolume.SetUp failed for volume "t" : secret "token" not found',
        ),
        fix="kubectl -n NAMESPACE create secret generic token --from-literal=KEY=VALUE",
    ),
    Situation(
        name="root",
        kind="runs-as-root",
        words="worker-0 cannot start: the image runs as root, and runAsNonRoot forbids that",
        fix="TFJob: `template: {spec: {securityContext: {runAsUser: 1000}}}`",
        script=waits("CreateContainerConfigError", AS_ROOT),
    ),
    Situation(
        name="reserved",
        kind="config",
        words=(
            'worker-0 cannot be configured: failed to reserve container name "tensorflow_1": '
            'name "tensorflow_1" is reserved for "4f1c"'
        ),
        script=waits("CreateContainerError", RESERVED),
    ),
    Situation(
        name="mount",
        kind="mount",
        words=("worker-0 cannot mount volume data (nfs files:/data): mount.nfs: access denied by server"),
        fix="check that the server exports this path to the nodes",
        job={"volumes": [{"name": "data", "nfs": {"server": "files", "path": "/data"}}]},
        script=waits("ContainerCreating", ""),
        after=warning("mount-worker-0", "FailedMount", MOUNT),
    ),
    Situation(
        name="attached",
        kind="multi-attach",
        words="worker-0 cannot use out: another node has the volume, and only one may have it",
        fix=(
            "`tfyard convert FILE --to jobfile` writes a job file; there: a claim with `access: "
            "ReadWriteMany`; or all tasks on one node by `nodeSelector:`"
        ),
        job=claimed("out"),
        script=waits("ContainerCreating", ""),
        after=warning("attached-worker-0", "FailedAttachVolume", ATTACHED),
    ),
    Situation(
        name="half",
        kind="image-pull",
        words="worker-1 cannot pull example/train:1: the registry does not have it",
        also="half-running",
        job={"size": 2},
        script=half,
        later=5 * MINUTE,
        fix="check the name and the tag: `image: NAME:TAG`",
    ),
    Situation(
        name="command",
        kind="command",
        words="worker-0 cannot start: `pyhton` is not in the image example/train:1",
        script=waits("RunContainerError", NOT_FOUND),
        fix="TFJob: `command:` of the container tensorflow; or an image that has it",
    ),
    Situation(
        name="started",
        kind="command",
        words="worker-0 cannot start: `pyhton` is not in the image example/train:1",
        fix="TFJob: `command:` of the container tensorflow; or an image that has it",
        code=1,
        script=fails(NOT_FOUND, 128, exit_reason="StartError"),
    ),
    Situation(
        name="allowed",
        kind="command",
        words="worker-0 cannot start: `./run.sh` may not be executed",
        fix=("make it executable in the image example/train:1: `chmod +x`; or run it by `python` or `sh`"),
        code=1,
        script=fails(NOT_ALLOWED, 126, exit_reason="ContainerCannotRun"),
    ),
    Situation(
        name="shell",
        kind="command",
        words="worker-0 cannot start: `pyhton` is not in the image example/train:1",
        code=1,
        script=fails("sh: 1: pyhton: not found", 127),
        fix="TFJob: `command:` of the container tensorflow; or an image that has it",
    ),
    Situation(
        name="fails",
        kind="program-error",
        words="worker-0 failed with KeyError: 'size' (/code/train.py:12)",
        code=1,
        script=fails(),
    ),
    Situation(
        name="partly",
        kind="program-error",
        words="worker-1 failed with KeyError: 'size' (/code/train.py:12)",
        code=0,
        job={"size": 2, "policy": {"cleanPodPolicy": "None"}},
        script=first_succeeds,
        after=fail_afterwards,
    ),
    Situation(
        name="cut",
        kind="cut-off",
        words="worker-1 still ran, and was stopped, when worker-0 ended",
        fix="TFJob: `successPolicy: AllWorkers`",
        code=0,
        job={"size": 2, "policy": {"cleanPodPolicy": "Running"}},
        script=first_succeeds,
    ),
    Situation(
        name="memory",
        kind="out-of-memory",
        words="worker-0 used more than the memory limit of 8Gi, and the kernel killed it (OOMKilled)",
        fix=("TFJob: `resources: {limits: {memory: 12Gi}}` of the container tensorflow, or smaller batches"),
        code=1,
        job={"container": limits(memory="8Gi")},
        script=fails("", 137, exit_reason="OOMKilled"),
    ),
    Situation(
        name="loop",
        kind="program-error",
        words="worker-0 failed with KeyError: 'size' (/code/train.py:12)",
        job={"restart": "OnFailure"},
        script=fails(restart_after=60),
    ),
    Situation(
        name="retries",
        kind="program-error",
        words="worker-0 failed with KeyError: 'size' (/code/train.py:12)",
        also="retries",
        code=1,
        job={"restart": "OnFailure", "policy": {"backoffLimit": 1}},
        script=fails(),
    ),
    Situation(
        name="late",
        kind="deadline",
        words="it ran longer than its deadline of 1s",
        fix="TFJob: a longer `runPolicy.activeDeadlineSeconds:`",
        code=1,
        job={"policy": {"activeDeadlineSeconds": 1}},
    ),
    Situation(
        name="evicted",
        kind="evicted",
        words="the node evicted worker-0 because it was short of ephemeral-storage",
        fix=(
            "`tfyard convert FILE --to jobfile` writes a job file; there: write to a volume "
            "(`volumes:`) instead of the container's own disk"
        ),
        code=1,
        after=evict,
    ),
    Situation(
        name="drained",
        kind="drained",
        words="worker-0: evicted through the Eviction API, as `kubectl drain` does",
        fix="it runs again, and that costs no retry",
        job=PATIENT,
        script=SLOW_TO_STOP,
        after=drain("drained"),
    ),
    Situation(
        name="replaced",
        kind="drained",
        words="worker-0: evicted through the Eviction API, as `kubectl drain` does",
        code=0,
        after=drain("replaced"),
        fix="it runs again, and that costs no retry",
    ),
    Situation(
        name="removed",
        kind="deleted",
        words="worker-0: its pod was deleted",
        code=0,
        after=delete_pod("removed"),
        fix="it runs again, and that costs no retry",
    ),
    Situation(
        name="vanished",
        kind="deleted",
        words="worker-0: its pod was deleted",
        code=0,
        after=delete_pod("vanished", grace=0),
        fix="it runs again, and that costs no retry",
    ),
    Situation(
        name="ending",
        kind="deleted",
        also="terminating",
        words="worker-0: its pod was deleted",
        job=PATIENT,
        script=SLOW_TO_STOP,
        after=delete_slowly,
        fix="it runs again, and that costs no retry",
    ),
    Situation(
        name="again",
        kind="terminating",
        words=(
            "the pod of the former again that has the name of worker-0 was deleted … ago and still ends: it "
            "has … left for that"
        ),
        job=PATIENT,
        script=SLOW_TO_STOP,
        after=submit_again,
        fix=(
            "it has this time to save a checkpoint; TFJob: a smaller `terminationGracePeriodSeconds:` in the "
            "`spec:` of the pod template gives it less"
        ),
    ),
    Situation(
        name="preempted",
        kind="preempted",
        words="worker-0: preempted by a pod of a higher priority",
        fix="it runs again, and that costs no retry",
        job=PATIENT,
        script=SLOW_TO_STOP,
        after=preempt,
    ),
    Situation(
        name="lost",
        kind="node-lost",
        words="worker-0: lost with its node",
        code=0,
        after=collect_as_garbage,
        fix="it runs again, and that costs no retry",
    ),
    Situation(
        name="rebooted",
        kind="node-rebooted",
        words="worker-0: ended unseen, because its node was rebooted",
        code=0,
        script=rebooted,
        after=is_back,
        fix="it runs again, and that costs no retry",
    ),
    Situation(
        name="admitted",
        kind="node-refused",
        words="the node of worker-0 did not take it (OutOfcpu): Pod was rejected: scripted: OutOfcpu",
        fix="it runs again, and that costs no retry",
        script=Script(rejected="OutOfcpu"),
    ),
    Situation(
        name="shutdown",
        kind="node-shutdown",
        words="worker-0: ended because its node shut down",
        fix="it runs again, and that costs no retry",
        script=Script(rejected="NodeShutdown"),
    ),
)
