"""`tfyard describe` and `events`: of a job with pods and events on the real apiserver, and of a run."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Result, tfyard
from tests.cli.test_get import TEMPLATE, running, set_status, tfjob
from tfyard.kube import Resource, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model.names import ATTEMPT, JOB_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.testing import ControlPlane, builders

REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)
AT, LATER = "2024-11-16T03:00:00Z", "2024-11-16T03:10:00Z"
SOON = "2100-01-01T00:00:00Z"
"""After every job of these tests was created."""


def pod(index: int, attempt: int, owner: str) -> dict[str, Any]:
    labels = {JOB_NAME: "first", REPLICA_TYPE: "worker", REPLICA_INDEX: str(index)}
    made = builders.pod(f"first-worker-{index}", labels)
    reference = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "first", "uid": owner}
    more = {"annotations": {ATTEMPT: str(attempt)}, "ownerReferences": [reference]}
    return {**made, "metadata": {**made["metadata"], **more}}


def event(kind: str, name: str, reason: str, uid: str = "") -> dict[str, Any]:
    return {
        "metadata": {"generateName": "e-"},
        "involvedObject": {"kind": kind, "name": name, "uid": uid},
        "type": "Warning",
        "reason": reason,
        "message": f"{reason} happened",
        "lastTimestamp": AT,
        "count": 2,
    }


def fill(client: SyncClient, namespace: str) -> None:
    job = client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))
    set_status(client, namespace, "first", running())
    for index, state in enumerate(
        ({"running": {"startedAt": LATER}}, {"terminated": {"exitCode": 137, "reason": "OOMKilled"}})
    ):
        client.send(requests.create(requests.PODS.path(namespace), pod(index, index, job["metadata"]["uid"])))
        program = {"name": "tensorflow", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": AT}
        status = {"conditions": [scheduled], "containerStatuses": [{**program, "state": state}]}
        path = requests.PODS.path(namespace, f"first-worker-{index}", "status")
        client.send(requests.patch(path, {"status": status}))
    for kind, name in (("TFJob", "first"), ("Pod", "first-worker-1"), ("Pod", "others-worker-1")):
        client.send(
            requests.create(
                requests.EVENTS.path(namespace),
                {
                    **event(kind, name, f"Of{kind}"),
                    "involvedObject": {"kind": kind, "name": name, "namespace": namespace},
                },
            )
        )


APPLIED = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: applied, labels: {team: vision}}
spec:
  runPolicy: {backoffLimit: 3}
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: tensorflow, image: "a:1", args: [--fast]}]}}
"""


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("words", "by", "changed", "more"),
    [
        (
            ("--server-side", "--field-manager=tfyard"),
            "tfyard submit",
            "changed since, so missing here",
            "; what was removed leaves no trace",
        ),
        ((), "kubectl apply", "changed since", ""),
    ],
    ids=["tfyard", "kubectl"],
)
def test_a_job_is_shown_as_given_and_as_applied(
    words: tuple[str, ...],
    by: str,
    changed: str,
    more: str,
    control_plane: ControlPlane,
    crds: None,
    namespace: str,
    tmp_path: Path,
) -> None:
    def kubectl(*args: str, stdin: str = "") -> None:
        control_plane.kubectl("-n", namespace, *args, stdin=stdin)

    kubectl("apply", *words, "-f", "-", stdin=APPLIED)
    kubectl("patch", "tfjob", "applied", "--type=merge", "-p", '{"spec": {"runPolicy": {"backoffLimit": 9}}}')
    env = {"KUBECONFIG": str(control_plane.kubeconfig)}
    given, applied = tfyard("describe", "applied", "--spec", "-n", namespace, cwd=tmp_path, **env).out.split(
        "---\n"
    )
    head = given.splitlines()[:2]
    path = "spec.runPolicy.backoffLimit (kubectl-patch)"
    assert head == [f"# as given (by {by})", f"# {changed}: {path}{more}"]
    assert "backoffLimit: 9" not in given
    assert all(word in given for word in ("team: vision", "replicas: 2", "--fast"))
    assert "status" not in given
    assert "backoffLimit: 9" in applied


@pytest.mark.cluster
def test_a_job_is_described_with_its_pods_and_events(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    with SyncClient(control_plane.admin) as client:
        fill(client, namespace)

    def run(*args: str, config: Path = control_plane.kubeconfig) -> Result:
        return tfyard(*args, "-n", namespace, cwd=tmp_path, KUBECONFIG=str(config))

    told = run("describe", "first").out
    rows = [line.split() for line in told.splitlines() if line.startswith("  worker-")]
    assert [row[:3] for row in rows] == [["worker-0", "1", "Running"], ["worker-1", "2", "Failed"]]
    assert "137" in rows[1]
    assert "OOMKilled" in rows[1]
    assert "10m00s" in rows[0]
    found = json.loads(run("events", "first", "-o", "json").out)
    assert {(each["about"], each["count"]) for each in found} == {
        ("TFJob/first", 2),
        ("Pod/first-worker-1", 2),
    }
    assert "OfPod happened" in told
    assert "# as applied" in run("describe", "first", "--spec").out
    viewer = control_plane.write_kubeconfig(control_plane.access("viewer"), "viewer")
    rules = [{"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get"]}]
    allow(control_plane, namespace, "viewer", rules)
    half = run("describe", "first", config=viewer)
    assert half.code == 0
    assert [line[:9] for line in half.out.split("Not seen:\n")[1].splitlines()] == ["  pods: p", "  events:"]


