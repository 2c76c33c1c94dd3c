from datetime import UTC, datetime

import msgspec
import pytest

from tfyard.formats.crd.documents import crds
from tfyard.model.names import JOB_NAME
from tfyard.overview import doctor
from tfyard.views.objects import Lease, NodeView, Quota, Slice, StorageClass
from tfyard.views.pods import PodDetails

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def node(gpus: str, ready: str = "True") -> NodeView:
    status = {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"nvidia.com/gpu": gpus}}
    return msgspec.convert({"metadata": {"name": "n"}, "status": status}, NodeView)


def pod(job: str, gpus: int) -> PodDetails:
    container = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    meta = {"name": f"{job}-worker-0", "namespace": "ml", "labels": {JOB_NAME: job}}
    return msgspec.convert({"metadata": meta, "spec": {"containers": [container]}}, PodDetails)


def lease(renewed: str, holder: str = "operator-1") -> Lease:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 10, "renewTime": renewed}
    return msgspec.convert({"metadata": {"namespace": "tfyard"}, "spec": spec}, Lease)


@pytest.mark.parametrize(("minor", "level"), [("36", "ok"), ("30+", "ok"), ("29", "wrong")])
def test_an_old_server_is_wrong(minor: str, level: str) -> None:
    finding = doctor.version({"major": "1", "minor": minor, "gitVersion": f"v1.{minor}"}, "https://here")
    assert finding.level == level


def test_a_crd_of_another_operator_is_a_warning() -> None:
    (ours,) = crds()
    assert doctor.definition(ours).level == "ok"
    other = {
        "metadata": {"name": "tfjobs.kubeflow.org", "managedFields": [{"manager": "helm"}]},
        "spec": {"versions": [{"name": "v1", "served": True}]},
    }
    finding = doctor.definition(other)
    assert (finding.level, "applied by helm" in finding.text) == ("warning", True)


def test_a_leader_that_no_longer_renews_does_not_run() -> None:
    assert doctor.lease([lease("2026-11-16T11:59:57.000000Z")], NOW).level == "ok"
    assert doctor.lease([lease("2026-11-16T11:50:00.000000Z")], NOW).level == "wrong"
    assert doctor.lease([lease("2026-11-16T11:50:00.000000Z", holder="")], NOW).level == "wrong"
    changes = doctor.lease([lease("2026-11-16T11:59:57.000000Z", holder="")], NOW)
    assert (changes.level, changes.text) == ("warning", "the leader changes: the last one ended 3s ago")
    assert doctor.lease([], NOW).level == "warning"
    left = lease("2026-11-01T11:59:57.000000Z")  # by an operator that was in another namespace
    assert doctor.lease([left, lease("2026-11-16T11:59:57.000000Z")], NOW).level == "ok"
    foreign = {"metadata": {"namespace": "ml"}, "spec": {"holderIdentity": "somebody"}}
    assert doctor.lease([msgspec.convert(foreign, Lease)], NOW).level == "wrong"


def test_gpus_are_listed_with_the_jobs_that_hold_them() -> None:
    finding = doctor.gpus(
        [node("8"), node("4")], [pod("mnist", 4), pod("mnist", 4), pod("bert", 1), pod("cpu", 0)]
    )
    assert finding.text == "12 on the nodes, 9 in use, 3 free: ml/mnist 8, ml/bert 1"
    assert doctor.gpus([node("2")], [pod("mnist", 2)]).level == "warning"
    assert "you may not list pods" in doctor.gpus([node("2")], None).text
    assert "no node offers GPUs" in doctor.gpus([], []).text


def test_nodes_that_are_not_ready_count() -> None:
    levels = [doctor.nodes(listed).level for listed in ([node("0")], [node("0"), node("0", "False")], [])]
    assert levels == ["ok", "warning", "wrong"]


def test_storage_needs_a_default_class() -> None:
    is_default = {"storageclass.kubernetes.io/is-default-class": "true"}
    fast = msgspec.convert({"metadata": {"name": "fast"}}, StorageClass)
    chosen = msgspec.convert({"metadata": {"name": "disk", "annotations": is_default}}, StorageClass)
    assert doctor.storage([fast, chosen]).text == "classes: fast, disk; default disk"
    assert [doctor.storage(listed).level for listed in ([fast], [])] == ["warning", "warning"]


def test_dns_without_endpoints_is_a_warning() -> None:
    endpoints = [{"conditions": {"ready": True}}, {"conditions": {"ready": False}}]
    for name in ("kube-dns", "dns-default"):
        metadata = {"labels": {"kubernetes.io/service-name": name}}
        finding = doctor.dns([msgspec.convert({"metadata": metadata, "endpoints": endpoints}, Slice)])
        assert finding.text == f"{name} has 1 endpoint"
    assert doctor.dns([]).level == "warning"


def test_a_quota_that_is_nearly_used_up_is_a_warning() -> None:
    status = {
        "hard": {"requests.nvidia.com/gpu": "8", "pods": "100"},
        "used": {"requests.nvidia.com/gpu": "8"},
    }
    (finding,) = doctor.quotas([msgspec.convert({"metadata": {"name": "gpus"}, "status": status}, Quota)])
    assert (finding.level, finding.text) == ("warning", "gpus: requests.nvidia.com/gpu 8/8, pods 0/100")
    assert "requests.nvidia.com/gpu" in finding.fix


def test_rights_that_are_missing_come_with_the_command_that_grants_them() -> None:
    finding = doctor.rights("jane", "ml", {"list jobs": True, "submit jobs": False})
    assert finding.text == "jane in the namespace ml may not submit jobs"
    assert finding.fix == "`kubectl create rolebinding tfyard -n ml --clusterrole=tfyard-edit --user=jane`"
    assert doctor.rights("jane", "ml", {"list jobs": True}).level == "ok"
