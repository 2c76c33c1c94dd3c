"""`tfyard why` of jobs whose trouble only a kubelet makes: in its own words, not in ours."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.clusters import Cluster, until
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
KUBECTL = "kubectl -n NAMESPACE"
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
    Situation(name="readiness", kind="", code=0, words="nothing blocks it",
              container=probe("readinessProbe", "exit 1"), pod=NOW),
    Situation(name="prepared", kind="program-error", code=1, words="(its init container prepare)",
              pod=prepare("echo there is no data >&2; exit 3")),
    Situation(name="preparing", kind="program-error", code=3, words="exit code 3: there is no data",
              restart="OnFailure", pod=prepare("echo there is no data >&2; exit 3")),
    Situation(name="preparation", kind="command", code=1, words="`prepare-it` is not in the image",
              pod=prepare("", command=["prepare-it"])),
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
