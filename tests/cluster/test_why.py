"""`tfyard why` of jobs whose trouble only a kubelet makes: in its own words, not in ours."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.clusters import Cluster, Registry, until
from tests.cluster.images import BARE
from tests.cluster.jobs import Jobs
from tests.cluster.troubles import Situation, Troubles
from tfyard.model import Manifest

pytestmark = [pytest.mark.cluster, pytest.mark.long]
NOW = {"terminationGracePeriodSeconds": 1}


def shell(text: str) -> list[str]:
    return ["sh", "-c", text]


def probe(kind: str, text: str) -> Manifest:
    return {kind: {"exec": {"command": shell(text)}, "periodSeconds": 1, "failureThreshold": 1}}


def mounted(at: str, **source: Any) -> tuple[Manifest, Manifest]:
    """Container and pod with a volume `scratch`."""
    mounts = {"volumeMounts": [{"name": "scratch", "mountPath": at}]}
    return mounts, {"volumes": [{"name": "scratch", **source}]}


SCRATCH, SCRATCH_VOLUME = mounted("/scratch", emptyDir={"sizeLimit": "1Mi"})
TOKEN, TOKEN_VOLUME = mounted("/token", secret={"secretName": "token"})
FROM_SECRET = {"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "TOKEN"}}}]}
NO_KEY = {"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "empty", "key": "TOKEN"}}}]}
SETTINGS = {"envFrom": [{"configMapRef": {"name": "settings"}}]}
EMPTY = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "empty"}}


def prepare(text: str, **fields: Any) -> Manifest:
    step = {"name": "prepare", "image": "example/train:1", "command": shell(text), **fields}
    return {"initContainers": [step]}


START = "worker-0 cannot start: "
NO_COMMAND = f"{START}`pyhton` is not in the image example/train:1"
COMMAND = "TFJob: `command:` of the container tensorflow; or an image that has it"
KILLED = "the kubelet killed worker-0 because its"
LARGER = "of a larger `timeoutSeconds` or `failureThreshold`"
NO_DATA = "worker-0 ended with exit code 3: there is no data (its init container prepare)"
KUBECTL = "kubectl -n NAMESPACE"


def beside(name: str, text: str) -> Manifest:
    """A pod whose training container has another one beside it."""
    trainer = {"name": "tensorflow", "image": "example/train:1", "command": ["sleep", "600"]}
    return {"containers": [trainer, {"name": name, "image": "example/train:1", "command": shell(text)}]}


SITUATIONS = (
    Situation(name="command", kind="command", code=1, words=NO_COMMAND, fix=COMMAND,
              container={"command": ["pyhton", "train.py"]}),
    Situation(name="loops", kind="command", code=3, words=NO_COMMAND, fix=COMMAND,
              restart="OnFailure", container={"command": ["pyhton", "train.py"]}),
    Situation(name="shell", kind="command", code=1, words=NO_COMMAND, fix=COMMAND,
              container={"command": shell("pyhton train.py")}),
    Situation(name="exits", kind="command", code=1, container={"command": shell("exit 127")},
              words="worker-0 ended with exit code 127: a shell's word for a command that was not found",
              fix="look which command of the script it is, or which `exit`: the log does not name it"),
    Situation(name="allowed", kind="command", code=1, words=f"{START}`/etc/passwd` may not be executed",
              fix="make it executable in the image example/train:1: `chmod +x`; or run it by `python` or `sh`",
              container={"command": ["/etc/passwd"]}),
    Situation(name="memory", kind="out-of-memory", code=1,
              words="worker-0 used more than the memory limit of 64Mi, and the kernel killed it (OOMKilled)",
              fix="TFJob: `resources: {limits: {memory: 96Mi}}` of the container tensorflow, or smaller batches",
              container={"command": ["python", "-c", "x = bytearray(400 << 20)"],
                         "resources": {"limits": {"memory": "64Mi"}}}),
    Situation(name="liveness", kind="probe", code=1, words=f"{KILLED} liveness probe failed: no such lock",
              fix=f"TFJob: `template:` with a livenessProbe {LARGER}",
              container=probe("livenessProbe", "echo no such lock; exit 1"), pod=NOW),
    Situation(name="again", kind="probe", code=3, words=f"{KILLED} liveness probe failed: no such lock",
              fix=f"TFJob: `template:` with a livenessProbe {LARGER}",
              restart="OnFailure", container=probe("livenessProbe", "echo no such lock; exit 1"), pod=NOW),
    Situation(name="startup", kind="probe", code=1, words=f"{KILLED} startup probe failed: not yet",
              fix=f"TFJob: `template:` with a startupProbe {LARGER}",
              container=probe("startupProbe", "echo not yet; exit 1"), pod=NOW),
    Situation(name="readiness", kind="not-ready", code=3,
              fix="correct or remove the `readinessProbe` in the pod template: tfyard itself needs none",
              words="worker-0 runs, and the readiness probe fails: not yet",
              container=probe("readinessProbe", "echo not yet; exit 1"), pod=NOW),
    Situation(name="prepared", kind="program-error", code=1, words=NO_DATA,
              fix="correct the init container prepare in the pod template",
              pod=prepare("echo looking; sleep 1; echo there is no data >&2; exit 3")),  # two pipes keep no order
    Situation(name="hanging", kind="init-container", code=3,
              fix="see what it does: `tfyard logs hanging -n NAMESPACE`",
              words="worker-0 waits for the init container prepare to end; it has run for …",
              pod=prepare("echo looking; sleep 600")),
    Situation(name="feeder", kind="sidecar", code=3, fix="correct the container feeder in the pod template",
              words="the container feeder of worker-0 ended with exit code 4: no feed; the training goes on",
              pod=beside("feeder", "echo no feed >&2; exit 4")),
    Situation(name="preparing", kind="program-error", code=3, words=NO_DATA,
              fix="correct the init container prepare in the pod template",
              restart="OnFailure", pod=prepare("echo there is no data >&2; exit 3")),
    Situation(name="preparation", kind="command", code=1,
              words=f"{START}`prepare-it` is not in the image example/train:1 (its init container prepare)",
              fix="correct the `command`, or choose an `image` that has it, in the init container prepare in the"
                  " pod template", pod=prepare("", command=["prepare-it"])),
    Situation(name="secret", kind="secret-missing", code=3, container=FROM_SECRET,
              words=f"{START}there is no Secret token in namespace NAMESPACE",
              fix=f"{KUBECTL} create secret generic token --from-literal=TOKEN=VALUE"),
    Situation(name="settings", kind="configmap-missing", code=3, container=SETTINGS,
              words=f"{START}there is no ConfigMap settings in namespace NAMESPACE",
              fix=f"{KUBECTL} create configmap settings --from-literal=KEY=VALUE"),
    Situation(name="key", kind="key-missing", code=3, container=NO_KEY,
              words=f"{START}Secret empty has no key TOKEN",
              fix=f"""{KUBECTL} patch secret empty -p '{{"stringData":{{"TOKEN":"VALUE"}}}}'"""),
    Situation(name="mounted", kind="secret-missing", code=3, container=TOKEN, pod=TOKEN_VOLUME,
              words=f"{START}there is no Secret token in namespace NAMESPACE",
              fix=f"{KUBECTL} create secret generic token --from-literal=KEY=VALUE"),
    Situation(name="root", kind="runs-as-root", code=3,
              words=f"{START}the image runs as root, and runAsNonRoot forbids that",
              fix="TFJob: `template: {spec: {securityContext: {runAsUser: 1000}}}`",
              pod={"securityContext": {"runAsNonRoot": True}}),
    Situation(name="full", kind="evicted", code=1,
              fix="a larger `sizeLimit` in the `emptyDir:` of the volume scratch, or a claim",
              words="the node evicted worker-0, which wrote more than 1Mi into its volume scratch",
              container={**SCRATCH, "command": shell("head -c 9000000 /dev/zero > /scratch/x; sleep 600")},
              pod=SCRATCH_VOLUME),
)  # fmt: skip


@pytest.fixture(scope="module")
def troubles(_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troubles]:
    with Troubles.own(_cluster, tmp_path_factory.mktemp("why")) as troubles:
        troubles.create(EMPTY, *(each.manifest() for each in SITUATIONS))
        yield troubles


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: str(each.name))
def test_what_a_kubelet_says_is_explained(troubles: Troubles, situation: Situation) -> None:
    troubles.until_told(situation)


def test_logs_and_describe_name_the_container_that_failed_and_show_what_it_printed(
    troubles: Troubles,
) -> None:
    told = {each.name: each for each in SITUATIONS if each.name in ("prepared", "hanging", "feeder")}
    for each in told.values():
        troubles.until_told(each)
    logs = {name: troubles.tfyard("logs", name) for name in told}
    assert logs["prepared"].out.splitlines() == ["looking", "there is no data"]
    assert "has not started: its init container prepare failed (exit code 3)" in logs["prepared"].err
    assert logs["hanging"].out == "looking\n"
    assert "has not started: its init container prepare runs" in logs["hanging"].err
    assert "its container feeder failed: exit code 4\n    no feed" in logs["feeder"].err
    followed = troubles.tfyard("logs", "-f", "prepared")
    assert (followed.code, followed.out.splitlines()) == (3, ["looking", "there is no data"])
    assert "its init container prepare failed" in followed.err
    rows = {name: attempt_rows(troubles.tfyard("describe", name).out) for name in told}
    assert "Error in init container prepare" in rows["prepared"]
    assert rows["hanging"].split()[:3] == ["worker-0", "1", "Preparing"]
    (feeder,) = (
        line.split() for line in troubles.tfyard("describe", "feeder").out.splitlines() if "no feed" in line
    )
    assert feeder == ["worker-0", "feeder", "0", "4", "Error", "no", "feed"]


def attempt_rows(text: str) -> str:
    return text.partition("Attempts:\n")[2].partition("\n\n")[0].partition("\n")[2]


PACKAGED = """
name: packaged
image: example/train:1
code: .
requirements: packages.txt
run: python -c 'print("trained")'
"""


def test_packages_that_cannot_be_installed_are_told_and_the_job_runs_when_their_file_is_corrected(
    jobs: Jobs,
) -> None:
    (jobs.folder / "packages.txt").write_text("./no-such-package.whl\n")
    jobs.submit(PACKAGED)
    jobs.until_phase("packaged", "Failed")
    told = jobs.tfyard("why", "packaged").out.splitlines()
    assert "no-such-package.whl" in told[0]
    assert told[0].endswith("(its init container tfyard-packages, which installs the packages)")
    assert told[1] == "fix: correct the file that `requirements:` names"
    assert "no-such-package.whl" in jobs.tfyard("logs", "packaged").out
    (jobs.folder / "packages.txt").write_text("")
    jobs.tfyard("delete", "packaged", "-y")
    jobs.submit(PACKAGED)
    jobs.until_phase("packaged", "Succeeded")


def test_an_image_that_cannot_install_packages_is_told_and_not_their_file(
    jobs: Jobs, registry: Registry
) -> None:
    (jobs.folder / "packages.txt").write_text("")
    jobs.submit(PACKAGED.replace("example/train:1", BARE))
    jobs.until_phase("packaged", "Failed")
    told = jobs.tfyard("why", "packaged").out.splitlines()
    assert "the image has no pip: the packages of /code/packages.txt cannot be installed" in told[0]
    assert told[1].startswith("fix: job file: an `image:` that has pip; or build the packages into the image")


CUT = """
name: cut
image: example/train:1
run: |
  echo begun
  case "$TF_CONFIG" in *'"index":0'*|*'"index": 0'*) sleep 2;; *) sleep 8;; esac
