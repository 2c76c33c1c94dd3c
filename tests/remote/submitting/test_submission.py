"""Submitting to a real apiserver: what is created, what is refused and why, and what is found before."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.running import tfyard
from tests.cli.test_describe import permit
from tfyard.controller.lease import DEFAULT_TIMING, Candidate
from tfyard.errors import TfyardError, Usage
from tfyard.kube import NotFound, Request, Resource, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.kube.times import micro_time
from tfyard.remote.acting import actions
from tfyard.remote.reading import jobs
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting import changes
from tfyard.remote.submitting.changes import Change
from tfyard.remote.submitting.submission import CannotSubmit, Submission, pack, prepare, submit
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster

Manifest = dict[str, Any]
CLAIMS = Resource("", "v1", "persistentvolumeclaims")
QUOTAS = Resource("", "v1", "resourcequotas")
SECRETS = Resource("", "v1", "secrets")
JOB = """\
name: mnist
image: example/train:1
run: python train.py
worker: 2
nodeSelector: {pool: NAMESPACE}
"""


class Place:
    """A namespace with an operator's lease and a node of its own, and a folder."""

    def __init__(self, client: SyncClient, namespace: str, folder: Path) -> None:
        self.client, self.namespace, self.folder = client, namespace, folder
        self.said: list[str] = []

    def write(self, text: str, name: str = "job.yaml") -> str:
        (self.folder / name).write_text(text.replace("NAMESPACE", self.namespace))
        return str(self.folder / name)

    def submit(self, text: str = JOB, client: SyncClient | None = None, **options: Any) -> Manifest:
        self.said.clear()
        given = Submission(target=self.write(text), namespace=self.namespace, **options)
        return submit(client or self.client, given, self.said.append).manifest

    def diff(self) -> list[Change]:
        """Of the file that was written last."""
        given = Submission(target=str(self.folder / "job.yaml"), namespace=self.namespace)
        return changes.diff(self.client, pack(self.client, prepare(given, "default"), given).manifests)

    def refused(self, text: str = JOB, **options: Any) -> list[str]:
        with pytest.raises(CannotSubmit) as caught:
            self.submit(text, **options)
        return [f"{each.subject}: {each.text}" for each in caught.value.findings]

    def create(self, resource: Resource, manifest: Manifest) -> None:
        self.client.send(requests.create(resource.path(self.namespace), manifest))

    def names(self, resource: Resource) -> list[str]:
        found = self.client.send(requests.get(resource.path(self.namespace)))["items"]
        return [each["metadata"]["name"] for each in found]

    def stranger(self) -> SyncClient:
        """A user who may create TFJobs here and nothing else."""
        rule = {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["create", "patch", "get"]}
        permit(self.client, self.namespace, "jane", [rule])
        return self.of("jane")

    def of(self, user: str) -> SyncClient:
        access = self.client.access
        return SyncClient(replace(access, user=replace(access.user, impersonate=user)))


