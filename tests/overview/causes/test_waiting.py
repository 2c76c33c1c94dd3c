"""Pods that do not start: each cause, by the words of Kubernetes 1.36."""

from typing import Any

import msgspec
import pytest

from tests.overview.situations import (
    Manifest,
    ago,
    condition,
    creating,
    job,
    node,
    pod,
    running,
    stamp,
    status,
    unschedulable,
    waiting,
    warning,
    why,
)
from tfyard.overview.evidence import Unreadable
from tfyard.overview.why import Answer
from tfyard.views import objects, pods

PULL = 'Back-off pulling image "example/train:1": ErrImagePull: rpc error: code = '
GPU: Manifest = {"container": {"resources": {"limits": {"nvidia.com/gpu": "4"}}}}
NO_GPU = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2 nodes are available."
TAINTED = "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes are available."
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
CLAIM: Manifest = {"volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": "out"}}]}


def gpus(count: str, **fields: Any) -> objects.NodeView:
    return node(allocatable={"nvidia.com/gpu": count}, **fields)


def claim(**spec: Any) -> objects.Claim:
    return msgspec.convert({"metadata": {"name": "out"}, "spec": spec}, objects.Claim)


def storage(name: str) -> objects.StorageClass:
    return msgspec.convert({"metadata": {"name": name}}, objects.StorageClass)


def holder(name: str, gpu: int) -> pods.PodDetails:
    made = pod("worker-0", container={"resources": {"limits": {"nvidia.com/gpu": gpu}}}, nodeName="n1")
    labels = {**made.metadata.labels, "training.kubeflow.org/job-name": name}
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, labels=labels))


def check(answer: Answer, kind: str, *words: str) -> None:
    assert answer.code == 3
    assert answer.causes[0].kind == kind
    text = f"{answer.causes[0].sentence} → {answer.causes[0].fix}"
    assert [word for word in words if word not in text] == [], text
    assert "{" not in answer.sentence


def test_many_tasks_with_the_same_cause_are_one_line() -> None:
    pods = [
        pod(f"worker-{index}", waiting("InvalidImageName", "couldn't parse image name"))
        for index in range(64)
    ]
    answer = why(job(*pods))
    assert len(answer.causes) == 1
    check(answer, "image-pull", "worker-0, worker-1 and 62 more cannot pull")


def test_no_node_offers_what_is_asked_for() -> None:
    answer = why(job(pod(status=unschedulable(NO_GPU), **GPU), nodes=(node(),)))
    check(answer, "no-room", "no node offers nvidia.com/gpu", "device plugin")


def test_a_task_is_larger_than_any_node() -> None:
    answer = why(job(pod(status=unschedulable(NO_GPU), **GPU), nodes=(gpus("2"), gpus("1"))))
    check(answer, "no-room", "worker-0 asks for 4 nvidia.com/gpu, and the largest node has 2", "`gpu: 2`")


def test_busy_nodes_name_the_jobs_that_hold_them() -> None:
    neighbours = (holder("a", 4), holder("b", 2))
    stuck = pod(status=unschedulable(NO_GPU), **GPU)
    answer = why(job(stuck, nodes=(gpus("8"),), neighbours=neighbours))
    check(answer, "no-room", "asks for 4 nvidia.com/gpu, 2 is left in all; held by a (4), b (2)")


def test_a_taint_is_found_by_comparing_it_with_the_tolerations() -> None:
    taints = [
        {"key": "team", "value": "a", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
        {"key": "soft", "effect": "PreferNoSchedule"},
    ]
    tolerated = pod(status=unschedulable(TAINTED), tolerations=[{"key": "team", "value": "a"}])
    answer = why(job(tolerated, nodes=(node(taints=taints),)))
    fix = "`tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]`"
    check(answer, "taint", "1 node would take worker-0, but for the taint nvidia.com/gpu:NoSchedule", fix)


def test_without_the_nodes_the_taint_is_not_guessed() -> None:
    hidden = Unreadable("you may not list nodes")
    answer = why(job(pod(status=unschedulable(TAINTED)), nodes=hidden))
    check(answer, "taint", "the scheduler does not name it, and you may not list nodes")
    assert answer.unreadable == ("nodes: you may not list nodes",)


def test_older_schedulers_name_the_taint() -> None:
    message = "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}."
    check(why(job(pod(status=unschedulable(message)))), "taint", "they have the taint gpu")


def test_a_cordoned_node_and_one_that_is_not_ready_are_no_case_for_a_toleration() -> None:
    cordoned = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    message = "0/1 nodes are available: 1 node(s) were unschedulable."
    check(
        why(job(pod(status=unschedulable(message)), nodes=(node(taints=cordoned),))),
        "cordoned",
        "kubectl uncordon n1",
    )
    lost = [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]
    check(why(job(pod(status=unschedulable(TAINTED)), nodes=(node(taints=lost),))), "node-state", "not-ready")


def test_a_tainted_node_is_the_cause_only_if_it_is_large_enough() -> None:
    taints = [{"key": "spot", "effect": "NoSchedule"}]
    both = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)."
    stuck = pod(status=unschedulable(both), **GPU)
    check(why(job(stuck, nodes=(gpus("2"), gpus("8", taints=taints)))), "taint", "spot")
    check(why(job(stuck, nodes=(gpus("2"), node(taints=taints)))), "no-room", "the largest node has 2")


