"""Fixes of `tfyard why`, typed as they are printed, until the job runs or is gone."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.background import Background, in_background
from tests.cli.running import tfyard
from tests.controller.cluster import Bench, bench
from tests.remote.asking import ask, told
from tests.remote.situations import fails, job
from tests.wording import is_said
from tfyard.install.manifests import objects
from tfyard.install.settings import Settings
from tfyard.kube import Resource, requests
from tfyard.kube.requests import DEPLOYMENTS, TFJOBS
from tfyard.overview.why import Answer
from tfyard.testing import ControlPlane, builders, eventually
from tfyard.testing.script import Pod, Script, Sidecar

pytestmark = pytest.mark.cluster

HOLDER = "example.com/accounting"
RAISES = """Traceback (most recent call last):
  File "<frozen os>", line 685, in __getitem__
KeyError: 'BUCKET'"""


UNREADY = "no operator works on it: the tfyard operator is installed, and"
WITHOUT = """--type=merge -p '{"metadata":{"finalizers":null}}'"""
OWN = "if that controller no longer runs: kubectl -n NAMESPACE patch"


class Told(Struct, frozen=True, kw_only=True):
    """A row of the corpus."""

    when: str
    kind: str
    words: str
    fix: str = ""
    code: int = 3

    def assert_is(self, found: Answer) -> None:
        first = found.causes[0]
        assert (found.code, first.kind) == (self.code, self.kind)
        assert is_said(self.words, found.sentence), found.sentence
        assert is_said(self.fix, first.fix), first.fix


TOLD = {
    "kept": Told(
        when="a job that is deleted, and that a finalizer holds",
        kind="deletion",
        words=f"kept is deleted, and the finalizer {HOLDER} holds it until its controller is done",
        fix=f"{OWN} tfjob kept {WITHOUT}",
    ),
    "held": Told(
        when="a pod that is deleted, and that a finalizer holds",
        kind="deletion",
        words=f"the pod of worker-0 is deleted, and its finalizer {HOLDER} holds its name: no other can start",
        fix=f"{OWN} pod held-worker-0 {WITHOUT}",
    ),
    "unready": Told(
        when="an operator that is installed, and whose pod is not ready",
        kind="no-operator",
        words=f"{UNREADY} none of its 1 pods is ready",
        fix="kubectl -n NAMESPACE describe pods -l app.kubernetes.io/…",
    ),
    "scaled": Told(
        when="an operator that is installed, and scaled to zero",
        kind="no-operator",
        words=f"{UNREADY} it is scaled to zero",
        fix="kubectl -n NAMESPACE scale deployment tf-job-operator --replicas=1",
    ),
}


def script(pod: Pod) -> Script:
    name = pod.metadata.name.rpartition("-worker-")[0]
    if name == "beside":
        return Script(run_for=0.1, sidecars={"proxy": Sidecar(run_on=0.2, exit_code=3)})
    if name.startswith("by-"):
        return fails(RAISES)
    return Script()


@asynccontextmanager
async def yard(plane: ControlPlane) -> AsyncIterator[Bench]:
    async with plane.client() as client:
        namespace = await builders.create_namespace(client)
    async with bench(plane, namespace, script) as made:
        yield made


@pytest.fixture(scope="module")
def scene(_control_plane: ControlPlane) -> Iterator[Background[Bench]]:
    with in_background(yard(_control_plane)) as found:
        yield found


def typed(plane: ControlPlane, fix: str) -> str:
    """Runs the command of kubectl that a fix is, or ends with."""
    command = fix[fix.index("kubectl ") :]
    return plane.kubectl(*shlex.split(command)[1:])


async def hold_and_delete(yard: Bench, resource: Resource, name: str) -> Any:
    """As a controller of somebody else does that marks objects, and is gone before they are deleted."""
    path = resource.path(yard.namespace, name)
    made = await yard.client.send(requests.patch(path, {"metadata": {"finalizers": [HOLDER]}}))
    await yard.client.send(requests.delete(path, grace=0 if resource is requests.PODS else None))
    return made


def test_a_deleted_job_that_a_finalizer_holds_is_not_one_that_runs(
    scene: Background[Bench], control_plane: ControlPlane
) -> None:
    where = scene.value.namespace

    async def make() -> None:
        await scene.value.submit(job("kept"))
        await scene.value.phase("Running", "kept")
        await hold_and_delete(scene.value, TFJOBS, "kept")

    scene.do(make())
    found = scene.do(told(control_plane.admin, where, "kept", "deletion"))
    TOLD["kept"].assert_is(found)
    typed(control_plane, found.causes[0].fix)

    async def is_gone() -> None:
        assert "kept" not in await scene.value.jobs()

    scene.do(eventually(is_gone))


def test_a_deleted_pod_that_a_finalizer_holds_is_not_replaced_before_it_is_gone(
    scene: Background[Bench], control_plane: ControlPlane
) -> None:
    where, name = scene.value.namespace, "held-worker-0"

    async def make() -> Any:
        await scene.value.submit(job("held"))
        await scene.value.phase("Running", "held")
        return await hold_and_delete(scene.value, requests.PODS, name)

    first = scene.do(make())
    found = scene.do(told(control_plane.admin, where, "held", "deletion", timedelta(seconds=2)))
    TOLD["held"].assert_is(found)
    typed(control_plane, found.causes[0].fix)

    async def is_replaced() -> None:
        now: Any = await scene.value.client.send(requests.get(requests.PODS.path(where, name)))
        assert now["metadata"]["uid"] != first["metadata"]["uid"]
        assert now["status"]["phase"] == "Running"

    scene.do(eventually(is_replaced))
    found = ask(control_plane.admin, where, "held")
    assert (found.code, found.sentence.endswith("nothing blocks it")) == (0, True), found


def test_a_sidecar_that_breaks_after_the_success_of_its_task_fails_nothing(
    scene: Background[Bench], control_plane: ControlPlane
) -> None:
    where, proxy = scene.value.namespace, {"name": "proxy", "image": "example/proxy:1"}
    containers = [{"name": "tensorflow", "image": "example/train:1"}, proxy]

    async def make() -> None:
        manifest = job("beside", policy={"cleanPodPolicy": "None"})
        manifest["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = containers
        await scene.value.submit(manifest)
        await scene.value.phase("Succeeded", "beside")

    async def is_broken() -> None:
        path = requests.PODS.path(where, "beside-worker-0")
        assert (await scene.value.client.send(requests.get(path)))["status"]["phase"] == "Failed"

    scene.do(make())
    scene.do(eventually(is_broken))
    found = ask(control_plane.admin, where, "beside")
    assert (found.code, found.state) == (0, "fine")
    assert found.sentence.startswith("beside has succeeded")
    assert "worker-0 failed" not in found.sentence


def test_who_submitted_a_script_gets_an_option_a_job_file_a_word_and_a_tfjob_a_field(
    scene: Background[Bench], control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = scene.value.namespace
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import os; os.environ['BUCKET']\n")
    Path("job.yaml").write_text("name: train\nimage: example/train:1\nrun: python train.py\nworker: 1\n")
    Path("tfjob.yaml").write_text(tfyard("render", "job.yaml").out)
    fixes = {
        "train.py": "`--env BUCKET=…`",
        "job.yaml": "job file: `env: {BUCKET: …}`",
        "tfjob.yaml": 'TFJob: `env: [{name: BUCKET, value: "…"}]` of the container tensorflow',
    }
    for file, fix in fixes.items():
        name = f"by-{file.replace('.', '-')}"
        words = ("submit", file, "--name", name, "-n", where, "--force")
        done = tfyard(*words, KUBECONFIG=str(control_plane.kubeconfig))
        assert done.code == 0, done.err
        found = scene.do(told(control_plane.admin, where, name, "missing-variable"))
        assert found.causes[0].fix == fix


async def test_an_operator_that_is_installed_and_not_ready_is_not_missing(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Nothing starts its pods here; tests/cluster/test_fixes.py follows the fix."""
    settings = Settings(namespace=namespace, image="example/operator:1")
    (deployment,) = (each for each in objects(settings) if each["kind"] == "Deployment")
    later = timedelta(minutes=1)
    async with control_plane.client() as client:
        await builders.install_crds(client)
        await client.send(requests.create(TFJOBS.path(namespace), job("alone")))
        await client.send(requests.create(DEPLOYMENTS.path(namespace), deployment))
        unready = await asyncio.to_thread(ask, control_plane.admin, namespace, "alone", later)
        path = DEPLOYMENTS.path(namespace, deployment["metadata"]["name"])
        await client.send(requests.patch(path, {"spec": {"replicas": 0}}))
        scaled = await asyncio.to_thread(ask, control_plane.admin, namespace, "alone", later)
        await client.send(requests.delete(path))
        await client.send(requests.delete(TFJOBS.path(namespace, "alone")))
    TOLD["unready"].assert_is(unready)
    TOLD["scaled"].assert_is(scaled)