@pytest.fixture
def place(control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path) -> Iterator[Place]:
    with SyncClient(control_plane.admin) as client:
        now = micro_time(datetime.now(UTC))
        spec = {"holderIdentity": "one", "renewTime": now, "leaseDurationSeconds": 600}
        lease = {"metadata": {"name": "tfyard-operator"}, "spec": spec}
        client.send(requests.create(requests.LEASES.path(namespace), lease))
        made = {"metadata": {"name": namespace, "labels": {"pool": namespace}}}
        client.send(requests.create(requests.NODES.path(), made))
        status = {"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "example.com/chip": "2"}}}
        client.send(requests.patch(requests.NODES.path("", namespace, "status"), status))
        untainted = {"spec": {"taints": None}}
        client.send(requests.patch(requests.NODES.path("", namespace), untainted))
        try:
            yield Place(client, namespace, tmp_path)
        finally:
            client.send(requests.delete(requests.NODES.path("", namespace)))
            with suppress(NotFound):  # the test was about a cluster without one
                client.send(requests.delete(requests.LEASES.path(namespace, "tfyard-operator")))


def test_everything_of_a_file_is_created_before_the_job_and_owned_by_tfyard(place: Place) -> None:
    volumes = "volumes: {data: {claim: mnist-data, size: 1Gi, storageClass: '', at: /data}}\n"
    other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"
    text = f"{JOB}{volumes}{other}".replace("storageClass: '', ", "")
    stored = place.submit(text, force=True)  # no class makes volumes here
    assert [line for line in place.said if "warning" not in line and "fix" not in line] == [
        "configmap/settings serverside-applied",
        "persistentvolumeclaim/mnist-data created",
        "tfjob.kubeflow.org/mnist serverside-applied",
    ]
    assert stored["metadata"]["uid"]
    assert {each["manager"] for each in stored["metadata"]["managedFields"]} == {"tfyard"}
    assert stored["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 2
    assert "mnist-data" in place.names(CLAIMS)
    assert "settings" in place.names(requests.CONFIG_MAPS)


def test_submitting_the_same_again_changes_nothing_and_a_change_that_pods_would_not_see_is_refused(
    place: Place, control_plane: ControlPlane
) -> None:
    first = place.submit()
    assert place.submit()["metadata"]["generation"] == first["metadata"]["generation"]
    assert place.said == ["tfjob.kubeflow.org/mnist unchanged"]
    config = {"KUBECONFIG": str(control_plane.kubeconfig)}
    again = tfyard("submit", "job.yaml", "-n", place.namespace, cwd=place.folder, **config)
    assert again.out == "tfjob.kubeflow.org/mnist unchanged\n"
    words = ("submit", "job.yaml", "-n", place.namespace)
    assert tfyard(*words, "-o", "name", cwd=place.folder, **config).out == "tfjob.kubeflow.org/mnist\n"
    told = tfyard(*words, "-o", "json", cwd=place.folder, **config)
    assert json.loads(told.out)["metadata"]["uid"] == first["metadata"]["uid"]
    assert place.submit(sets=("worker=3",))["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 3
    with pytest.raises(
        TfyardError, match=r"mnist runs already, and spec\.tfReplicaSpecs\.Worker\.template\S+ cannot change"
    ) as caught:
        place.submit(image="example/train:2", sets=("worker=3",))
    assert "`tfyard delete mnist`" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert place.submit(image="example/train:2", name="mnist-2")["metadata"]["name"] == "mnist-2"


def test_what_diff_marks_as_fixed_is_refused_by_submit(place: Place) -> None:
    place.submit(f"{JOB}gang:\n  queue: blue\n")
    with pytest.raises(TfyardError, match=r"schedulingPolicy\.queue is immutable"):
        place.submit(f"{JOB}gang:\n  queue: green\n")
    (mark,) = [mark for each in place.diff() for mark in each.marks]
    assert mark.startswith(
        "spec.runPolicy.schedulingPolicy.queue cannot change while the job runs: its PodGroup"
    )


def test_a_job_that_has_ended_or_is_being_deleted_is_refused_with_the_ways_on(place: Place) -> None:
    place.submit()
    path = TFJOBS.path(place.namespace, "mnist")
    condition = {"type": "Succeeded", "status": "True", "reason": "TFJobSucceeded", "message": ""}
    status = {"status": {"conditions": [condition], "replicaStatuses": {}}}
    place.client.send(requests.patch(f"{path}/status", status))
    with pytest.raises(TfyardError) as caught:
        place.submit()
    assert str(caught.value) == (
        "TFJob mnist has succeeded; `tfyard rerun mnist` runs it again, `tfyard delete mnist` removes it,"
        " another name submits this one beside it"
    )
    place.client.send(requests.patch(path, {"metadata": {"finalizers": ["example.com/wait"]}}))
    place.client.send(requests.delete(path))
    with pytest.raises(
        TfyardError, match="mnist is being deleted; submit it when it is gone, or another name"
    ):
        place.submit()
    place.client.send(requests.patch(path, {"metadata": {"finalizers": None}}))


def test_fields_of_others_are_not_taken_over_unless_that_is_asked_for(place: Place) -> None:
    place.submit()
    theirs = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "mnist"},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}},
    }
    query = {"fieldManager": "scaler", "force": "true"}
    path = TFJOBS.path(place.namespace, "mnist")
    place.client.send(requests.patch(path, theirs, requests.Patch.APPLY, query))
    with pytest.raises(TfyardError) as caught:
        place.submit()
    assert str(caught.value).startswith(
        "tfjob.kubeflow.org/mnist: scaler owns .spec.tfReplicaSpecs.Worker.replicas; leave them out"
    )
    assert place.submit(force_conflicts=True)["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 2


def test_what_scale_and_stop_changed_is_tfyards_own_and_submit_says_what_becomes_of_it(place: Place) -> None:
    def change(intend: Callable[[SyncClient, StoredTFJob], actions.ClusterIntent]) -> None:
        found = jobs.find(place.client, place.namespace, "mnist")
        actions.perform(place.client, intend(place.client, found))

    place.submit()
    change(lambda client, found: actions.scale(client, found, {"Worker": 4}))
    assert place.submit()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 2
    assert place.said == ["worker: 4 -> 2 tasks", "tfjob.kubeflow.org/mnist serverside-applied"]
    change(actions.stop)
    assert place.submit(sets=("worker=3",))["spec"]["runPolicy"]["suspend"]
    stays = "mnist is stopped and stays stopped; `tfyard resume mnist` starts it again"
    assert place.said == ["worker: 2 -> 3 tasks", "tfjob.kubeflow.org/mnist serverside-applied", stays]


class Counting(SyncClient):
    """Knows what it was asked."""

    asked: tuple[str, ...] = ()

    def read(self, request: Request) -> bytes:
        self.asked += (f"{request.method} {request.path.partition('?')[0].rpartition('/')[2]}",)
        return super().read(request)


def test_no_more_is_asked_than_the_job_needs(place: Place) -> None:
    with Counting(place.client.access) as client:
        place.submit(client=client)
        assert sorted(client.asked) == [
            "GET leases",
            "GET mnist",
            "GET nodes",
            "GET resourcequotas",
            "PATCH mnist",
            "PATCH mnist",
            "POST configmaps",
            "POST pods",
        ]


class StoppedByCtrlC(SyncClient):
    """Ctrl-C is pressed when the job itself is about to be created."""

    def read(self, request: Request) -> bytes:
        if request.method == "PATCH" and "/tfjobs/" in request.path and "dryRun" not in request.path:
            raise KeyboardInterrupt
        return super().read(request)


def test_what_was_made_before_ctrl_c_is_named(place: Place) -> None:
    claim = "volumes: {data: {claim: mnist-data, size: 1Gi, at: /data}}\n"
    with StoppedByCtrlC(place.client.access) as client, pytest.raises(KeyboardInterrupt):
        place.submit(JOB + claim, client=client, force=True)
    assert place.names(CLAIMS) == ["mnist-data"]
    assert place.said[-1] == (
        "mnist was not submitted, but created: persistentvolumeclaim/mnist-data; submitting it again uses that,"
        f" `kubectl delete -n {place.namespace} persistentvolumeclaim/mnist-data` removes it"
    )


def test_a_dry_run_of_the_server_stores_nothing(place: Place) -> None:
    assert place.submit(dry_run=True)["metadata"]["name"] == "mnist"
    assert place.said[-1] == "tfjob.kubeflow.org/mnist serverside-applied (server dry run)"
    assert place.names(TFJOBS) == []


def test_a_very_large_job_is_submitted_with_a_warning(place: Place) -> None:
    place.submit(f"{JOB}env: {{DATA: {'x' * 600_000}}}\n", dry_run=True)
    (warning,) = [line for line in place.said if "KiB" in line]
    assert warning.startswith("warning: the TFJob has 58")
    assert "fix: keep data in a ConfigMap" in warning


def test_a_refused_job_leaves_nothing_behind(place: Place) -> None:
    claim = "volumes: {data: {claim: mnist-data, size: 1Gi, at: /data}}\n"
    assert "no volume would be made for it" in place.refused(JOB + claim)[0]
    assert (place.names(CLAIMS), place.names(TFJOBS)) == ([], [])


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        ("cpu: 5\n", "worker: worker-0 and worker-1 ask for 5 cpu, and the largest node has 4"),
        (
            "overlay: {spec: {containers: [{name: tensorflow, resources: {limits: {example.com/chip: 3}}}]}}\n",
            "worker: worker-0 and worker-1 ask for 3 example.com/chip",
        ),
        ("serviceAccount: robot\n", "worker: there is no ServiceAccount robot in namespace"),
        ("overlay: {spec: {priorityClassName: urgent}}\n", "worker: there is no PriorityClass urgent"),
        ("volumes: {d: {claim: data, at: /data}}\n", "claim data: there is no claim data in namespace"),
        ("volumes: {d: {configMap: files, at: /data}}\n", "worker: there is no ConfigMap files in namespace"),
        ("volumes: {d: {secret: keys, at: /data}}\n", "worker: there is no Secret keys in namespace"),
        (
            "overlay: {spec: {containers: [{name: tensorflow, env: [{name: A, valueFrom: {configMapKeyRef: {name:"
            " there, key: other}}}]}]}}\n",
            "worker: ConfigMap there has no key other",
        ),
    ],
)
def test_what_stands_in_the_way_is_found_before_anything_is_created(
    place: Place, words: str, finding: str
) -> None:
    place.create(requests.CONFIG_MAPS, {"metadata": {"name": "there"}, "data": {"yes": ""}})
    assert [each for each in place.refused(JOB + words) if each.startswith(finding)] != []
    assert place.names(TFJOBS) == []


