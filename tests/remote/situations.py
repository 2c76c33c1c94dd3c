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
from tfyard.model.names import ATTEMPT, JOB_NAME, QUEUE_NAME
from tfyard.remote.addresses import TFJOBS
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
        words="asks for 2 of requests.example.com/fpga, and 0 of 1 are in use",
        fix="describe quota team",
        job={"container": limits(example__fpga=2)},
        before=quota("team", {"requests.example.com/fpga": "1"}, {"container": limits(example__fpga=2)}),
    ),
    Situation(
        name="unsaid",
        kind="quota-unsaid",
        words="quota counted accepts only pods that say how much they need: limits.cpu for: tensorflow",
        fix="`cpu: 1`",
        job={"priorityClassName": "counted"},
        before=count_pods_of_a_priority,
    ),
    Situation(
        name="priority",
        kind="priority-class",
        words="there is no PriorityClass high",
        job={"priorityClassName": "high"},
    ),
    Situation(
        name="account",
        kind="service-account",
        words="there is no ServiceAccount trainer",
        fix="create serviceaccount trainer",
        job={"serviceAccountName": "trainer"},
    ),
    Situation(
        name="taken",
        kind="refused",
        words="pod taken-worker-0 exists and is not this job's; delete or rename one of them",
        before=take_the_name,
    ),
    Situation(
        name="edited",
        kind="invalid-spec",
        words="TF_CONFIG would have",
        fix="correct it",
        after=scale_beyond_tf_config,
    ),
    Situation(
        name="nonsense",
        kind="status-unreadable",
        words="must be indexes such as 0-2,7, not 'some of them'",
        fix="--subresource=status",
        job={"policy": {"suspend": True}},
        after=write_nonsense,
    ),
    Situation(
        name="paused",
        kind="suspended",
        words="it is suspended",
        fix="tfyard resume paused",
        job={"policy": {"suspend": True}},
    ),
    Situation(
        name="queued",
        kind="queue",
        words="it waits for queue team, and Kueue has not taken it up",
        fix="get localqueues",
        job={"policy": {"suspend": True}, "labels": {QUEUE_NAME: "team"}},
    ),
    Situation(
        name="elsewhere",
        kind="managed-by",
        words="managedBy is kueue.x-k8s.io/multikueue",
        fix="remove",
        job={"policy": {"managedBy": "kueue.x-k8s.io/multikueue"}},
        later=MINUTE,
    ),
)  # fmt: skip


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
        fix="check the name and the tag",
        script=waits("ImagePullBackOff", PULL + NO_SUCH_IMAGE),
    ),
    Situation(
        name="private",
        kind="image-pull",
        words="there is no such repository, or it is private; there is no Secret hub in namespace",
        fix="create secret docker-registry hub",
        job={"imagePullSecrets": [{"name": "hub"}]},
        script=waits("ImagePullBackOff", PULL + PRIVATE),
        after=warning("private-worker-0", "FailedToRetrieveImagePullSecret", NO_PULL_SECRET),
    ),
    Situation(
        name="misnamed",
        kind="image-pull",
        words="the name is not valid",
        script=waits("InvalidImageName", INVALID_NAME),
    ),
    Situation(
        name="never",
        kind="image-pull",
        words="it is not on the node, and imagePullPolicy is Never",
        fix="imagePullPolicy: IfNotPresent",
        script=waits("ErrImageNeverPull", NEVER),
    ),
    Situation(
        name="secret",
        kind="secret-missing",
        words="there is no Secret token",
        fix="create secret generic token",
        script=waits("CreateContainerConfigError", 'secret "token" not found'),
    ),
    Situation(
        name="settings",
        kind="configmap-missing",
        words="there is no ConfigMap settings",
        fix="create configmap settings",
        script=waits("CreateContainerConfigError", 'configmap "settings" not found'),
    ),
    Situation(
        name="key",
        kind="key-missing",
        words="Secret token has no key TOKEN",
        fix="edit secret token",
        script=waits("CreateContainerConfigError", "couldn't find key TOKEN in Secret ml/token"),
    ),
    Situation(
        name="mounted",
        kind="secret-missing",
        words="there is no Secret token",
        script=waits("ContainerCreating", ""),
        after=warning(
            "mounted-worker-0",
            "FailedMount",
            'MountVolume.SetUp failed for volume "t" : secret "token" not found',
        ),
    ),
    Situation(
        name="root",
        kind="runs-as-root",
        words="runAsNonRoot forbids that",
        fix="runAsUser",
        script=waits("CreateContainerConfigError", AS_ROOT),
    ),
    Situation(
        name="reserved",
        kind="config",
        words="worker-0 cannot be configured: failed to reserve container name",
        script=waits("CreateContainerError", RESERVED),
    ),
    Situation(
        name="mount",
        kind="mount",
        words="worker-0 cannot mount volume data (nfs files:/data): mount.nfs: access denied by server",
        fix="exports this path",
        job={"volumes": [{"name": "data", "nfs": {"server": "files", "path": "/data"}}]},
        script=waits("ContainerCreating", ""),
        after=warning("mount-worker-0", "FailedMount", MOUNT),
    ),
    Situation(
        name="attached",
        kind="multi-attach",
        words="worker-0 cannot use out: another node has the volume",
        fix="ReadWriteMany",
        job=claimed("out"),
        script=waits("ContainerCreating", ""),
        after=warning("attached-worker-0", "FailedAttachVolume", ATTACHED),
    ),
    Situation(
        name="half",
        kind="image-pull",
        words="worker-1 cannot pull",
        also="half-running",
        job={"size": 2},
        script=half,
        later=5 * MINUTE,
    ),
    Situation(
        name="command",
        kind="command",
        words="`pyhton` is not in the image example/train:1",
        script=waits("RunContainerError", NOT_FOUND),
    ),
    Situation(
        name="started",
        kind="command",
        words="`pyhton` is not in the image example/train:1",
        fix="`run:`",
        code=1,
        script=fails(NOT_FOUND, 128, exit_reason="StartError"),
    ),
    Situation(
        name="allowed",
        kind="command",
        words="`./run.sh` may not be executed",
        fix="chmod +x",
        code=1,
        script=fails(NOT_ALLOWED, 126, exit_reason="ContainerCannotRun"),
    ),
    Situation(
        name="shell",
        kind="command",
        words="`pyhton` is not in the image",
        code=1,
        script=fails("sh: 1: pyhton: not found", 127),
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
        fix="`success: all-workers`",
        code=0,
        job={"size": 2, "policy": {"cleanPodPolicy": "Running"}},
        script=first_succeeds,
    ),
    Situation(
        name="memory",
        kind="out-of-memory",
        words="limit of 8Gi",
        fix="`memory: 12Gi`",
        code=1,
        job={"container": limits(memory="8Gi")},
        script=fails("", 137, exit_reason="OOMKilled"),
    ),
    Situation(
        name="loop",
        kind="program-error",
        words="KeyError",
        job={"restart": "OnFailure"},
        script=fails(restart_after=60),
    ),
    Situation(
        name="retries",
        kind="program-error",
        words="KeyError",
        also="retries",
        code=1,
        job={"restart": "OnFailure", "policy": {"backoffLimit": 1}},
        script=fails(),
    ),
    Situation(
        name="late",
        kind="deadline",
        words="longer than its deadline of 1s",
        fix="`deadline:`",
        code=1,
        job={"policy": {"activeDeadlineSeconds": 1}},
    ),
    Situation(
        name="evicted",
        kind="evicted",
        words="short of ephemeral-storage",
        fix="`volumes:`",
        code=1,
        after=evict,
    ),
    Situation(
        name="drained",
        kind="drained",
        words="worker-0: evicted through the Eviction API",
        fix="costs no retry",
        job=PATIENT,
        script=SLOW_TO_STOP,
        after=drain("drained"),
    ),
    Situation(
        name="replaced",
        kind="drained",
        words="worker-0: evicted through the Eviction API",
        code=0,
        after=drain("replaced"),
    ),
    Situation(
        name="removed",
        kind="deleted",
        words="worker-0: its pod was deleted",
        code=0,
        after=delete_pod("removed"),
    ),
    Situation(
        name="vanished",
        kind="deleted",
        words="worker-0: its pod was deleted",
        code=0,
        after=delete_pod("vanished", grace=0),
    ),
    Situation(
        name="preempted",
        kind="preempted",
        words="worker-0: preempted by a pod of a higher priority",
        fix="costs no retry",
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
    ),
    Situation(
        name="rebooted",
        kind="node-rebooted",
        words="worker-0: ended unseen, because its node was rebooted",
        code=0,
        script=rebooted,
        after=is_back,
    ),
    Situation(
        name="admitted",
        kind="node-refused",
        words="the node of worker-0 did not take it (OutOfcpu)",
        fix="costs no retry",
        script=Script(rejected="OutOfcpu"),
    ),
    Situation(
        name="shutdown",
        kind="node-shutdown",
        words="ended because its node shut down",
        fix="costs no retry",
        script=Script(rejected="NodeShutdown"),
    ),
)  # fmt: skip
