"""Installations on a whole cluster: the operator's pod runs as a process, under exactly its ServiceAccount."""

import base64
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import DATA, ROOT, Result
from tests.cluster.clusters import Cluster, until
from tests.cluster.workshop_image import DRIVERS
from tests.helm import CHART, Helm, HelmFailed
from tests.install.test_docs import CHART_PAGE, lines
from tfyard.install import permissions, roles
from tfyard.install.clouds import CONFIGS
from tfyard.install.settings import CONFIG_NAME, NAME
from tfyard.model import Manifest
from tfyard.remote.installing import one_task_job

pytestmark = [pytest.mark.cluster, pytest.mark.long]
INSTALL = next(line for line in lines("helm") if line.startswith("helm install tf-job "))
UNINSTALL = next(line for line in lines("helm") if line.startswith("helm uninstall tf-job "))
"""As charts/tfyard/README.md says."""
"""As the pages say; the second returns when the operator's pods have ended."""
ASK_READYZ = """
import http.client
connection = http.client.HTTPConnection("127.0.0.1", 8080)
connection.request("GET", "/readyz")
answer = connection.getresponse()
assert answer.status == 503, answer.status
print(answer.read().decode())
"""
NAMESPACES = ("tfyard", "team-a", "team-b")
OF_OPERATOR = ("-n", "tfyard", "-l", "app.kubernetes.io/name=tfyard,app.kubernetes.io/component=operator")


@pytest.fixture
def box(empty: Cluster) -> Iterator[Cluster]:
    """With the namespaces of operator and teams, which pods enter only by PodSecurity's strictest level."""
    for name in NAMESPACES:
        empty.kubectl("create", "namespace", name)
        empty.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield empty
    left = ["crds", "--all"], ["clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=tfyard"]
    for what in (*left, ["namespaces", *NAMESPACES]):
        empty.kubectl("delete", *what, "--ignore-not-found")


def run(helm: Helm, box: Cluster, line: str) -> str:
    """A command line of the chart's page."""
    words = [word.replace("${CHART}", "charts/tfyard") for word in shlex.split(line)[1:]]
    words = [str(CHART) if word == "charts/tfyard" else word for word in words]
    return helm(*words, kubeconfig=box.kubeconfig)


def release(helm: Helm, box: Cluster, command: str, *args: str) -> str:
    return helm(command, "tf-job", *args, "--namespace=tfyard", "--wait", kubeconfig=box.kubeconfig)


def job(command: str, replicas: int = 1) -> str:
    """It passes PodSecurity `restricted`."""
    found = one_task_job.job("i")
    found["metadata"]["name"] = "train"
    worker = found["spec"]["tfReplicaSpecs"]["Worker"]
    worker["replicas"] = replicas
    worker["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", command]
    return yaml.safe_dump(found)


def has_succeeded(box: Cluster, namespace: str, name: str = "tfjob/train") -> bool:
    status = box.get("-n", namespace, name).get("status") or {}
    assert status.get("phase") != "Failed", status
    return bool(status.get("phase") == "Succeeded")


def operators(box: Cluster) -> list[Any]:
    """Its pods that are not being deleted."""
    found = box.get("pods", *OF_OPERATOR)["items"]
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def log(box: Cluster) -> str:
    return box.kubectl("logs", *OF_OPERATOR, "--tail=-1")


def metric(box: Cluster, name: str) -> float:
    path = f"/api/v1/namespaces/tfyard/services/{NAME}-metrics:8080/proxy/metrics"
    found = re.search(rf"^{name} (.*)$", box.kubectl("get", "--raw", path), re.MULTILINE)
    assert found
    return float(found[1])