def test_a_label_that_no_node_has_is_shown_with_those_that_they_have() -> None:
    message = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    nodes = tuple(node(name, labels={"gpu": "v100"}) for name in ("n1", "n2", "n3"))
    answer = why(job(pod(status=unschedulable(message), nodeSelector={"gpu": "a100"}), nodes=nodes))
    check(answer, "selector", "no node has the label gpu=a100", "there are: gpu=v100 (3)")


def demanding(key: str, operator: str, *values: str) -> Manifest:
    terms = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}]
    }
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


AFFINITIES = [
    ("gpu", "In", "a100"),
    ("gpu", "NotIn", "v100", "t4"),
    ("arm", "Exists"),
    ("gpu", "DoesNotExist"),
    ("cores", "Gt", "32"),
    ("cores", "Lt", "8"),
]


@pytest.mark.parametrize("demand", AFFINITIES, ids=lambda demand: demand[1])
def test_a_node_affinity_is_compared_with_the_nodes(demand: tuple[str, ...]) -> None:
    """Other nodes refuse for other reasons, which the scheduler names, too."""
    refused = ("didn't match Pod's node affinity/selector", "were unschedulable")
    message = f"0/2 nodes are available: {', '.join(f'1 node(s) {each}' for each in refused)}."
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    nodes = (
        node("n1", labels={"gpu": "v100", "cores": "32"}),
        node("n2", taints, labels={"gpu": "t4", "cores": "8"}),
    )
    answer = why(job(pod(status=unschedulable(message), **demanding(*demand)), nodes=nodes))
    check(answer, "selector", f"no node has all that worker-0 asks for: {demand[0]} {demand[1]}")
    fitting = node("n3", taints, labels={"gpu": "a100", "arm": "yes", "cores": "64"})
    if demand[1] in ("In", "Exists", "Gt"):
        answer = why(job(pod(status=unschedulable(message), **demanding(*demand)), nodes=(*nodes, fitting)))
        check(answer, "cordoned", "1 node that would take worker-0 is cordoned")


OTHERS = {
    "2 node(s) didn't match pod topology spread constraints": "spread",
    "2 node(s) didn't match pod anti-affinity rules": "spread",
    "2 node(s) didn't have free ports for the requested pod ports": "port-in-use",
    "2 node(s) had volume node affinity conflict": "volume-zone",
    "1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) were unschedulable": "volume-zone",
    "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable": "taint",
    "2 node(s) were unschedulable": "cordoned",
    "2 Too many pods": "no-room",
    "2 Insufficient cpu": "no-room",
    "2 node(s) did something new": "unschedulable",
}


@pytest.mark.parametrize(("words", "kind"), OTHERS.items())
def test_the_schedulers_other_sentences_are_understood(words: str, kind: str) -> None:
    check(why(job(pod(status=unschedulable(f"0/2 nodes are available: {words}.")))), kind, "worker-0")


def test_a_claim_of_a_class_that_does_not_exist() -> None:
    event = warning(
        "ProvisioningFailed",
        'storageclass.storage.k8s.io "azurefile" not found',
        "out",
        "PersistentVolumeClaim",
    )
    stuck = pod(status=unschedulable(UNBOUND), **CLAIM)
    claims = (claim(storageClassName="azurefile"),)
    answer = why(job(stuck, claims=claims, classes=(storage("standard"), storage("nfs")), events=(event,)))
    check(
        answer,
        "claim-pending",
        "claim out waits for a volume",
        "class azurefile does not exist; there are: nfs, standard",
    )
    assert answer.causes[0].evidence[0].text == event.message


