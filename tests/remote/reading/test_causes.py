"""`tfyard why` on a real control plane: each cause is made as it happens, and the answer is read."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.background import Background, in_background
from tests.cli.running import Result, tfyard
from tests.cli.test_describe import allow
from tests.controller.cluster import Bench, bench
from tests.remote import admission, situations
from tests.remote.asking import ask, told
from tests.remote.situations import MINUTE, Situation, job
from tests.wording import is_said
from tfyard.kube import Client, Request, Unprocessable, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model.names import JOB_NAME
from tfyard.overview.why import explain
from tfyard.planner import waiting
from tfyard.remote.reading import evidence
from tfyard.testing import ControlPlane, ProcessFailed, builders
from tfyard.testing.script import Pod, Script

pytestmark = pytest.mark.cluster

SITUATIONS = {each.name: each for each in (*situations.REFUSED, *situations.KUBELETS, *admission.SITUATIONS)}
PLACES = ("open", "strict", "going")
READER = "reader"
"""A user who may read TFJobs, and nothing else."""
READERS = {READER: ("tfjobs",), "pod-reader": ("tfjobs", "pods"), "event-reader": ("tfjobs", "events")}
"""User -> what they may list."""


def script(pod: Pod) -> Script:
    found = SITUATIONS[pod.metadata.name.rpartition("-worker-")[0]].script
    return found(pod) if callable(found) else found


class Stage:
    """A cluster on which all of them have happened."""

    def __init__(self, plane: ControlPlane, yards: dict[str, Bench]) -> None:
        self.plane, self._yards = plane, yards

    def namespace(self, place: str = "open") -> str:
        return self._yards[place].namespace

    async def make_all(self) -> None:
        for each in SITUATIONS.values():
            yard = self._yards[each.place]
            if each.before:
                await each.before(yard)
            await yard.submit(job(each.name, **each.job))
        await asyncio.gather(*(s.after(self._yards[s.place]) for s in SITUATIONS.values() if s.after))


@asynccontextmanager
async def stage(plane: ControlPlane, folder: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(plane.client())
        places = {place: await builders.create_namespace(client) for place in PLACES}
        await admission.make_strict(client, places["strict"])
        await stack.enter_async_context(admission.guards(client, places["open"], folder))
        await stack.enter_async_context(admission.workloads(client))
        yards = {
            place: await stack.enter_async_context(bench(plane, name, script))
            for place, name in places.items()
        }
        made = Stage(plane, yards)
        await made.make_all()
        yield made


@pytest.fixture(scope="module")
def scene(
    _control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Background[Stage]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "PATIENCE", 2.0)
        with in_background(stage(_control_plane, tmp_path_factory.mktemp("stage"))) as found:
            for user, resources in READERS.items():
                rules = [
                    {"apiGroups": ["kubeflow.org", ""], "resources": resources, "verbs": ["get", "list"]}
                ]
                allow(_control_plane, found.value.namespace(), user, rules)
            yield found


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=lambda each: each.name)
def test_a_cause_is_told_with_its_fix_and_what_proves_it(
    situation: Situation, scene: Background[Stage]
) -> None:
    stage = scene.value
    where = stage.namespace(situation.place)
    found = scene.do(told(stage.plane.admin, where, situation.name, situation.kind, situation.later))
    assert is_said(situation.words, found.causes[0].sentence), found.causes[0].sentence
    assert is_said(situation.fix, found.causes[0].fix), found.causes[0].fix
    assert found.causes[0].evidence
    assert found.code == situation.code
    assert not situation.also or situation.also in {cause.kind for cause in found.causes[1:]}


HALF_SEEN = ("pull", "secret", "mount", "loop", "quota", "memory", "replaced", "lost", "queued")


@pytest.mark.parametrize("user", READERS)
def test_a_user_who_may_read_half_of_it_gets_the_same_answer_and_is_told_what_was_not_read(
    user: str, scene: Background[Stage]
) -> None:
    stage = scene.value
    for expected in (SITUATIONS[name] for name in HALF_SEEN):
        found = scene.do(told(stage.plane.access(user), stage.namespace(), expected.name, expected.kind))
        assert found.code == expected.code, found
        hidden = {"pods", "events"} - {*READERS[user]} - ({"events"} if found.code == 1 else set())
        assert {text for text in found.unreadable if text.startswith(("pods", "events"))} == {
            f"{name}: you may not list {name}" for name in hidden
        }
        written = ("condition", "container", *(["apiserver"] if expected.kind in ("quota", "queue") else []))
        assert user != READER or found.causes[0].evidence[0].source in written, (
            "as the operator wrote it down"
        )


def test_the_reason_of_a_disruption_is_shown_when_the_pod_is_gone(scene: Background[Stage]) -> None:
    stage = scene.value
    scene.do(told(stage.plane.admin, stage.namespace(), "replaced", "drained"))
    words = ("describe", "replaced", "-n", stage.namespace())
    lines = tfyard(*words, KUBECONFIG=str(stage.plane.kubeconfig)).out.splitlines()
    (first,) = (line.split() for line in lines if line.startswith("  worker-0   1 "))
    assert "EvictionByEvictionAPI" in first
    assert "    Eviction API: evicting" in lines


def test_a_job_that_has_succeeded_names_the_task_that_has_failed(scene: Background[Stage]) -> None:
    stage = scene.value
    scene.do(told(stage.plane.admin, stage.namespace(), "partly", "program-error"))
    done = why(stage, "partly")
    failed = "worker-1 failed with KeyError: 'size' (/code/train.py:12)"
    assert done.out.startswith(f"partly has succeeded, though not all of its tasks: {failed}\n")
    words = ("describe", "partly", "-n", stage.namespace())
    described = tfyard(*words, KUBECONFIG=str(stage.plane.kubeconfig)).out
    assert "; worker-1 failed (tfyard why partly)\n" in described


# --- the command


def why(stage: Stage, *args: str) -> Result:
    return tfyard("why", "-n", stage.namespace(), *args, KUBECONFIG=str(stage.plane.kubeconfig))


def test_the_answer_as_json(scene: Background[Stage]) -> None:
    done = why(scene.value, "fails", "-o", "json")
    answer = json.loads(done.out)
    assert (done.code, answer["state"], answer["causes"][0]["tasks"]) == (1, "failed", ["worker-0"])


@pytest.mark.parametrize(("name", "code"), [("replaced", 0), ("fails", 1), ("pull", 3)])
def test_the_exit_code_is_right_also_for_a_user_who_may_read_only_the_job(
    name: str, code: int, scene: Background[Stage]
) -> None:
    scene.do(told(scene.value.plane.access(READER), scene.value.namespace(), name, SITUATIONS[name].kind))
    done = why(scene.value, name, "--as", READER)
    assert (done.code, done.err) == (code, "")


def test_without_the_right_to_read_jobs_it_is_one_line(scene: Background[Stage]) -> None:
    done = why(scene.value, "pull", "--as", "somebody", "--as-group", "readers")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "cannot get resource" in done.err


@pytest.mark.parametrize("command", ["get", "describe", "events", "logs", "top", "metrics"])
def test_a_cluster_that_permits_half_of_it_gets_the_other_half_or_one_line(
    command: str, scene: Background[Stage]
) -> None:
    stage = scene.value
    words = (command, "memory", "-n", stage.namespace(), "--as", READER)
    done = tfyard(*words, KUBECONFIG=str(stage.plane.kubeconfig))
    assert (done.code, done.err.count("\n")) in ((0, 0), (0, 1), (1, 1)), done.err
    told = f'is forbidden: User "{READER}" cannot ' if command == "events" else f"{READER} may not "
    assert done.code == 0 or told in done.err


def test_a_job_that_does_not_exist_is_one_line(scene: Background[Stage]) -> None:
    done = why(scene.value, "nothing")
    assert done.code == 2
    assert "TFJob 'nothing' not found in the namespace" in done.err


LONG = "a" * 60
NAMELESS = {
    **job("nameless"),
    "spec": {
        "tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}}
    },
}
REFUSED_AT_ONCE = (
    (job(LONG), "metadata.name is too long", "fix: use at most 54 characters"),
    (NAMELESS, "must have at least one container with name tensorflow", "tensorflow: it gets TF_CONFIG"),
)


@pytest.mark.parametrize(("refused", "words", "fix"), REFUSED_AT_ONCE, ids=["long", "nameless"])
def test_what_the_crd_refuses_is_told_when_it_is_applied_and_submitted(
    refused: dict[str, object], words: str, fix: str, scene: Background[Stage], tmp_path: Path
) -> None:
    plane, namespace = scene.value.plane, scene.value.namespace()
    file = tmp_path / "job.json"
    file.write_text(json.dumps(refused))
    with pytest.raises(ProcessFailed, match=words):
        plane.kubectl("apply", "-n", namespace, "-f", str(file))
    done = tfyard("submit", str(file), "-n", namespace, KUBECONFIG=str(plane.kubeconfig))
    assert (done.code, done.out) == (1, "")
    assert fix in done.err


SLOW = ("aiohttp", "asyncio", "rich", "jinja2")


def test_why_imports_little(scene: Background[Stage]) -> None:
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from tfyard.cli.main import main; main()"
    )
    command = [sys.executable, "-c", program, "why", "-n", scene.value.namespace(), "pull"]
    env = {**os.environ, "KUBECONFIG": str(scene.value.plane.kubeconfig)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert not set(SLOW) & set(done.stderr.split())


class Counted(SyncClient):
    """Counts what it asks."""

    requests = 0

    def read(self, request: Request) -> bytes:
        self.requests += 1
        return super().read(request)


def test_why_asks_little(scene: Background[Stage]) -> None:
    with Counted(scene.value.plane.admin) as client:
        job = client.send(requests.get(TFJOBS.path(scene.value.namespace(), "pull")))
        evidence.gather(client, job)
        assert client.requests == len(("job", "pods", "events"))


# --- no operator works on it


def lease(holder: str, renewed: datetime) -> dict[str, object]:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    return {"metadata": {"name": "tfyard-operator"}, "spec": spec}


async def test_a_job_on_which_no_operator_works(control_plane: ControlPlane, namespace: str) -> None:
    async with control_plane.client() as client:
        await builders.install_crds(client)
        await client.send(requests.create(TFJOBS.path(namespace), job("alone")))
    with SyncClient(control_plane.admin) as client:
        manifest = client.send(requests.get(TFJOBS.path(namespace, "alone")))
        found = evidence.gather(client, manifest)
    created = datetime.fromisoformat(manifest["metadata"]["creationTimestamp"])
    nobody = explain(found, created + timedelta(minutes=1))
    assert (nobody.code, nobody.causes[0].kind, nobody.causes[0].fix) == (3, "no-operator", "tfyard install")
    assert explain(found, created + timedelta(seconds=1)).causes == ()


def warns(namespace: str, message: str) -> dict[str, object]:
    """An event of the job `theirs`, as Kubeflow's operator writes it."""
    about = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "theirs", "namespace": namespace}
    said = {"type": "Warning", "reason": "FailedCreatePod", "message": message, "lastTimestamp": now()}
    return {"metadata": {"name": "theirs.1", "namespace": namespace}, "involvedObject": about, **said}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def fail(client: Client, namespace: str, name: str, message: str) -> None:
    times = {"lastUpdateTime": now(), "lastTransitionTime": now()}
    failed = {"type": "Failed", "status": "True", "reason": "TFJobFailed", "message": message, **times}
    status = {"status": {"conditions": [failed]}}
    await client.send(requests.patch(TFJOBS.path(namespace, name, "status"), status))