def claims(token: str) -> Any:
    """What a JSON web token says."""
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def test_helm_installs_an_operator_that_is_denied_nothing(helm: Helm, box: Cluster) -> None:
    assert "helm test tf-job -n tfyard" in run(helm, box, INSTALL)
    (pod,) = operators(box)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    until(lambda: metric(box, "tfyard_is_leader") == 1.0)
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    said = claims(box.kubectl("exec", "-n", "tfyard", pod["metadata"]["name"], "--", "cat", token))
    assert said["sub"] == f"system:serviceaccount:tfyard:{NAME}"
    assert said["kubernetes.io"]["pod"]["uid"] == pod["metadata"]["uid"]

    tested = helm("test", "tf-job", "--namespace=tfyard", "--logs", kubeconfig=box.kubeconfig)
    assert f"{one_task_job.NAME}: Succeeded\n" in tested
    box.kubectl("apply", "-n", "team-a", "-f", "-", stdin=job("true", replicas=2))
    until(lambda: has_succeeded(box, "team-a"))
    box.kubectl("delete", "-n", "team-a", "tfjob/train")
    until(lambda: not box.get("-A", "tfjobs")["items"])
    until(lambda: not box.get("-n", "team-a", "pods,services")["items"])
    assert metric(box, "tfyard_missing_permissions") == 0.0
    assert [line for line in log(box).splitlines() if '"level":"info"' not in line] == []
    release(helm, box, "uninstall")


def test_upgrade_rollback_and_uninstall_leave_a_running_job_alone(helm: Helm, box: Cluster) -> None:
    run(helm, box, INSTALL)
    wait = "until [ -e /tmp/end-of-train ]; do sleep 0.2; done"
    box.kubectl("apply", "-n", "team-a", "-f", "-", stdin=job(wait))
    pod = ("pod/train-worker-0", "-n", "team-a")
    box.kubectl("wait", "--for=create", *pod, "--timeout=60s")
    box.kubectl("wait", "--for=condition=Ready", *pod, "--timeout=60s")
    before = box.get(*pod)["metadata"]["uid"]
    release(helm, box, "upgrade", str(CHART), "--set=replicaCount=2")
    assert len(operators(box)) == 2
    release(helm, box, "rollback", "1")
    assert len(operators(box)) == 1
    assert "tfjobs.kubeflow.org" in run(helm, box, UNINSTALL)
    until(lambda: box.get("pods", *OF_OPERATOR)["items"] == [], 60)  # helm --wait does not wait for their end
    box.kubectl("exec", *pod, "--", "touch", "/tmp/end-of-train")
    until(lambda: box.get(*pod)["status"]["phase"] == "Succeeded")
    assert not has_succeeded(box, "team-a"), "nobody is there to record it"

    run(helm, box, INSTALL)
    until(lambda: has_succeeded(box, "team-a"))
    after = box.get(*pod)
    assert after["metadata"]["uid"] == before
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    release(helm, box, "uninstall")


def test_document_004_installs_shows_its_config_and_gets_its_drivers(helm: Helm, box: Cluster) -> None:
    (line,) = re.findall(r"--set cloud=azure` \| `(helm .*)` \|", CHART_PAGE)
    run(helm, box, line)
    shown = box.kubectl("describe", "configmaps", CONFIG_NAME, "-n", "tfyard")
    assert f"controller_config_file.yaml:\n----\n{CONFIGS['azure']}" in shown
    text = (DATA / "seeds" / "004-example-tfjob.yaml").read_text()
    box.kubectl("create", "-f", "-", stdin=text)
    until(lambda: has_succeeded(box, "default", "tfjobs.tensorflow.org/example-tfjob"))
    assert f"drivers {DRIVERS} /usr/lib/nvidia:/usr/lib/x86_64-linux-gnu\n" in box.kubectl(
        "logs", "example-tfjob-master-0"
    )
    box.kubectl("delete", "tfjobs.tensorflow.org/example-tfjob")
    release(helm, box, "uninstall")


SWEEP = """
name: tune
job: train.yaml
over: {lr: [1, 2, 3, 4]}
objective: max auc
parallel: 2
"""


