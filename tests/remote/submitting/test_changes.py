"""What a file would change, as a real apiserver sees it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.remote.acting.test_actions import TEMPLATE, Yard
from tfyard.errors import TfyardError
from tfyard.kube import Unprocessable, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting import changes
from tfyard.remote.submitting.changes import Change
from tfyard.testing import ControlPlane, builders

pytestmark = pytest.mark.cluster


@pytest.fixture
def yard(control_plane: ControlPlane, crds: None, namespace: str) -> Iterator[Yard]:
    with SyncClient(control_plane.admin) as client:
        yield Yard(control_plane, client, namespace)


def file(yard: Yard, name: str = "mnist", replicas: int = 2, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "namespace": yard.namespace},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": replicas, "template": TEMPLATE}}, **spec},
    }


def apply(yard: Yard, document: dict[str, Any]) -> None:
    yard.client.send(requests.apply(TFJOBS.path(yard.namespace, document["metadata"]["name"]), document))


def one(yard: Yard, document: dict[str, Any]) -> Change:
    (found,) = changes.diff(yard.client, [document])
    return found


def test_a_job_that_does_not_exist_is_all_new_and_is_not_made(yard: Yard) -> None:
    found = one(yard, file(yard))
    assert found.before is None
    lines = list(changes.lines(found))
    assert lines[0].startswith("--- live/tfjob.kubeflow.org/mnist")
    assert all(line.startswith("+") for line in lines[3:])
    assert not any(word in "\n".join(lines) for word in ("uid", "creationTimestamp", "managedFields"))
    assert yard.client.send(requests.get(TFJOBS.path(yard.namespace)))["items"] == []


def test_only_what_the_user_would_change_is_shown(yard: Yard) -> None:
    apply(yard, file(yard))
    yard.client.send(
        requests.patch(TFJOBS.path(yard.namespace, "mnist"), {"metadata": {"labels": {"by": "others"}}})
    )
    assert one(yard, file(yard)).is_none
    changed = list(changes.lines(one(yard, file(yard, replicas=3))))
    assert [line for line in changed[2:] if line[0] in "+-"] == ["-      replicas: 2", "+      replicas: 3"]


def test_the_other_objects_of_a_file_are_compared_too(yard: Yard) -> None:
    document = builders.config_map("settings", {"rate": "0.1"})
    assert one(yard, document).title == "configmap/settings"
    assert (
        one(yard, {**document, "metadata": {"name": "settings", "namespace": yard.namespace}}).before is None
    )


def test_what_cannot_change_while_the_job_runs_is_marked(yard: Yard) -> None:
    apply(yard, file(yard))
    yard.status(StoredTFJob(TFJOBS, file(yard)), phase="Running", cluster={"dialect": "tf2"})
    wanted = file(yard, dialect="tf1", runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})
    other = {"spec": {"containers": [{"name": "tensorflow", "image": "example/mnist:2"}]}}
    wanted["spec"]["tfReplicaSpecs"]["Worker"]["template"] = other
    with pytest.raises(Unprocessable, match="managedBy is immutable"):
        apply(yard, wanted)
    found = one(yard, wanted)
    marks = dict(mark.split(" ", 1) for mark in found.marks)
    assert set(marks) == {"spec.runPolicy.managedBy", "spec.dialect", "spec.tfReplicaSpecs.Worker.template"}
    assert "cannot change while the job runs" in marks["spec.tfReplicaSpecs.Worker.template"]
    assert "+    managedBy: kueue.x-k8s.io/multikueue" in "\n".join(changes.lines(found))


def test_a_change_does_not_reach_a_job_that_has_finished(yard: Yard) -> None:
    apply(yard, file(yard))
    at = {"lastUpdateTime": "2024-11-16T03:00:00Z", "lastTransitionTime": "2024-11-16T03:00:00Z"}
    done = {"type": "Succeeded", "status": "True", "reason": "TFJobSucceeded", "message": "", **at}
    yard.status(StoredTFJob(TFJOBS, file(yard)), phase="Succeeded", conditions=[done])
    (mark,) = one(yard, file(yard, replicas=3)).marks
    assert mark.startswith("mnist has finished, so this has no effect; `tfyard rerun mnist`")
    assert one(yard, file(yard)).marks == ()


def test_a_job_of_the_old_group_with_that_name_is_told(yard: Yard) -> None:
    yard.old_job("mnist")
    (mark,) = one(yard, file(yard)).marks
    assert "tensorflow.org" in mark


def test_what_the_server_refuses_is_its_error(yard: Yard) -> None:
    with pytest.raises(TfyardError, match="replicas"):
        one(yard, file(yard, replicas=-1))
    with pytest.raises(TfyardError, match="knows no Thing"):
        one(yard, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}})


def test_the_run_policy_takes_effect_at_once_also_where_it_was_before_v1(yard: Yard) -> None:
    apply(yard, file(yard, backoffLimit=1, runPolicy={"suspend": True}))
    (mark,) = one(yard, file(yard, backoffLimit=2, successPolicy="AllWorkers")).marks
    assert mark.startswith("spec.successPolicy cannot change")