def test_a_claim_without_a_class_where_none_is_the_default() -> None:
    stuck = pod(status=unschedulable(UNBOUND), **CLAIM)
    check(why(job(stuck, claims=(claim(),), classes=())), "claim-pending", "no class is the default")


def test_a_claim_that_does_not_exist() -> None:
    stuck = pod(
        status=unschedulable('0/1 nodes are available: persistentvolumeclaim "out" not found.'), **CLAIM
    )
    check(why(job(stuck)), "claim-missing", "there is no claim out in namespace ml", "size: 10Gi")


def test_two_nodes_and_one_volume() -> None:
    message = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) train-worker-1'
    answer = why(job(pod(status=creating(), **CLAIM), events=(warning("FailedAttachVolume", message),)))
    check(answer, "multi-attach", "cannot use out", "ReadWriteMany")


def test_a_mount_that_fails_names_server_path_and_error() -> None:
    message = (
        'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32\nMounting command: mount\n'
        "Output: mount.nfs: access denied by server while mounting nas:/data"
    )
    volumes = [{"name": "data", "nfs": {"server": "nas", "path": "/data"}}]
    vague = warning("FailedMount", "Unable to attach or mount volumes: unmounted volumes=[data]", age=0.1)
    answer = why(
        job(pod(status=creating(), volumes=volumes), events=(vague, warning("FailedMount", message)))
    )
    check(
        answer,
        "mount",
        "volume data (nfs nas:/data): mount.nfs: access denied by server",
        "exports this path",
    )


def test_a_mount_that_failed_before_the_pod_ran_is_no_cause() -> None:
    old = warning("FailedMount", 'MountVolume.SetUp failed for volume "x" : timed out', age=4.5)
    answer = why(job(pod("worker-0", running()), pod("worker-1", running()), events=(old,)))
    assert (answer.code, answer.causes) == (0, ())


CONFIG = {
    'configmap "settings" not found': ("configmap-missing", "create configmap settings"),
    'secret "token" not found': ("secret-missing", "create secret generic token"),
    "couldn't find key TOKEN in Secret ml/token": ("key-missing", "Secret token has no key TOKEN"),
    "container has runAsNonRoot and image will run as root": ("runs-as-root", "runAsUser"),
}


@pytest.mark.parametrize(("message", "expected"), CONFIG.items())
def test_what_a_container_is_configured_from_is_missing(message: str, expected: tuple[str, str]) -> None:
    kind, words = expected
    check(why(job(pod(status=waiting("CreateContainerConfigError", message)))), kind, words)


def test_a_secret_that_is_mounted_and_missing() -> None:
    event = warning("FailedMount", 'MountVolume.SetUp failed for volume "t" : secret "token" not found')
    check(why(job(pod(status=creating()), events=(event,))), "secret-missing", "no Secret token")


def test_a_command_that_is_not_in_the_image() -> None:
    message = (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create"
        ' failed: unable to start container process: exec: "pyhton": executable file not found in $PATH: unknown'
    )
    answer = why(job(pod(status=waiting("RunContainerError", message))))
    check(answer, "command", "`pyhton` is not in the image example/train:1", "`run:`")


def test_no_scheduler_has_looked_at_a_pod() -> None:
    answer = why(job(pod(schedulerName="volcano")))
    check(answer, "no-scheduler", "is volcano running?")


def test_a_new_pod_is_only_starting() -> None:
    answer = why(job(pod(status=creating(), age=0.1), pod("worker-1", running())))
    assert (answer.code, answer.sentence) == (3, "train is starting: 1 of 2 tasks run")
    assert answer.causes == ()


def test_a_pod_that_says_nothing_for_long_is_unknown_and_says_what_was_looked_at() -> None:
    answer = why(job(pod(status=creating())))
    assert answer.code == 4
    assert "nothing tells" in answer.sentence
    assert answer.looked_at == ("the TFJob and its status", "pods", "events")


def test_tasks_that_run_while_others_wait_come_after_the_cause() -> None:
    stuck = pod("worker-1", unschedulable("0/1 nodes are available: 1 Insufficient cpu."), age=10)
    answer = why(job(pod("worker-0", running()), stuck))
    assert [cause.kind for cause in answer.causes] == ["no-room", "half-running"]
    assert (
        answer.causes[1].sentence == "1 of 2 tasks run and hold their resources while they wait for worker-1"
    )
    assert answer.causes[1].fix == "job file: `gang: true`"


