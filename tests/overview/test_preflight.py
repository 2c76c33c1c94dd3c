"""What is found before a job is submitted, from values."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.overview.situations import NOW, pod
from tfyard.overview import objects
from tfyard.overview.evidence import Evidence, Unreadable
from tfyard.overview.objects import Claim, Lease, Node, Quota, StorageClass
from tfyard.overview.preflight import Missing, Seen, Trial, findings, unchecked
from tfyard.overview.references import Reference, of_admission, of_pod
from tfyard.overview.storage_classes import choose

Manifest = dict[str, Any]


def held(seconds: float = 1) -> Lease:
    spec = {"holderIdentity": "one", "renewTime": (NOW - timedelta(seconds=seconds)).isoformat()}
    return msgspec.convert({"metadata": {"name": "tfyard-operator"}, "spec": spec}, Lease)


def node(name: str = "n", taints: tuple[Manifest, ...] = (), **allocatable: str) -> Node:
    offered = {key.replace("_", "/"): value for key, value in allocatable.items()}
    made = {"metadata": {"name": name}, "spec": {"taints": taints}, "status": {"allocatable": offered}}
    return msgspec.convert(made, Node)


def claim(
    name: str = "data", phase: str = "Bound", modes: tuple[str, ...] = ("ReadWriteMany",), **spec: Any
) -> Claim:
    made = {"metadata": {"name": name}, "spec": {"accessModes": modes, **spec}, "status": {"phase": phase}}
    return msgspec.convert(made, Claim)


def storage_class(name: str, provisioner: str, *, default: bool = False) -> StorageClass:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return msgspec.convert(
        {"metadata": {"name": name, "annotations": notes}, "provisioner": provisioner}, StorageClass
    )


def quota(hard: Manifest, used: Manifest, **spec: Any) -> Quota:
    made = {
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": spec,
        "status": {"hard": hard, "used": used},
    }
    return msgspec.convert(made, Quota)


def trial(tasks: int = 2, refusal: str = "", **spec: Any) -> Trial:
    names = tuple(f"worker-{index}" for index in range(tasks))
    return Trial(role="worker", tasks=names, pod=pod(**spec), refusal=refusal)


def found(
    *trials: Trial, created: tuple[Claim, ...] = (), missing: tuple[Missing, ...] = (), **evidence: Any
) -> list[str]:
    evidence = {"nodes": (node(cpu="8", memory="32Gi"),), "leases": (held(),), **evidence}
    made = Evidence(name="train", namespace="ml", **evidence)
    looked = Seen(evidence=made, trials=trials or (trial(),), created=created, missing=missing)
    return [f"{each.level} {each.subject}: {each.text} | {each.fix}" for each in findings(looked, NOW)]


def asking(**resources: str) -> Manifest:
    return {"resources": {"limits": {key.replace("_", "/"): value for key, value in resources.items()}}}


def test_nothing_is_found_where_all_is_well() -> None:
    assert found() == []


def test_a_cluster_without_an_operator_is_an_error_and_one_with_another_operator_is_not() -> None:
    (text,) = found(leases=())
    assert text.startswith("wrong operator: no operator would run the job: no tfyard operator is installed")
    assert text.endswith("| `tfyard install`")
    assert "does not run" in found(leases=(held(600),))[0]
    looked = Seen(evidence=Evidence(name="train", leases=()), has_other_operator=True)
    assert findings(looked, NOW) == []


def test_a_task_that_fits_on_no_node_is_told_by_the_first_reason() -> None:
    assert found(trial(container=asking(memory="64Gi"))) == [
        "wrong worker: worker-0 and worker-1 ask for 64Gi memory, and the largest node has 32Gi"
        " | job file: `memory: 32Gi` at most; --force if the cluster adds such nodes when they are needed"
    ]
    assert "no node offers nvidia.com/gpu" in found(trial(container=asking(**{"nvidia.com_gpu": "1"})))[0]
    assert "no node has the label disk=ssd" in found(trial(nodeSelector={"disk": "ssd"}))[0]
    tainted = node(taints=({"key": "team", "value": "a", "effect": "NoSchedule"},), cpu="8")
    assert "but for the taint team=a:NoSchedule" in found(nodes=(tainted,))[0]
    tolerated = trial(tolerations=[{"key": "team", "operator": "Exists"}])
    assert found(tolerated, nodes=(tainted,)) == []


def test_a_node_that_is_named_must_be_there_and_nothing_else() -> None:
    assert found(trial(nodeName="n", nodeSelector={"disk": "ssd"})) == []
    (text,) = found(trial(nodeName="other"))
    assert text == "wrong worker: there is no node other | job file: `node:`"


def test_nodes_that_are_away_for_a_while_are_a_warning() -> None:
    cordoned = node(taints=({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},), cpu="8")
    assert [text.split()[0] for text in found(nodes=(cordoned,))] == ["warning"]
    assert [text.split()[0] for text in found(nodes=())] == ["warning"]


def test_tasks_that_cannot_all_run_at_once_are_a_warning() -> None:
    (text,) = found(trial(tasks=3, container=asking(cpu="4")))
    assert text.startswith("warning nodes: all tasks together ask for 12 cpu, and all nodes together have 8")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": x',
            "PodSecurity restricted:latest",
        ),
        (
            'admission webhook "w.example" denied the request: no',
            "admission webhook w.example does not allow",
        ),
        ("error looking up service account ml/robot: no", "there is no ServiceAccount robot"),
        ("no PriorityClass with name urgent was found", "there is no PriorityClass urgent"),
        ("minimum cpu usage per Container is 2, but request is 1", "a LimitRange of the namespace says"),
        ("strict decoding error: unknown field", "the server refuses the pods: strict decoding error"),
    ],
)
def test_a_pod_that_the_server_refuses_is_explained_once_for_all_roles(message: str, words: str) -> None:
    twice = (trial(refusal=message), Trial(role="ps", tasks=("ps-0",), pod=pod("ps-0"), refusal=message))
    (text,) = found(*twice)
    assert text.startswith("wrong worker, ps: ")
    assert words in text


def test_a_quota_counts_the_whole_job() -> None:
    big = trial(tasks=3, container=asking(cpu="2", memory="1Gi"))
    assert found(big, quotas=(quota({"pods": "10", "requests.cpu": "6"}, {"pods": "7"}),)) == []
    (text,) = found(big, quotas=(quota({"requests.cpu": "4"}, {}),))
    assert text.startswith("wrong quota: the job asks for 6 of requests.cpu, and quota team allows 4 |")
    (text,) = found(big, quotas=(quota({"limits.memory": "4Gi"}, {"limits.memory": "2Gi"}),))
    assert text.startswith(
        "warning quota: the job asks for 3.0Gi of limits.memory, and quota team has 2.0Gi of"
    )
    assert found(big, quotas=(quota({"pods": "1"}, {}, scopes=["BestEffort"]),)) == []
    refused = trial(refusal="exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1")
    assert len(found(refused, quotas=(quota({"pods": "1"}, {"pods": "1"}),))) == 1
    assert found(refused, quotas=Unreadable("no"))[0].startswith(
        "warning worker: quota team leaves too little"
    )


def volume(name: str) -> Manifest:
    return {"name": "v", "persistentVolumeClaim": {"claimName": name}}


def test_claims_must_be_there_or_come_with_the_job() -> None:
    user = trial(volumes=[volume("data")])
    assert "there is no claim data in namespace ml" in found(user, claims=())[0]
    assert found(user, claims=Unreadable("no")) == []
    assert found(user, claims=(claim(),)) == []
    default = storage_class("nfs", "nfs.csi.k8s.io", default=True)
    assert found(user, created=(claim(),), claims=(), classes=(default,)) == []
    assert "its volume is lost" in found(user, claims=(claim(phase="Lost"),))[0]
    two = (node("a", cpu="1"), node("b", cpu="1"))
    once = claim(modes=("ReadWriteOnce",))
    assert found(user, claims=(once,)) == []
    assert "2 tasks use it, and only one node may" in found(user, claims=(once,), nodes=two)[0]


def test_a_new_claim_needs_a_class_that_makes_such_volumes() -> None:
    made, disk = claim(), storage_class("gp3", "ebs.csi.aws.com", default=True)
    assert (
        "storage class fast does not exist; there are: gp3"
        in found(created=(claim(storageClassName="fast"),), classes=(disk,))[0]
    )
    assert "no class is the default" in found(created=(made,), classes=())[0]
    (text,) = found(created=(made,), classes=(disk,))
    assert text.startswith(
        "warning claim data: it asks for ReadWriteMany, and volumes of the class gp3 are for one"
    )
    quotas = (quota({"requests.storage": "5Gi"}, {}),)
    sized = claim(
        storageClassName="gp3", modes=("ReadWriteOnce",), resources={"requests": {"storage": "10Gi"}}
    )
    assert (
        "the job asks for 10.0Gi of requests.storage"
        in found(created=(sized,), classes=(disk,), quotas=quotas)[0]
    )


def test_the_class_for_outputs_is_a_shared_one_if_there_is_any() -> None:
    disk = storage_class("gp3", "ebs.csi.aws.com", default=True)
    files = storage_class("efs", "efs.csi.aws.com")
    assert choose([disk]) == ("", "ReadWriteOnce")
    assert choose([disk, files]) == ("efs", "ReadWriteMany")
    assert choose([storage_class("local", "tfyard.dev/local", default=True)]) == ("", "ReadWriteMany")


def test_what_is_missing_is_told_with_the_command_that_creates_it() -> None:
    settings, token = Reference("ConfigMap", "settings"), Reference("Secret", "token")
    registry = Reference("Secret", "registry", is_for_pulling=True)
    assert found(
        missing=(
            Missing("worker", settings),
            Missing("ps", settings),
            Missing("worker", token, frozenset({"b", "a"})),
            Missing("worker", registry),
        )
    ) == [
        "wrong worker, ps: there is no ConfigMap settings in namespace ml"
        " | kubectl -n ml create configmap settings --from-file=FILE",
        "wrong worker: Secret token has no key a, b | kubectl -n ml edit secret token",
        "warning worker: there is no Secret registry in namespace ml: images of a private registry could not be"
        " pulled | kubectl -n ml create secret docker-registry registry --docker-server=HOST …",
    ]


def test_references_of_a_pod_are_found_wherever_they_are() -> None:
    keys = {"secretKeyRef": {"name": "token", "key": "a"}}
    more = {"secretKeyRef": {"name": "token", "key": "b"}}
    optional = {"configMapKeyRef": {"name": "maybe", "key": "x", "optional": True}}
    container = {
        "env": [
            {"name": "A", "valueFrom": keys},
            {"name": "B", "valueFrom": more},
            {"name": "C", "valueFrom": optional},
        ],
        "envFrom": [{"configMapRef": {"name": "settings"}}],
    }
    spec = {
        "containers": [container],
        "volumes": [
            {"name": "c", "configMap": {"name": "files", "items": [{"key": "k", "path": "p"}]}},
            {"name": "p", "projected": {"sources": [{"secret": {"name": "mixed"}}]}},
        ],
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccountName": "robot",
    }
    assert set(of_pod(spec)) == {
        Reference("Secret", "token", frozenset({"a", "b"})),
        Reference("ConfigMap", "settings"),
        Reference("ConfigMap", "files", frozenset({"k"})),
        Reference("Secret", "mixed"),
        Reference("Secret", "registry", is_for_pulling=True),
    }
    assert of_admission(spec) == [Reference("ServiceAccount", "robot")]


def test_what_may_not_be_seen_is_named_and_what_was_not_asked_for_is_not() -> None:
    evidence = Evidence(name="train", nodes=Unreadable("you may not list nodes"), leases=(held(),))
    looked = Seen(evidence=evidence, unread=("you may not get secrets",))
    assert unchecked(looked) == ["you may not list nodes", "you may not get secrets"]
    assert findings(looked, NOW) == []


def test_a_pod_counts_for_a_quota_by_its_largest_phase() -> None:
    container = {"name": "tensorflow", **asking(cpu="1")}
    made = msgspec.convert(
        {
            "metadata": {"name": "a"},
            "spec": {
                "containers": [container, {**container, "name": "b"}],
                "initContainers": [{"name": "i", **asking(cpu="3")}],
            },
        },
        objects.Pod,
    )
    role = Trial(role="worker", tasks=("worker-0",), pod=made)
    (text,) = found(role, quotas=(quota({"cpu": "2"}, {}),))
    assert "asks for 3 of cpu" in text
