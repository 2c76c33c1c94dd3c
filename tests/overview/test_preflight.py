"""Findings before a job is submitted, from values."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.overview.situations import NOW, pod
from tfyard.overview.evidence import Evidence, Unreadable
from tfyard.overview.preflight import MissingReference, Seen, TriedPod, findings, unchecked
from tfyard.overview.references import Reference, of_admission, of_pod
from tfyard.overview.storage_classes import choose
from tfyard.views import pods
from tfyard.views.objects import Claim, Lease, NodeView, Quota, StorageClass

Manifest = dict[str, Any]


def held(seconds: float = 1, holder: str = "one") -> Lease:
    spec = {"holderIdentity": holder, "renewTime": (NOW - timedelta(seconds=seconds)).isoformat()}
    return msgspec.convert({"metadata": {"name": "tfyard-operator"}, "spec": spec}, Lease)


def node(name: str = "n", taints: tuple[Manifest, ...] = (), **allocatable: str) -> NodeView:
    offered = {key.replace("_", "/"): value for key, value in allocatable.items()}
    made = {"metadata": {"name": name}, "spec": {"taints": taints}, "status": {"allocatable": offered}}
    return msgspec.convert(made, NodeView)


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


def trial(tasks: int = 2, refusal: str = "", **spec: Any) -> TriedPod:
    names = tuple(f"worker-{index}" for index in range(tasks))
    return TriedPod(role="worker", tasks=names, pod=pod(**spec), refusal=refusal)


def report(
    *trials: TriedPod,
    created: tuple[Claim, ...] = (),
    missing: tuple[MissingReference, ...] = (),
    **evidence: Any,
) -> list[str]:
    evidence = {"nodes": (node(cpu="8", memory="32Gi"),), "leases": (held(),), **evidence}
    made = Evidence(name="train", namespace="ml", **evidence)
    looked = Seen(evidence=made, trials=trials or (trial(),), created=created, missing=missing)
    return [f"{each.level} {each.subject}: {each.text} | {each.fix}" for each in findings(looked, NOW)]


def asking(**resources: str) -> Manifest:
    return {"resources": {"limits": {key.replace("_", "/"): value for key, value in resources.items()}}}


def test_nothing_is_found_where_all_is_well() -> None:
    assert report() == []


def test_a_cluster_without_an_operator_is_an_error_and_one_with_another_operator_is_not() -> None:
    (text,) = report(leases=())
    assert text.startswith("wrong operator: no operator would run the job: no tfyard operator is installed")
    assert text.endswith("| `tfyard install`")
    assert "does not run" in report(leases=(held(600),))[0]
    assert "does not run" in report(leases=(held(600, holder=""),))[0]
    looked = Seen(evidence=Evidence(name="train", leases=()), has_other_operator=True)
    assert findings(looked, NOW) == []


def test_a_lease_that_was_just_released_is_taken_by_the_next_leader() -> None:
    assert report(leases=(held(2, holder=""),)) == []


def test_a_task_that_fits_on_no_node_is_told_by_the_first_reason() -> None:
    assert report(trial(container=asking(memory="64Gi"))) == [
        "wrong worker: worker-0 and worker-1 ask for 64Gi memory, and the largest node has 32Gi"
        " | job file: `memory: 32Gi` at most; submit it anyway if the cluster adds such nodes when they are needed"
    ]
    assert "no node offers nvidia.com/gpu" in report(trial(container=asking(**{"nvidia.com_gpu": "1"})))[0]
    assert "no node has the label disk=ssd" in report(trial(nodeSelector={"disk": "ssd"}))[0]
    tainted = node(taints=({"key": "team", "value": "a", "effect": "NoSchedule"},), cpu="8")
    assert "but for the taint team=a:NoSchedule" in report(nodes=(tainted,))[0]
    tolerated = trial(tolerations=[{"key": "team", "operator": "Exists"}])
    assert report(tolerated, nodes=(tainted,)) == []


def test_a_named_node_must_exist_and_needs_no_matching_labels() -> None:
    assert report(trial(nodeName="n", nodeSelector={"disk": "ssd"})) == []
    (text,) = report(trial(nodeName="other"))
    assert text == "wrong worker: there is no node other | job file: `node:`"


def test_nodes_that_are_away_for_a_while_are_a_warning() -> None:
    cordoned = node(taints=({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},), cpu="8")
    assert [text.split()[0] for text in report(nodes=(cordoned,))] == ["warning"]
    assert [text.split()[0] for text in report(nodes=())] == ["warning"]


def test_tasks_that_cannot_all_run_at_once_are_a_warning() -> None:
    (text,) = report(trial(tasks=3, container=asking(cpu="4")))
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
    twice = (trial(refusal=message), TriedPod(role="ps", tasks=("ps-0",), pod=pod("ps-0"), refusal=message))
    (text,) = report(*twice)
    assert text.startswith("wrong worker, ps: ")
    assert words in text


def test_a_quota_counts_the_whole_job() -> None:
    big = trial(tasks=3, container=asking(cpu="2", memory="1Gi"))
    assert report(big, quotas=(quota({"pods": "10", "requests.cpu": "6"}, {"pods": "7"}),)) == []
    (text,) = report(big, quotas=(quota({"requests.cpu": "4"}, {}),))
    assert text.startswith("wrong quota: the job asks for 6 of requests.cpu, and quota team allows 4 |")
    (text,) = report(big, quotas=(quota({"limits.memory": "4Gi"}, {"limits.memory": "2Gi"}),))
    assert text.startswith(
        "warning quota: the job asks for 3.0Gi of limits.memory, and quota team has 2.0Gi of"
    )
    assert report(big, quotas=(quota({"pods": "1"}, {}, scopes=["BestEffort"]),)) == []
    refused = trial(refusal="exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1")
    assert len(report(refused, quotas=(quota({"pods": "1"}, {"pods": "1"}),))) == 1
    assert report(refused, quotas=Unreadable("no"))[0].startswith(
        "warning worker: quota team leaves too little"
    )


def volume(name: str) -> Manifest:
    return {"name": "v", "persistentVolumeClaim": {"claimName": name}}


def test_claims_must_be_there_or_come_with_the_job() -> None:
    user = trial(volumes=[volume("data")])
    assert "there is no claim data in namespace ml" in report(user, claims=())[0]
    assert report(user, claims=Unreadable("no")) == []
    assert report(user, claims=(claim(),)) == []
    default = storage_class("nfs", "nfs.csi.k8s.io", default=True)
    assert report(user, created=(claim(),), claims=(), classes=(default,)) == []
    assert "its volume is lost" in report(user, claims=(claim(phase="Lost"),))[0]
    two = (node("a", cpu="1"), node("b", cpu="1"))
    once = claim(modes=("ReadWriteOnce",))
    assert report(user, claims=(once,)) == []
    assert "2 tasks use it, and only one node may" in report(user, claims=(once,), nodes=two)[0]


def test_a_new_claim_needs_a_class_that_makes_such_volumes() -> None:
    made, disk = claim(), storage_class("gp3", "ebs.csi.aws.com", default=True)
    assert (
        "storage class fast does not exist; there are: gp3"
        in report(created=(claim(storageClassName="fast"),), classes=(disk,))[0]
    )
    assert "no class is the default" in report(created=(made,), classes=())[0]
    (text,) = report(created=(made,), classes=(disk,))
    assert text.startswith(
        "warning claim data: it asks for ReadWriteMany, and volumes of the class gp3 are for one"
    )
    quotas = (quota({"requests.storage": "5Gi"}, {}),)
    sized = claim(
        storageClassName="gp3", modes=("ReadWriteOnce",), resources={"requests": {"storage": "10Gi"}}
    )
    assert (
        "the job asks for 10.0Gi of requests.storage"
        in report(created=(sized,), classes=(disk,), quotas=quotas)[0]
    )


def test_the_class_for_outputs_is_a_shared_one_if_there_is_any() -> None:
    disk = storage_class("gp3", "ebs.csi.aws.com", default=True)
    files = storage_class("efs", "efs.csi.aws.com")
    assert choose([disk]) == ("", "ReadWriteOnce")
    assert choose([disk, files]) == ("efs", "ReadWriteMany")
    assert choose([storage_class("local", "tfyard.dev/local", default=True)]) == ("", "ReadWriteMany")


def test_missing_objects_are_reported_with_the_command_that_creates_them() -> None:
    settings, token = Reference("ConfigMap", "settings"), Reference("Secret", "token")
    registry = Reference("Secret", "registry", is_for_pulling=True)
    assert report(
        missing=(
            MissingReference("worker", settings),
            MissingReference("ps", settings),
            MissingReference("worker", token, frozenset({"b", "a"})),
            MissingReference("worker", registry),
        )
    ) == [
        "wrong worker, ps: there is no ConfigMap settings in namespace ml"
        " | kubectl -n ml create configmap settings --from-literal=KEY=VALUE",
        "wrong worker: Secret token has no key a, b"
        """ | kubectl -n ml patch secret token -p '{"stringData":{"a":"VALUE","b":"VALUE"}}'""",
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


def test_collections_that_may_not_be_read_are_named_and_those_not_asked_for_are_not() -> None:
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
        pods.PodDetails,
    )
    role = TriedPod(role="worker", tasks=("worker-0",), pod=made)
    (text,) = report(role, quotas=(quota({"cpu": "2"}, {}),))
    assert "asks for 3 of cpu" in text
