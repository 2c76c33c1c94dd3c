"""What people do to jobs, on a real apiserver: what is sent, what is said before, and what is refused."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.test_describe import permit
from tests.remote.admission import kueue
from tfyard.errors import NotPossible, Usage
from tfyard.kube import NotFound, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model.names import JOB_NAME, QUEUE_NAME, REPLICA_INDEX, REPLICA_TYPE, RERUN_OF
from tfyard.remote.acting import actions, reruns
from tfyard.remote.acting.job_objects import JOB_UID
from tfyard.remote.reading import jobs
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.sdk.jobs_on_cluster import JobsOnCluster
from tfyard.testing import ControlPlane, builders

pytestmark = pytest.mark.cluster

VOLUMES = [{"name": "out", "persistentVolumeClaim": {"claimName": "data"}}]
TEMPLATE = {"spec": {"containers": [{"name": "tensorflow", "image": "example/mnist:1"}], "volumes": VOLUMES}}
AT = "2024-11-16T03:00:00Z"


class Yard:
    """A namespace with jobs, whose pods are made by hand: no operator runs."""

    def __init__(self, plane: ControlPlane, client: SyncClient, namespace: str) -> None:
        self.plane, self.client, self.namespace = plane, client, namespace

    def job(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> StoredTFJob:
        roles = {"Worker": {"replicas": 2, "template": TEMPLATE}, "Chief": {"template": TEMPLATE}}
        body = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"tfReplicaSpecs": roles, **spec},
        }
        return StoredTFJob(TFJOBS, self.client.send(requests.create(TFJOBS.path(self.namespace), body)))

    def old_job(self, name: str) -> StoredTFJob:
        roles = [{"template": TEMPLATE}, {"tfReplicaType": "WORKER", "template": TEMPLATE}]
        kind = {"apiVersion": "tensorflow.org/v1alpha1", "kind": "TfJob"}
        body = {**kind, "metadata": {"name": name}, "spec": {"replicaSpecs": roles}}
        return StoredTFJob(
            OLD_TFJOBS, self.client.send(requests.create(OLD_TFJOBS.path(self.namespace), body))
        )

    def now(self, found: StoredTFJob) -> StoredTFJob:
        return StoredTFJob(found.resource, self.client.send(requests.get(found.path)))

    def status(self, found: StoredTFJob, **status: Any) -> StoredTFJob:
        body = {**self.now(found).manifest, "status": status}
        return StoredTFJob(found.resource, self.client.send(requests.replace(f"{found.path}/status", body)))

    def finished(self, name: str, word: str = "Succeeded") -> StoredTFJob:
        condition = {"type": word, "status": "True", "reason": word, "message": "", "lastUpdateTime": AT}
        return self.status(self.job(name), phase=word, conditions=[{**condition, "lastTransitionTime": AT}])

    def pod(self, found: StoredTFJob, role: str, index: int) -> dict[str, Any]:
        metadata = {
            "name": f"{found.name}-{role}-{index}",
            "labels": {JOB_NAME: found.name, REPLICA_TYPE: role, REPLICA_INDEX: str(index)},
            "ownerReferences": [
                {
                    "apiVersion": found.manifest["apiVersion"],
                    "kind": found.manifest["kind"],
                    "name": found.name,
                    "uid": found.uid,
                    "controller": True,
                }
            ],
        }
        path = requests.PODS.path(self.namespace)
        made: dict[str, Any] = self.client.send(
            requests.create(path, {"metadata": metadata, "spec": TEMPLATE["spec"]})
        )
        return made

    def pods(self) -> list[str]:
        items = self.client.send(requests.get(requests.PODS.path(self.namespace)))["items"]
        return sorted(each["metadata"]["name"] for each in items)

    def as_user(self, user: str) -> SyncClient:
        return SyncClient(self.plane.access(user))

    def may_read(self, user: str) -> None:
        """Jobs and pods, and no more."""
        rules = [
            {
                "apiGroups": ["kubeflow.org", "tensorflow.org"],
                "resources": ["tfjobs"],
                "verbs": ["get", "list"],
            },
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        ]
        permit(self.client, self.namespace, user, rules)


@pytest.fixture
def yard(control_plane: ControlPlane, crds: None, namespace: str) -> Iterator[Yard]:
    with SyncClient(control_plane.admin) as client:
        yield Yard(control_plane, client, namespace)


def test_a_job_is_stopped_and_resumed_and_says_what_goes_and_stays(yard: Yard) -> None:
    found = yard.job("mnist", runPolicy={"backoffLimit": 3})
    yard.pod(found, "worker", 0)
    intent = actions.stop(yard.client, found)
    assert intent.goes == ("1 pod (worker-0), after at most 30 s of grace",)
    assert "the claim data with its data" in intent.stays
    assert yard.now(found).manifest["spec"]["runPolicy"] == {"backoffLimit": 3}, "nothing is done yet"
    actions.perform(yard.client, intent)
    stopped = yard.now(found)
    assert stopped.manifest["spec"]["runPolicy"] == {"backoffLimit": 3, "suspend": True}
    assert {each["manager"] for each in stopped.manifest["metadata"]["managedFields"]} >= {"tfyard"}
    assert actions.stop(yard.client, stopped).requests == ()
    actions.perform(yard.client, actions.resume(yard.client, stopped))
    assert yard.now(found).manifest["spec"]["runPolicy"]["suspend"] is False
    assert actions.resume(yard.client, yard.now(found)).notes == ("it is not stopped",)


def test_the_wait_for_a_stopped_job_ends_when_its_pods_are_gone_and_not_as_soon_as_they_have_ended(
    yard: Yard,
) -> None:
    """A kubelet first says that the program has ended, and removes the pod then."""
    found = yard.job("mnist")
    yard.pod(found, "worker", 0)
    intent, path = actions.stop(yard.client, found), requests.PODS.path(yard.namespace, "mnist-worker-0")
    yard.client.send(requests.patch(path, {"metadata": {"finalizers": ["example.com/kubelet"]}}))
    yard.client.send(requests.patch(f"{path}/status", {"status": {"phase": "Succeeded"}}))
    yard.client.send(requests.delete(path))
    said: list[str] = []
    with pytest.raises(actions.TimeOver):
        actions.until_done(yard.client, intent, said.append, 0)
    assert said == ["waiting: 1 pod (worker-0) to be gone"]
    yard.client.send(requests.patch(path, {"metadata": {"finalizers": None}}))
    actions.until_done(yard.client, intent, said.append, 5)


def test_a_new_job_of_the_same_name_is_left_alone(yard: Yard) -> None:
    found = yard.job("mnist")
    intents = [actions.stop(yard.client, found), actions.delete(yard.client, found)]
    actions.perform(yard.client, intents[1])
    again = yard.job("mnist")
    for intent in intents:
        with pytest.raises(NotPossible, match="mnist was deleted or replaced in the meantime"):
            actions.perform(yard.client, intent)
    assert yard.now(again).manifest["spec"] == again.manifest["spec"]


def test_delete_says_what_goes_and_that_claims_stay_unless_the_job_owns_them(yard: Yard) -> None:
    found = yard.job("mnist")
    yard.pod(found, "worker", 0)
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    made = yard.client.send(requests.create(requests.CLAIMS.path(yard.namespace), claim))
    intent = actions.delete(yard.client, found)
    assert intent.goes == ("the job mnist", "1 pod (mnist-worker-0) and their logs")
    assert intent.stays == ("the claim data with its data",)
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist", "uid": found.uid}
    made["metadata"]["ownerReferences"] = [owner]
    yard.client.send(requests.replace(requests.CLAIMS.path(yard.namespace, "data"), made))
    owned = actions.delete(yard.client, found)
    assert ("the claim data with its data" in owned.goes, owned.stays) == (True, ())
    assert yard.now(found).uid == found.uid, "the dry run deletes nothing"
    actions.perform(yard.client, owned)
    with pytest.raises(NotFound):
        yard.now(found)


def test_jobs_are_selected_by_their_labels(yard: Yard) -> None:
    yard.job("a", {"team": "vision"})
    yard.job("b")
    access = replace(yard.plane.admin, namespace=yard.namespace)

    def selected(labels: str) -> JobsOnCluster:
        return JobsOnCluster(lambda: SyncClient(access), print, selector=labels)

    assert [each.name for each in selected("team=vision").places()] == ["a"]
    assert selected("team=x").places() == []
    assert "team=x" in selected("team=x").nothing()


def test_restart_deletes_the_pods_of_these_tasks_and_waits_for_new_ones(yard: Yard) -> None:
    found = yard.job("mnist")
    for index in (0, 1):
        yard.pod(found, "worker", index)
    yard.pod(found, "chief", 0)
    intent = actions.restart(yard.client, found, ["worker-1"])
    assert (list(intent.pods), intent.goes) == (
        ["worker-1"],
        ("1 pod (worker-1), after at most 30 s of grace",),
    )
    assert len(yard.pods()) == 3, "the dry run deletes nothing"
    actions.perform(yard.client, intent)
    assert yard.pods() == ["mnist-chief-0", "mnist-worker-0"]
    actions.perform(yard.client, intent)  # it is gone already: no error
    said: list[str] = []
    with pytest.raises(actions.TimeOver):
        actions.until_done(yard.client, intent, said.append, 0)
    assert said == ["waiting: worker-1: its old pod ends"]
    new = yard.pod(found, "worker", 1)
    with pytest.raises(actions.TimeOver):
        actions.until_done(yard.client, intent, said.append, 0)
    assert said[1].startswith("waiting: worker-1: ")
    container = {"name": "tensorflow", "image": "", "imageID": "", "ready": True, "restartCount": 0}
    new["status"] = {
        "phase": "Running",
        "containerStatuses": [{**container, "state": {"running": {"startedAt": AT}}}],
    }
    yard.client.send(requests.replace(f"{requests.PODS.path(yard.namespace, 'mnist-worker-1')}/status", new))
    actions.until_done(yard.client, intent, said.append, 5)
    both = actions.restart(yard.client, found, ["worker"])
    assert list(both.pods) == ["worker-0", "worker-1"]


def test_the_wait_for_a_deleted_job_ends_when_it_and_its_pods_are_gone(yard: Yard) -> None:
    found = yard.job("mnist")
    yard.pod(found, "worker", 0)
    intent = actions.delete(yard.client, found)
    said: list[str] = []
    for text in ("waiting: the job mnist to be gone", "waiting: 1 pod (worker-0) to be gone"):
        with pytest.raises(actions.TimeOver):
            actions.until_done(yard.client, intent, said.append, 0)
        assert said.pop() == text
        actions.perform(yard.client, intent) if "job" in text else None
    yard.client.send(requests.delete(requests.PODS.path(yard.namespace, "mnist-worker-0"), grace=0))
    actions.until_done(yard.client, intent, said.append, 5)


@pytest.mark.parametrize("form", ["job", "old_job"])
def test_a_job_of_either_form_is_scaled(yard: Yard, form: str) -> None:
    found: StoredTFJob = getattr(yard, form)("mnist")
    intent = actions.scale(yard.client, found, {"Worker": 5})
    actions.perform(yard.client, intent)
    assert actions.edits.roles(yard.now(found).manifest)["Worker"].replicas == 5
    down = actions.scale(yard.client, yard.now(found), {"Worker": 3})
    assert down.goes == ("2 tasks (worker-3, worker-4)",)
    assert actions.scale(yard.client, yard.now(found), {"Worker": 5}).requests == ()


def test_a_job_runs_again_under_a_new_name_without_what_happened_to_it(yard: Yard) -> None:
    found = yard.finished("mnist")
    yard.client.send(
        requests.patch(
            found.path, {"metadata": {"annotations": {"note": "x", "kubectl.kubernetes.io/y": "z"}}}
        )
    )
    changes = reruns.read(["worker=4"], ["LR=0.1"], None)
    for name in ("mnist-2", "mnist-3"):
        intent = actions.rerun(yard.client, yard.now(found), changes)
        assert intent.made == name
        actions.perform(yard.client, intent)
        found = StoredTFJob(TFJOBS, yard.client.send(requests.get(TFJOBS.path(yard.namespace, name))))
    new = found.manifest
    assert new["metadata"]["annotations"] == {"note": "x", RERUN_OF: "mnist"}
    assert new["status"] == {"phase": "Pending", "restarts": 0}
    worker = new["spec"]["tfReplicaSpecs"]["Worker"]
    assert worker["replicas"] == 4
    assert worker["template"]["spec"]["containers"][0]["env"] == [{"name": "LR", "value": "0.1"}]
    with pytest.raises(NotPossible, match="there is a job mnist already"):
        actions.rerun(yard.client, found, reruns.read([], [], "mnist"))


def test_an_old_job_runs_again_as_what_it_was_and_cannot_be_stopped(yard: Yard) -> None:
    found = yard.old_job("mnist")
    actions.perform(yard.client, actions.rerun(yard.client, found, reruns.RerunChanges()))
    again = jobs.find(yard.client, yard.namespace, "mnist-2")
    assert again.resource == OLD_TFJOBS
    with pytest.raises(
        NotPossible, match="form of v1alpha1, which cannot be suspended; `tfyard delete mnist`"
    ):
        actions.stop(yard.client, found)


REFUSED: dict[str, tuple[Callable[[Yard], Any], str]] = {
    "stop": (
        lambda yard: actions.stop(yard.client, yard.finished("x")),
        "x has finished (Succeeded), so",
    ),
    "resume": (
        lambda yard: actions.resume(yard.client, yard.finished("x", "Failed")),
        "x has finished (Failed)",
    ),
    "restart": (
        lambda yard: actions.restart(yard.client, yard.finished("x"), []),
        "nothing to restart; `tf",
    ),
    "scale": (lambda yard: actions.scale(yard.client, yard.finished("x"), {"Worker": 3}), "nothing to scale"),
    "chief": (
        lambda yard: actions.scale(yard.client, yard.job("x"), {"Chief": 2}),
        "chief cannot be scaled to 2",
    ),
    "role": (
        lambda yard: actions.scale(yard.client, yard.job("x"), {"Evaluator": 2}),
        "x has no role evaluator",
    ),
    "task": (
        lambda yard: actions.restart(yard.client, yard.job("x"), ["worker-9"]),
        "no task or role 'worker-9'",
    ),
    "nothing runs": (
        lambda yard: actions.restart(yard.client, yard.job("x"), ["chief"]),
        "nothing runs of 1 task (chief-0)",
    ),
    "stopped": (
        lambda yard: actions.restart(yard.client, yard.job("x", runPolicy={"suspend": True}), []),
        "x is stopped; `tfyard resume x`",
    ),
    "nothing left": (
        lambda yard: actions.scale(yard.client, yard.job("x"), {"Worker": 0, "Chief": 0}),
        "x would have no task: a job has at least one; `tfyard stop x` stops it, `tfyard delete x` deletes it",
    ),
    "gang": (
        lambda yard: actions.scale(
            yard.client, yard.status(yard.job("x"), cluster={"gang": "core"}), {"Worker": 3}
        ),
        "x is scheduled as one gang",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_action_that_is_not_possible_is_refused_in_one_clear_line(yard: Yard, case: str) -> None:
    act, text = REFUSED[case]
    with pytest.raises((NotPossible, Usage)) as refusal:
        act(yard)
    assert text in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_job_of_another_user_is_refused_before_anything_is_done(yard: Yard) -> None:
    found = yard.job("mnist")
    yard.pod(found, "worker", 0)
    yard.may_read("jane")
    with yard.as_user("jane") as client:
        seen = jobs.find(client, yard.namespace, "mnist")
        for verb, act in (
            ("stop", lambda: actions.stop(client, seen)),
            ("scale", lambda: actions.scale(client, seen, {"Worker": 3})),
            ("delete", lambda: actions.delete(client, seen)),
            ("restart", lambda: actions.restart(client, seen, ["worker-0"])),
            ("rerun", lambda: actions.rerun(client, seen, reruns.RerunChanges())),
        ):
            with pytest.raises(NotPossible, match=f'^you may not {verb} mnist: .*User "jane" cannot'):
                act()
    assert yard.now(found).manifest["spec"] == found.manifest["spec"]
    assert yard.pods() == ["mnist-worker-0"]


def test_a_job_that_kueue_has_is_stopped_and_resumed_by_its_workload(
    yard: Yard, request: pytest.FixtureRequest
) -> None:
    found = yard.job("mnist", {QUEUE_NAME: "team"})
    intent = actions.stop(yard.client, found)
    assert "if Kueue manages TFJobs here" in intent.notes[0], "there is no Kueue to ask"
    request.addfinalizer(_serve_workloads(yard))
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "tfjob-mnist", "labels": {JOB_UID: found.uid}},
        "spec": {"active": True},
    }
    path = requests.WORKLOADS.path(yard.namespace)
    yard.client.send(requests.create(path, workload))
    stop = actions.stop(yard.client, found)
    actions.perform(yard.client, stop)
    assert stop.notes == ("Kueue suspends it, and gives its quota in the queue team back",)
    assert yard.client.send(requests.get(f"{path}/tfjob-mnist"))["spec"] == {"active": False}
    assert "suspend" not in (yard.now(found).manifest["spec"].get("runPolicy") or {}), "that is Kueue's to do"
    suspended = yard.client.send(requests.patch(found.path, {"spec": {"runPolicy": {"suspend": True}}}))
    actions.perform(yard.client, actions.resume(yard.client, StoredTFJob(TFJOBS, suspended)))
    assert yard.client.send(requests.get(f"{path}/tfjob-mnist"))["spec"] == {"active": True}
    waiting = actions.resume(yard.client, StoredTFJob(TFJOBS, suspended))
    assert (waiting.requests, waiting.notes) == ((), ("it waits in the queue team until Kueue admits it",))


def _serve_workloads(yard: Yard) -> Callable[[], object]:
    """Returns what ends it."""

    async def serve() -> None:
        async with yard.plane.client() as client:
            await builders.install_crds(client, kueue())

    asyncio.run(serve())
    return lambda: yard.plane.kubectl("delete", "crd/workloads.kueue.x-k8s.io")
