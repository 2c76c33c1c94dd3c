"""Refusals by the apiserver, and jobs without an operator, with the messages of Kubernetes 1.36."""

from datetime import datetime

import msgspec
import pytest

from tests.overview.situations import ago, condition, job, pod, running, stamp, status, warning, why
from tfyard.model import Failure, Status
from tfyard.overview.evidence import Unreadable
from tfyard.views import objects

POD = "cannot create pod train-worker-0: "
REFUSED = {
    'pods "train-worker-0" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=2,pods=1, used:'
    " requests.nvidia.com/gpu=7,pods=3, limited: requests.nvidia.com/gpu=8,pods=50 (403 Forbidden)": (
        "quota",
        "quota team leaves too little: the next pod asks for 2 of requests.nvidia.com/gpu, and 7 of 8 are in use",
    ),
    'pods "t" is forbidden: failed quota: team: must specify limits.cpu for: tensorflow; limits.memory for: t': (
        "quota-unsaid",
        "quota team accepts only pods that say how much they need: limits.cpu",
    ),
    'admission webhook "validate.kyverno.svc" denied the request: image must be signed': (
        "webhook",
        "the admission webhook validate.kyverno.svc does not allow the pods: image must be signed",
    ),
    'Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post …: connect:'
    " connection refused": ("webhook-down", "pods.example.com cannot be reached"),
    "ValidatingAdmissionPolicy 'no-latest' with binding 'all' denied request: no tag latest": (
        "policy",
        "the admission policy no-latest does not allow the pods: no tag latest",
    ),
    'pods "t" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container'
    ' "tensorflow" must set securityContext.allowPrivilegeEscalation=false)': (
        "pod-security",
        "only pods of PodSecurity restricted:latest: allowPrivilegeEscalation != false",
    ),
    'pods "t" is forbidden: error looking up service account ml/trainer: serviceaccount "trainer" not found': (
        "service-account",
        "kubectl -n ml create serviceaccount trainer",
    ),
    'pods "t" is forbidden: no PriorityClass with name high was found': (
        "priority-class",
        "there is no PriorityClass high",
    ),
    'pods "t" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi': (
        "limit-range",
        "maximum memory usage per Container is 1Gi, but limit is 2Gi",
    ),
    'pods "t" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set'
    " finalizers on": ("operator-permission", "tfyard install"),
    'pods is forbidden: User "system:serviceaccount:tfyard:operator" cannot create resource "pods" in API group': (
        "operator-permission",
        "the operator (system:serviceaccount:tfyard:operator) may not create pods",
    ),
    'pods "t" is forbidden: unable to create new content in namespace ml because it is being terminated': (
        "namespace-terminating",
        "the namespace ml is being deleted",
    ),
    'Pod "t" is invalid: metadata.labels: Invalid value: "x": must be no more than 63 bytes (422 Invalid)': (
        "name",
        "shorter name",
    ),
    "unable to validate against any security context constraint: [provider restricted]": (
        "security-context-constraint",
        "oc adm policy",
    ),
    "service train-worker-0 exists and is not this job's; delete or rename one of them": (
        "refused",
        "exists and is not this job's",
    ),
}


@pytest.mark.parametrize(("message", "expected"), REFUSED.items())
def test_a_refusal_says_who_refused_and_the_fix(message: str, expected: tuple[str, str]) -> None:
    kind, words = expected
    answer = why(job(status=status(condition("Blocked", "Refused", POD + message))))
    assert (answer.code, answer.causes[0].kind) == (3, kind)
    assert words in f"{answer.causes[0].sentence} → {answer.causes[0].fix}"
    assert answer.causes[0].evidence[0].source == "apiserver"


def test_a_refusal_is_believed_before_everything_else() -> None:
    event = warning("FailedMount", 'MountVolume.SetUp failed for volume "x" : timed out')
    blocked = status(
        condition(
            "Blocked", "QuotaExceeded", "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
        )
    )
    answer = why(job(pod(), status=blocked, events=(event,)))
    assert [cause.kind for cause in answer.causes][:2] == ["quota", "mount"]