def test_a_sweep_ends_with_no_client_in_the_image_that_the_chart_names(
    helm: Helm, box: Cluster, tmp_path: Path
) -> None:
    release(helm, box, "install", str(CHART), "--set=page.enabled=true")
    box.kubectl("create", "rolebinding", "ann", "-n", "team-a", "--clusterrole=edit", "--user=ann")
    may = box.kubectl_command("auth", "can-i", "create", "tfjobs", "-n", "team-a", "--as=ann")
    until(lambda: subprocess.run(may, capture_output=True).returncode == 0)
    (tmp_path / "train.yaml").write_text(job('echo "step 1 auc 0.$LR"'))
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = on(box, "submit", str(tmp_path / "sweep.yaml"), "-n", "team-a", "--as", "ann")
    assert done.code == 0, done.err
    (line,) = [part for part in done.err.split("`") if part.startswith("kubectl create rolebinding")]
    box.kubectl(*shlex.split(line)[1:])
    tune = ("configmap/tune", "-n", "team-a")
    until(lambda: box.get(*tune)["data"]["summary"] == "4/4 done, best auc 0.4", 240)
    (driver,) = box.get("pods", "-n", "team-a", "-l", "batch.kubernetes.io/job-name")["items"]
    (container,) = driver["spec"]["containers"]
    assert container["image"] == operators(box)[0]["spec"]["containers"][0]["image"]
    until(
        lambda: box.get("pod", driver["metadata"]["name"], "-n", "team-a")["status"]["phase"] == "Succeeded"
    )
    assert len(box.get("tfjobs", "-n", "team-a", "-l", "tfyard.dev/sweep=tune")["items"]) == 4
    box.kubectl("delete", *tune)
    until(lambda: not box.get("tfjobs,jobs", "-n", "team-a")["items"])
    release(helm, box, "uninstall")


# --- without Helm


def install(box: Cluster, *args: str) -> list[str]:
    done = on(box, "install", *args)
    assert done.code == 0, done.err
    return done.out.splitlines()


def on(box: Cluster, *args: str) -> Result:
    return box.tfyard(*args)


def leader(box: Cluster) -> str:
    """The name of its pod."""
    holder = box.get("lease", "tfyard-operator", "-n", "tfyard")["spec"]["holderIdentity"]
    return str(holder.rpartition("_")[0])