worker: 3
"""


def test_workers_that_the_first_one_cuts_off_are_told_as_stopped_and_end_when_the_job_waits_for_all(
    jobs: Jobs,
) -> None:
    jobs.submit(CUT)
    jobs.until_phase("cut", "Succeeded")
    until(lambda: len(jobs.get("pods")["items"]) == 1)
    workers = jobs.get("tfjob", "cut")["status"]["replicaStatuses"]["Worker"]
    assert (workers["ready"], workers["succeeded"]) == ("1/3, 2 stopped", 3), "upstream counts all of them"
    assert "1/3, 2 stopped" in jobs.tfyard("get", "cut").out
    assert "1/3, 2 stopped" in jobs.kubectl("get", "tfjobs")
    told = jobs.tfyard("why", "cut")
    cut_off = "worker-1 and worker-2 still ran, and were stopped, when worker-0 ended"
    assert (told.code, told.out.splitlines()[0]) == (
        0,
        f"cut has succeeded, though not all of its tasks: {cut_off}",
    )
    assert "fix: job file: `success: all-workers`" in told.out
    described = jobs.tfyard("describe", "cut").out
    assert f"Stopped:    {cut_off}; job file: `success: all-workers`" in described
    rows = [row.split()[:3] for row in attempt_rows(described).splitlines()]
    states = [["worker-0", "1", "Succeeded"], ["worker-1", "1", "Stopped"], ["worker-2", "1", "Stopped"]]
    assert rows == states
    top = [line.split()[:2] for line in jobs.tfyard("top", "cut").out.splitlines()[1:]]
    assert top == [[task, state] for task, _, state in states]
    logs = jobs.tfyard("logs", "cut")
    assert [line.split()[0] for line in logs.out.splitlines()] == ["worker-0"]
    assert logs.err.count("was stopped when the job ended; its log is gone with its pod") == 2
    jobs.tfyard("delete", "cut", "-y")
    jobs.submit(CUT + "success: all-workers\n")
    jobs.until_phase("cut", "Succeeded")
    assert jobs.get("tfjob", "cut")["status"]["replicaStatuses"]["Worker"]["ready"] == "3/3"
    assert jobs.tfyard("logs", "cut").out.count("begun") == 3
    assert jobs.tfyard("why", "cut").out == "cut has succeeded; there is nothing to explain\n"


JOB = """
name: evicted
image: example/train:1
run: trap 'exit 0' TERM; while :; do sleep 0.1; done
worker: 2
"""


def test_a_task_that_is_evicted_by_the_api_is_replaced_and_told(jobs: Jobs) -> None:
    jobs.submit(JOB)
    jobs.until_phase("evicted", "Running")
    pod = jobs.get("pod", "evicted-worker-1")["metadata"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["name"]}}
    path = f"/api/v1/namespaces/{jobs.namespace}/pods/{pod['name']}/eviction"
    jobs.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))

    def successor() -> bool:
        pods = [each for each in jobs.get("pods")["items"] if each["metadata"]["name"] == pod["name"]]
        return any(
            each["metadata"]["uid"] != pod["uid"] and each["status"]["phase"] == "Running" for each in pods
        )

    until(successor)
    until(lambda: jobs.tfyard("why", "evicted").code == 0)
    told = jobs.tfyard("why", "evicted").out
    assert "worker-1: evicted through the Eviction API, as `kubectl drain` does" in told
    status = jobs.get("tfjob", "evicted")["status"]
    assert "retries" not in yaml.safe_dump(status.get("tasks") or {}), "it cost none"