@pytest.mark.parametrize(("uid", "kinds"), [("u1", ["quota"]), ("", ["quota"]), ("earlier", [])])
def test_another_operators_refusals_are_read_from_events_about_this_job(uid: str, kinds: list[str]) -> None:
    event = warning(
        "FailedCreatePod",
        'pods "t" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1',
        "train",
        "TFJob",
        uid=uid,
    )
    assert [cause.kind for cause in why(job(events=(event,))).causes] == kinds


def test_a_spec_that_is_invalid() -> None:
    failure = Failure(
        cause="InvalidSpec", message="TFJob ml/train is invalid: spec.tfReplicaSpecs must be given"
    )
    answer = why(job(status=status(condition("Failed"), failure=failure)))
    assert (answer.code, answer.causes[0].kind) == (1, "invalid-spec")
    assert "must be given" in answer.sentence


def test_a_job_that_was_edited_into_an_invalid_one() -> None:
    text = "TFJob ml/train is invalid: spec.tfReplicaSpecs: TF_CONFIG would have 2 MB"
    answer = why(job(pod("worker-0", running()), status=status(condition("Blocked", "InvalidSpec", text))))
    assert (answer.code, answer.causes[0].kind) == (3, "invalid-spec")
    assert answer.causes[0].fix == "correct it: kubectl -n ml edit tfjob train"


def test_a_status_that_cannot_be_read() -> None:
    answer = why(job(status_problem="status.tasks.Worker.finished: must be indexes"))
    assert answer.causes[0].kind == "status-unreadable"
    assert answer.causes[0].fix == "kubectl -n ml edit tfjob train --subresource=status"


def lease(renewed: datetime, holder: str = "operator-1") -> objects.Lease:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": stamp(renewed)}
    return msgspec.convert(
        {"metadata": {"name": "tfyard-operator", "namespace": "tfyard"}, "spec": spec}, objects.Lease
    )


def test_a_job_that_no_operator_has_seen() -> None:
    new = {"status": Status()}
    answer = why(job(**new, leases=()))
    assert (answer.code, answer.causes[0].kind, answer.causes[0].fix) == (3, "no-operator", "tfyard install")
    assert "no tfyard operator is installed" in answer.sentence
    assert "does not run" in why(job(**new, leases=(lease(ago(hours=1)),))).sentence
    assert "does it watch this namespace?" in why(job(**new, leases=(lease(ago(seconds=3)),))).sentence
    assert why(job(**new, leases=Unreadable("forbidden"))).sentence == "no operator works on it"


def test_a_job_that_was_just_created_has_time() -> None:
    assert why(job(status=Status(), created=ago(seconds=2), leases=())).causes == ()


def test_pods_of_a_new_job_say_that_an_operator_works_on_it_before_its_first_status_does() -> None:
    new = job(pod("worker-0", running()), status=Status(), leases=(lease(ago(seconds=3)),))
    assert "no-operator" not in [cause.kind for cause in why(new).causes]
    left = job(pod("worker-0", running()), status=Status(), leases=(lease(ago(hours=1)),))
    assert why(left).causes[0].kind == "no-operator"


def test_an_operator_that_stopped_during_the_job() -> None:
    pods = (pod("worker-0", running()), pod("worker-1", running()))
    answer = why(job(*pods, leases=(lease(ago(hours=1)),)))
    assert (answer.code, answer.causes[0].kind) == (3, "no-operator")
    assert why(job(*pods, leases=(lease(ago(seconds=3)),))).code == 0
    assert why(job(*pods, leases=(lease(ago(seconds=3), holder=""),))).code == 0, "a standby takes over"
    assert why(job(*pods, leases=(lease(ago(minutes=1), holder=""),))).code == 3


def test_a_job_that_another_controller_manages() -> None:
    answer = why(
        job(status=Status(), spec={"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}, leases=())
    )
    assert answer.causes[0].kind == "managed-by"