async def test_a_failure_of_which_nothing_is_left_is_unknown(
    control_plane: ControlPlane, crds: None, namespace: str
) -> None:
    async with control_plane.client() as client:
        await client.send(requests.create(TFJOBS.path(namespace), job("bare")))
        await fail(client, namespace, "bare", "")
    words = ("why", "-n", namespace, "bare")
    done = await asyncio.to_thread(tfyard, *words, KUBECONFIG=str(control_plane.kubeconfig))
    assert (done.code, done.err) == (4, "")
    assert done.out == "bare has failed, and nothing tells why\nlooked at: the TFJob and its status, pods\n"


async def test_what_another_operator_says(control_plane: ControlPlane, crds: None, namespace: str) -> None:
    """Kubeflow's keeps neither endings nor a condition of its own for what the server refuses."""
    async with control_plane.client() as client:
        await client.send(requests.create(TFJOBS.path(namespace), job("theirs")))
        pod = builders.pod("theirs-worker-0", {JOB_NAME: "a" * 70})
        with pytest.raises(Unprocessable) as refusal:
            await client.send(requests.create(requests.PODS.path(namespace), pod))
        event = warns(namespace, f"Error creating: {refusal.value.status.message}")
        await client.send(requests.create(requests.EVENTS.path(namespace), event))
        refused = await asyncio.to_thread(ask, control_plane.admin, namespace, "theirs")
        await fail(client, namespace, "theirs", "TFJob theirs has failed because 1 Worker replica(s) failed.")
        failed = await asyncio.to_thread(ask, control_plane.admin, namespace, "theirs")
    assert (refused.code, refused.causes[0].kind) == (3, "name")
    assert "the name theirs cannot be used for pods and Services" in refused.sentence
    assert (failed.code, failed.causes[0].kind) == (1, "failed")
    assert failed.sentence == "TFJob theirs has failed because 1 Worker replica(s) failed."


async def test_an_operator_that_does_not_watch_the_namespace_or_that_ended(
    control_plane: ControlPlane, crds: None, namespace: str
) -> None:
    soon = datetime.now(UTC) + MINUTE
    async with control_plane.client() as client:
        await client.send(requests.create(TFJOBS.path(namespace), job("alone")))
        path = requests.LEASES.path(namespace)
        await client.send(requests.create(path, lease("operator-1", soon)))
        watched = await asyncio.to_thread(ask, control_plane.admin, namespace, "alone", MINUTE)
        gone = await asyncio.to_thread(ask, control_plane.admin, namespace, "alone", 60 * MINUTE)
        await client.send(requests.delete(f"{path}/tfyard-operator"))
    assert "the operator runs; does it watch this namespace?" in watched.sentence
    assert "the tfyard operator is installed, but does not run" in gone.sentence