def test_a_taint_a_label_and_a_pull_secret_are_found(place: Place) -> None:
    (text,) = place.refused(JOB.replace("pool:", "pool-of:"))
    assert "no node has the label pool-of=" in text
    taint = {"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}}
    place.client.send(requests.patch(requests.NODES.path("", place.namespace), taint))
    (text,) = place.refused()
    assert "1 node would take worker-0 and worker-1, but for the taint team=a:NoSchedule" in text
    place.submit(f"{JOB}tolerations: [{{key: team, operator: Exists}}]\npullSecret: registry\n")
    assert any("there is no Secret registry in namespace" in line for line in place.said)


def test_a_quota_is_compared_with_the_whole_job(place: Place) -> None:
    place.create(QUOTAS, {"metadata": {"name": "team"}, "spec": {"hard": {"pods": "1"}}})
    status = {"status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}}
    place.client.send(requests.patch(QUOTAS.path(place.namespace, "team", "status"), status))
    assert place.refused() == ["quota: the job asks for 2 of pods, and quota team allows 1"]
    full = {"status": {"used": {"pods": "1"}}}
    place.client.send(requests.patch(QUOTAS.path(place.namespace, "team", "status"), full))
    place.submit(sets=("worker=1",))
    assert any(line.startswith("warning: quota: the job asks for 1 of pods") for line in place.said)


def test_pod_security_is_told_by_the_server_itself_and_force_goes_on(place: Place) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    place.client.send(requests.patch(requests.NAMESPACES.path("", place.namespace), label))
    said = "worker: the namespace accepts only pods of PodSecurity restricted:latest"
    assert refused_in_time(place, said)
    (text,) = place.refused()
    assert text.startswith(said)
    assert text.endswith('seccompProfile.type to "RuntimeDefault" or "Localhost")'), "all of them are named"
    place.submit(force=True)
    assert place.said[0].startswith("warning: worker: the namespace accepts only pods of PodSecurity")
    assert place.names(TFJOBS) == ["mnist"]


def test_with_the_overlay_of_the_fix_pods_pass_pod_security(place: Place) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    place.client.send(requests.patch(requests.NAMESPACES.path("", place.namespace), label))
    assert refused_in_time(place, "worker: the namespace accepts only pods of PodSecurity")
    with pytest.raises(CannotSubmit) as caught:
        place.submit()
    (fix,) = [finding.fix for finding in caught.value.findings]
    line = fix.removeprefix("job file: `").removesuffix("`")
    assert place.submit(f"{JOB}{line}\n")["metadata"]["name"] == "mnist"


def test_a_webhook_that_does_not_answer_is_named(place: Place) -> None:
    hooks = Resource(
        "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
    )
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    hook = {
        "name": "strict.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    body = {"metadata": {"name": place.namespace}, "webhooks": [hook]}
    place.client.send(requests.create(hooks.path(), body))
    try:
        assert refused_in_time(place, "worker: the admission webhook strict.example.com cannot be reached")
    finally:
        place.client.send(requests.delete(hooks.path("", place.namespace)))


def refused_in_time(place: Place, text: str) -> bool:
    """The server learns of a new webhook, label or limit a moment later."""
    for _ in range(300):
        try:
            place.submit(dry_run=True)
        except CannotSubmit as problem:
            found, *_ = problem.findings
            return f"{found.subject}: {found.text}".startswith(text)
        time.sleep(0.1)
    return False


def test_a_limit_range_is_told_and_its_defaults_count(place: Place) -> None:
    limit = {
        "type": "Container",
        "default": {"cpu": "6"},
        "defaultRequest": {"cpu": "6"},
        "max": {"cpu": "8"},
    }
    ranges = Resource("", "v1", "limitranges")
    place.create(ranges, {"metadata": {"name": "sizes"}, "spec": {"limits": [limit]}})

    assert refused_in_time(place, "worker: worker-0 and worker-1 ask for 6 cpu, and the largest node has 4")
    (text,) = place.refused(f"{JOB}cpu: 9\n")[:1]
    assert text.startswith("worker: a LimitRange of the namespace says: maximum cpu usage per Container is 8")


def delete_leases(place: Place) -> None:
    """Also those of operators that other tests have started."""
    of = {"fieldSelector": "metadata.name=tfyard-operator"}
    for lease in place.client.send(requests.get(requests.LEASES.path(), of))["items"]:
        path = requests.LEASES.path(lease["metadata"]["namespace"], "tfyard-operator")
        place.client.send(requests.delete(path))


def test_a_job_is_submitted_while_the_leader_changes(place: Place) -> None:
    delete_leases(place)
    leader = Candidate("one", place.namespace)
    held = leader.claim(None, DEFAULT_TIMING, datetime.now(UTC))
    place.create(requests.LEASES, leader.release(held, datetime.now(UTC)))
    place.submit()
    assert (place.names(TFJOBS), [line for line in place.said if "operator" in line]) == (["mnist"], [])
    ended = {"spec": {"renewTime": micro_time(datetime.now(UTC) - timedelta(minutes=1))}}
    place.client.send(requests.patch(requests.LEASES.path(place.namespace, leader.name), ended))
    assert place.refused(JOB.replace("mnist", "next")) == [
        "operator: no operator would run the job: the tfyard operator is installed, but does not run"
    ]


def test_without_an_operator_nothing_is_submitted(place: Place) -> None:
    delete_leases(place)
    assert place.refused() == [
        "operator: no operator would run the job: no tfyard operator is installed in this cluster"
    ]


def test_all_findings_come_at_once(place: Place) -> None:
    found = place.refused(
        f"{JOB}cpu: 5\nvolumes: {{d: {{secret: keys, at: /d}}, e: {{claim: data, at: /e}}}}\n"
    )
    assert len(found) == 3


def test_a_user_who_may_read_nothing_is_told_so_in_one_line_and_may_submit(place: Place) -> None:
    with place.stranger() as client:
        place.submit(f"{JOB}volumes: {{d: {{secret: keys, at: /d}}}}\n", client)
    (said, *_) = place.said
    assert said.startswith("not checked: ")
    assert "you may not list nodes" in said
    assert "you may not create pods, so none was tried" in said
    assert "you may not get secrets" in said
    assert place.names(TFJOBS) == ["mnist"]


def test_a_user_who_may_not_submit_is_told_how_an_administrator_allows_it(place: Place) -> None:
    with place.of("bob") as client, pytest.raises(TfyardError) as caught:
        place.submit(client=client)
    assert caught.value.exit_code == 1, "as every refusal"
    assert str(caught.value).startswith(f"bob may not patch tfjobs in the namespace {place.namespace};")
    assert f"kubectl create rolebinding tfyard -n {place.namespace} --clusterrole=tfyard-edit" in str(
        caught.value
    )


def test_a_namespace_that_is_not_there_is_one_line(place: Place) -> None:
    given = Submission(target=place.write(JOB), namespace="absent")
    with pytest.raises(TfyardError, match="there is no namespace absent; `kubectl create namespace absent`"):
        submit(place.client, given, place.said.append)


def test_an_old_version_is_converted_and_that_is_said(place: Place) -> None:
    container = {"name": "tensorflow", "image": "example/train:1", "command": ["python", "t.py"]}
    spec = {"containers": [container], "nodeSelector": {"pool": place.namespace}}
    old = {
        "apiVersion": "kubeflow.org/v1beta2",
        "kind": "TFJob",
        "metadata": {"name": "old"},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": spec}}}},
    }
    stored = place.submit(json.dumps(old))
    assert place.said[0] == "converted from kubeflow.org/v1beta2 to kubeflow.org/v1"
    assert stored["apiVersion"] == "kubeflow.org/v1"
    assert stored["spec"]["runPolicy"]["cleanPodPolicy"] == "Running"


def test_workloads_become_a_job_and_what_they_need_goes_with_it(place: Place) -> None:
    container = {"name": "main", "image": "example/train:1", "command": ["python", "train.py"]}
    template = {
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "nodeSelector": {"pool": place.namespace},
        }
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "alone"},
        "spec": {"template": template},
    }
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "alone"},
        "spec": {"ports": [{"port": 1}]},
    }
    text = "\n---\n".join(map(json.dumps, (job, settings, service)))
    assert place.submit(text)["metadata"]["name"] == "alone"
    assert "not submitted: Service alone" in place.said
    assert "configmap/settings serverside-applied" in place.said
    with pytest.raises(NotFound):
        place.client.send(requests.get(requests.SERVICES.path(place.namespace, "alone")))