@pytest.mark.cluster
def test_describe_shows_no_pods_or_events_of_other_jobs_with_the_same_names(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    def tell(client: SyncClient, kind: str, name: str, reason: str, uid: str) -> None:
        made = event(kind, name, reason, uid)
        made["involvedObject"]["namespace"] = namespace
        client.send(requests.create(requests.EVENTS.path(namespace), {**made, "lastTimestamp": SOON}))

    with SyncClient(control_plane.admin) as client:
        old = {
            "apiVersion": "tensorflow.org/v1alpha1",
            "kind": "TfJob",
            "metadata": {"name": "first"},
            "spec": {"replicaSpecs": [{"tfReplicaType": "MASTER", "template": TEMPLATE}]},
        }
        other = client.send(requests.create(OLD_TFJOBS.path(namespace), old))["metadata"]["uid"]
        own = client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))["metadata"]["uid"]
        blocked = {"type": "Blocked", "status": "True", "reason": "NameTaken", "message": "taken"}
        set_status(client, namespace, "first", {"phase": "Blocked", "conditions": [blocked]})
        bare = builders.pod("first-worker-1", {JOB_NAME: "first", REPLICA_TYPE: "worker", REPLICA_INDEX: "1"})
        for made, reason in ((pod(0, 0, other), "OfTheOther"), (bare, "OfNobody")):
            stored = client.send(requests.create(requests.PODS.path(namespace), made))["metadata"]
            tell(client, "Pod", stored["name"], reason, stored["uid"])
        tell(client, "TFJob", "first", "OfAnEarlierOne", "00000000-0000-0000-0000-000000000000")
        tell(client, "TFJob", "first", "OfItself", own)

    told = tfyard(
        "describe", "first", "-n", namespace, cwd=tmp_path, KUBECONFIG=str(control_plane.kubeconfig)
    )
    assert "Blocked:    taken" in told.out
    assert "Attempts:" not in told.out
    assert {word for word in told.out.split() if word.startswith("Of")} == {"OfItself"}


@pytest.mark.cluster
def test_events_of_pods_that_are_gone_are_told_unless_they_are_older_than_the_job(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    gone = "00000000-0000-0000-0000-000000000000"
    with SyncClient(control_plane.admin) as client:
        client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))
        for reason, at in (("Earlier", AT), ("Replaced", SOON)):
            made = event("Pod", "first-worker-0", reason, gone)
            made["involvedObject"]["namespace"] = namespace
            client.send(requests.create(requests.EVENTS.path(namespace), {**made, "lastTimestamp": at}))
    env = {"KUBECONFIG": str(control_plane.kubeconfig)}
    told = json.loads(tfyard("events", "first", "-n", namespace, "-o", "json", cwd=tmp_path, **env).out)
    assert [each["reason"] for each in told] == ["Replaced"]


def allow(plane: ControlPlane, namespace: str, user: str, rules: list[dict[str, Any]]) -> None:
    with SyncClient(plane.admin) as client:
        permit(client, namespace, user, rules)


def permit(client: SyncClient, namespace: str, user: str, rules: list[dict[str, Any]]) -> None:
    root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    role = {"metadata": {"name": user}, "rules": rules}
    binding = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    client.send(requests.create(f"{root}/roles", role))
    client.send(requests.create(f"{root}/rolebindings", binding))
    until_permitted(client, namespace, user, rules[-1])


def until_permitted(client: SyncClient, namespace: str, user: str, rule: dict[str, Any]) -> None:
    """The server notices a new role a moment later. Without a namespace: in all of them."""
    (group, *_), (resource, *_), (verb, *_) = (rule[name] for name in ("apiGroups", "resources", "verbs"))
    attributes = {"namespace": namespace, "group": group, "resource": resource, "verb": verb}
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    end = time.monotonic() + 60
    while not client.send(requests.create(REVIEWS.path(), review))["status"]["allowed"]:
        assert time.monotonic() < end, review
        time.sleep(0.02)


FIRST_FAILS = """
import json, os, time
if json.loads(os.environ["TF_CONFIG"])["task"]["index"]:
    time.sleep(60)
raise SystemExit(5)
"""


@pytest.mark.processes
def test_a_run_is_described_in_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FIRST_FAILS)
    assert tfyard("run", "train.py", "-q", "--worker", "2", cwd=tmp_path).code == 5
    told = tfyard("describe", "train", "--local", cwd=tmp_path).out
    assert "State:      Failed after " in told
    assert [line.split()[:3] for line in told.splitlines() if line.startswith("  worker-0")] == [
        ["worker-0", "1", "Failed"]
    ]
    assert tfyard("run", "train.py", "-q", "--worker", "2", "--name", "other", cwd=tmp_path).code == 5
    one = json.loads(tfyard("describe", "train", "--local", "-o", "json", cwd=tmp_path).out)
    assert (one["summary"]["job"], one["attempts"][0]["task"]) == ("train", "worker-0")
    two = tfyard("describe", "train", "other", "--local", cwd=tmp_path).out
    assert [line.split()[1].partition("-")[0] for line in two.splitlines() if line[:5] == "Name:"] == [
        "train",
        "other",
    ]
    causes = tfyard("why", "train", "other", "--local", cwd=tmp_path)
    assert (causes.code, [line.partition("-")[0] for line in causes.out.split("\n\n")]) == (
        1,
        ["train", "other"],
    )
    both = json.loads(tfyard("why", "train", "other", "--local", "-o", "json", cwd=tmp_path).out)
    assert [answer["code"] for answer in both] == [1, 1]
    assert "Warning   Failed" in tfyard("events", "train", "--local", "--warnings", cwd=tmp_path).out
    assert tfyard("describe", "train", "--local", "--spec", cwd=tmp_path).out.splitlines()[1] == "name: train"