REMEMBERED = {
    ("ImagePull", PULL + "NotFound desc = not found"): "image-pull",
    ("Unschedulable", "0/2 nodes are available: 2 Insufficient cpu."): "no-room",
    ("VolumeClaim", 'persistentvolumeclaim "out" not found'): "claim-missing",
    ("Mount", 'MountVolume.SetUp failed for volume "x" : timed out'): "mount",
    ("Config", 'configmap "settings" not found'): "configmap-missing",
    ("Start", "something"): "command",
    ("CrashLoop", "back-off 5m0s restarting failed container"): "crash-loop",
}


@pytest.mark.parametrize(("noted", "kind"), REMEMBERED.items())
def test_what_the_operator_noted_answers_without_pods_and_events(noted: tuple[str, str], kind: str) -> None:
    hidden = Unreadable("you may not list them")
    reason, message = noted
    memory = status(condition("Waiting", reason, f"worker-0: {message}"))
    answer = why(job(status=memory, pods=hidden, events=hidden))
    check(answer, kind, "worker-0")
    assert len(answer.unreadable) == 2


def test_a_warning_about_an_earlier_pod_of_the_same_name_is_not_believed() -> None:
    event = warning("FailedMount", 'MountVolume.SetUp failed for volume "x" : timed out')
    other = msgspec.structs.replace(
        event, involved_object=objects.ObjectReference("Pod", "train-worker-0", "old")
    )
    mine = pod(status=creating())
    mine = msgspec.structs.replace(mine, metadata=msgspec.structs.replace(mine.metadata, uid="new"))
    assert why(job(mine, events=(other,))).code == 4


def test_an_event_beats_the_state_of_the_container() -> None:
    """The pod reports ContainerCreating; that its image is being pulled would be a guess."""
    event = warning("FailedMount", 'MountVolume.SetUp failed for volume "x" : timed out')
    assert why(job(pod(status=creating()), events=(event,))).causes[0].kind == "mount"


def test_a_job_in_a_queue_of_kueue() -> None:
    blocked = {"type": "QuotaReserved", "status": "False", "reason": "Pending"}
    text = "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu, 4 more needed"
    made = {
        "metadata": {"name": "tfjob-train", "ownerReferences": [{"uid": "u1"}]},
        "status": {"conditions": [{**blocked, "message": text, "lastTransitionTime": stamp(ago(minutes=5))}]},
    }
    suspended: Manifest = {
        "labels": {"kueue.x-k8s.io/queue-name": "team"},
        "spec": {"runPolicy": {"suspend": True}},
        "status": status(condition("Suspended")),
    }
    workload = msgspec.convert(made, objects.QueuedWorkload)
    check(
        why(job(**suspended, workloads=(workload,))),
        "queue",
        "it waits in queue team: couldn't assign",
        "4 more",
    )
    pending = [
        {
            "metadata": {"name": f"tfjob-{name}", "ownerReferences": [{"name": name}]},
            "positionInLocalQueue": at,
            "positionInClusterQueue": at + 2,
        }
        for at, name in enumerate(("first", "train", "last"))
    ]
    waits = msgspec.convert(pending[::-1], tuple[objects.PendingWorkload, ...])
    check(
        why(job(**suspended, workloads=(workload,), pending=waits)),
        "queue",
        "it waits in queue team at position 2 of 3 (4 in its ClusterQueue) behind first: couldn't assign",
    )
    refused = why(job(**suspended, workloads=(workload,), pending=Unreadable("you may not list it")))
    assert refused.unreadable == ("the order of Kueue's queue: you may not list it",)
    check(why(job(**suspended, workloads=())), "queue", "Kueue has not taken it up", "get localqueues")
    check(
        why(job(**{**suspended, "labels": {}})), "suspended", "suspended until it is resumed", "tfyard resume"
    )


def test_pods_that_kueue_holds_back_by_a_gate() -> None:
    gate = [{"name": "kueue.x-k8s.io/admission"}]
    held = pod(schedulingGates=gate)
    check(why(job(held, labels={"kueue.x-k8s.io/queue-name": "team"}, workloads=())), "queue", "queue team")


def test_a_pod_group_that_is_pending() -> None:
    text = "PodGroup train is Pending: waiting for capacity in Volcano's queue default"
    check(
        why(job(status=status(condition("Blocked", "PodGroupPending", text)))),
        "gang",
        text,
        "describe podgroup train",
    )