def test_a_script_gets_its_code_and_a_claim_for_its_outputs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.folder)
    (place.folder / "train.py").write_text("print('hello')\n")
    given = Submission(target="train.py", worker=2, env=("LR=1",), namespace=place.namespace, force=True)
    stored = submit(place.client, given, place.said.append).manifest
    (container,) = stored["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "train.py"]
    assert {each["name"]: each["value"] for each in container["env"]} == {"TFYARD_OUT": "/out", "LR": "1"}
    assert "train-out" in place.names(CLAIMS)
    claim = place.client.send(requests.get(CLAIMS.path(place.namespace, "train-out")))
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert "all tasks run on one node: no storage class here makes volumes for several" in place.said


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (JOB, {"args": ("a",)}, "what follows `--` is for scripts"),
        (JOB, {"sets": ("worker=0",)}, "mnist has no tasks: nothing to submit"),
        (JOB, {"deadline": "1h"}, "--deadline is for scripts"),
        ("kind: Service\n", {}, "has no TFJob, no tfyard job file and no workload; give a file with one"),
    ],
)
def test_what_cannot_be_submitted_is_a_usage_error(
    tmp_path: Path, text: str, options: Any, message: str
) -> None:
    (tmp_path / "job.yaml").write_text(text)
    with pytest.raises(Usage, match=message):
        prepare(Submission(target=str(tmp_path / "job.yaml"), **options), "default")


def test_nothing_differs_from_what_was_submitted_until_the_code_changes(place: Place) -> None:
    (place.folder / "train.py").write_text("print('hello')\n")
    text = f"{JOB}code: .\n"
    place.submit(text)
    assert any(line.startswith("code: 2 files, ") for line in place.said)

    def differing() -> list[str]:
        return [each.title.partition("/")[0] for each in place.diff() if not each.is_none]

    assert differing() == []
    (place.folder / "train.py").write_text("print('hello again')\n")
    assert differing() == ["configmap", "tfjob.kubeflow.org"]
    marks = [mark.partition(" cannot")[0] for each in place.diff() for mark in each.marks]
    assert marks == ["its code"]
    with pytest.raises(TfyardError, match="mnist runs already, and its code cannot change while it does"):
        place.submit(text)