def test_tfyard_install_waits_for_a_leader_of_its_own_and_uninstall_leaves_nothing(box: Cluster) -> None:
    said = install(box)
    page = (ROOT / "docs" / "install.md").read_text().splitlines()
    assert said[-2:] == ["The operator is ready.", said[-1]]
    assert said[-1] in page
    (pod,) = operators(box)
    assert leader(box) == pod["metadata"]["name"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0, "it waits for the CRDs"

    install(box, "--namespaces=team-a,team-b", "--replicas=2")
    names = {each["metadata"]["name"] for each in operators(box)}
    assert len(names) == 2
    assert leader(box) in names, "not the one that was replaced"
    for namespace in ("team-a", "team-b", "tfyard"):
        box.kubectl("apply", "-n", namespace, "-f", "-", stdin=job("true"))
    until(lambda: has_succeeded(box, "team-a"))
    until(lambda: has_succeeded(box, "team-b"))
    status = box.get("-n", "tfyard", "tfjob/train")["status"]
    assert (status["phase"], "conditions" in status) == ("Pending", False), "its namespace is not worked for"
    assert [line for line in log(box).splitlines() if '"level":"info"' not in line] == []

    assert on(box, "uninstall").code == 0
    kinds = "deployments,pods,services,serviceaccounts,roles,rolebindings,poddisruptionbudgets,leases"
    found = box.get(kinds, "-n", "tfyard")["items"]
    assert [each["metadata"]["name"] for each in found] == ["default"], "the ServiceAccount of each namespace"
    assert len(box.get("-A", "tfjobs")["items"]) == 3


def holder(box: Cluster) -> str:
    """Empty between two leaders."""
    return str(box.get("lease", "tfyard-operator", "-n", "tfyard")["spec"].get("holderIdentity") or "")


def submitted_until_another_leads(box: Cluster, before: str, file: Path) -> list[str]:
    """The names of the jobs."""
    names: list[str] = []
    while not names or holder(box) in ("", before):
        names.append(f"train-{len(names)}")
        done = on(box, "submit", str(file), "--name", names[-1], "-n", "team-a")
        assert done.code == 0, done.err
    return names


@pytest.mark.parametrize("end", ["deleted", "killed"])
def test_jobs_are_submitted_while_the_leader_changes_and_the_next_one_runs_them(
    box: Cluster, tmp_path: Path, end: str
) -> None:
    install(box, "--replicas=2")
    (tmp_path / "train.yaml").write_text(job("true"))
    before, pod = holder(box), leader(box)
    if end == "deleted":
        box.kubectl("delete", "pod", pod, "-n", "tfyard", "--wait=false")
    else:
        os.kill(box.program_of(pod), signal.SIGKILL)
    for name in submitted_until_another_leads(box, before, tmp_path / "train.yaml"):
        until(lambda: has_succeeded(box, "team-a", f"tfjob/{name}"))  # noqa: B023
    assert on(box, "uninstall").code == 0


def test_a_release_with_roles_in_two_namespaces_works_and_is_left_to_helm(helm: Helm, box: Cluster) -> None:
    release(helm, box, "install", str(CHART), "--set=namespaces={team-a,team-b}")
    helm("test", "tf-job", "--namespace=tfyard", kubeconfig=box.kubeconfig)
    assert metric(box, "tfyard_missing_permissions") == 0.0
    refused = on(box, "install")
    assert refused.code == 1
    assert f"{NAME} in the namespace tfyard is Helm's; helm upgrade tf-job --namespace tfyard" in refused.err
    refused = on(box, "uninstall")
    assert refused.code == 1
    assert "nothing was deleted: Helm installed the operator; run helm uninstall tf-job" in refused.err
    assert len(operators(box)) == 1
    release(helm, box, "uninstall")


def test_helm_takes_over_definitions_that_tfyard_left(helm: Helm, box: Cluster) -> None:
    install(box, "--no-wait")
    assert on(box, "uninstall").code == 0
    with pytest.raises(HelmFailed, match="cannot be imported into the current release"):
        release(helm, box, "install", str(CHART))
    release(helm, box, "install", str(CHART), "--take-ownership")
    release(helm, box, "uninstall")
    install(box, "--no-wait")
    assert on(box, "uninstall").code == 0


def test_each_rule_that_is_taken_away_is_reported_by_the_operator(box: Cluster) -> None:
    install(box, "--versions=all")
    optional = roles.rules([permissions.NODES])
    for kind, name in (("clusterrole", NAME), ("role", f"{NAME}-lease")):
        whole = box.get(kind, name, "-n", "tfyard")
        for rule in whole["rules"]:
            if rule not in optional:
                rest = [each for each in whole["rules"] if each != rule]
                assert_missing(box, {**whole, "rules": rest}, rule)
        set_rules(box, whole)


def assert_missing(box: Cluster, role: Manifest, rule: Manifest) -> None:
    """A new operator says so, and is not ready."""
    set_rules(box, role)
    box.kubectl("delete", "pods", *OF_OPERATOR)
    (told,) = until(lambda: re.findall(r"missing permissions: ([^\"]*)", log(box)))
    group, resources = rule["apiGroups"][0], [each for each in rule["resources"] if "finalizers" not in each]
    for resource in resources:
        plural, *sub = resource.split("/")
        what = "/".join([".".join(filter(None, (plural, group))), *sub])
        (said,) = [each for each in told.split("; ") if f" {what} in " in each]
        optional = permissions.POD_EVENTS.verbs if resource == permissions.POD_EVENTS.resource else ()
        assert all(verb in said for verb in rule["verbs"] if verb not in optional)
    answer = box.kubectl("exec", "-n", "tfyard", f"deployment/{NAME}", "--", "python", "-c", ASK_READYZ)
    assert all(f"missing permission: {each}\n" in answer for each in told.split("; "))


def set_rules(box: Cluster, role: Manifest) -> None:
    metadata = role["metadata"]
    place = ("-n", metadata["namespace"]) if "namespace" in metadata else ()
    patch = json.dumps({"rules": role["rules"]})
    box.kubectl("patch", role["kind"].lower(), metadata["name"], *place, "--type=merge", "-p", patch)
