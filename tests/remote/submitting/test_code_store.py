"""Code on its way to a cluster and back: a real API server, a node of real processes, real helper pods."""

import asyncio
import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cli.running import tfyard
from tests.remote.code_node import CodeNode, code_node, job_of
from tests.remote.copy_node import Helpers
from tests.render.test_packages import wheel
from tfyard import formats, kube
from tfyard.errors import Usage
from tfyard.file_trees import Silent
from tfyard.job_input.code_folder import FileChanged
from tfyard.kube import Access, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model import Job, Manifest
from tfyard.model.names import CODE
from tfyard.model.sweep import Choice, Objective, SweepSpec
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting import code_claim, code_lookup, code_store
from tfyard.remote.submitting.code_store import Plan
from tfyard.remote.sweeps import store
from tfyard.render import RenderOptions
from tfyard.render.code import ON_CLAIM
from tfyard.render.tfjob import tfjob
from tfyard.sweeps.decide import begun
from tfyard.testing import ControlPlane, Relay

pytestmark = [pytest.mark.cluster, pytest.mark.processes]

JOB = "name: train\nimage: none\nrun: [sh, -c, 'cat lib/a.txt; ls']\ncode: {code}\n"
LARGE = random.Random(1).randbytes(1_200_000)


def folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def planned(access: Access, job: Job, base: Path) -> Plan:
    with SyncClient(access) as client:
        return code_store.plan(client, job, base)


async def submitted(node: CodeNode, plan: Plan, access: Access | None = None) -> list[str]:
    """What `tfyard submit` does with it; what was said."""
    said: list[str] = []
    await node.create_objects(plan.objects)
    await code_store.upload(access or node.access, plan, said.append)
    return said


async def created(node: CodeNode, job: Job) -> StoredTFJob:
    """The TFJob, which no operator runs here."""
    manifest = tfjob(job, RenderOptions())[-1].manifest
    return StoredTFJob(TFJOBS, await node.client.send(requests.create(TFJOBS.path(node.namespace), manifest)))


def claim(name: str) -> Manifest:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.usefixtures("crds")
async def test_small_code_is_a_config_map_that_never_changes_and_goes_when_no_job_needs_it(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = folder(
        tmp_path / "code",
        {"lib/a.txt": b"first\n", "train.py": b"1\n", "x.pyc": b"", ".gitignore": b"*.pyc\n"},
    )
    job = job_of(JOB.format(code="code"), namespace)
    async with code_node(control_plane, namespace, tmp_path) as node:
        first = planned(node.access, job, tmp_path)
        assert (first.kind, first.files, first.is_present) == ("config-map", 3, False)
        assert code_store.summary_lines(first) == [
            "code: 3 files, 14 B (.gitignore 6 B, lib/a.txt 6 B, train.py 2 B)",
            f"code: {first.hash[:12]} goes into the ConfigMap tfyard-code-{first.hash[:12]}",
        ]
        await submitted(node, first)
        (code / "lib/a.txt").write_text("second\n")
        other = planned(node.access, job, tmp_path)
        await submitted(node, other)
        assert await node.run_task(first.job, "first") == "first\nlib\ntrain.py\n"
        assert await node.run_task(other.job, "second") == "second\nlib\ntrain.py\n"

        again = planned(node.access, job, tmp_path)
        assert (again.is_present, again.objects, again.hash) == (True, (), other.hash)
        path = requests.CONFIG_MAPS.path(namespace, other.holder)
        with pytest.raises(kube.Unprocessable, match="immutable"):
            await node.client.send(requests.patch(path, {"data": {"train.py": "2"}}))

        found = await created(node, first.job)
        assert found.manifest["metadata"]["annotations"][CODE] == first.hash
        await check_fetched(node, found, tmp_path / "back", {"lib/a.txt": b"first\n", "train.py": b"1\n"})
        with SyncClient(node.access) as client:
            assert code_store.prune(client, namespace) == []  # not within a day
            monkeypatch.setattr(code_claim, "KEPT", timedelta(0))
            assert code_store.prune(client, namespace, keep=[other.hash]) == []
            client.send(requests.patch(found.path, {"metadata": {"annotations": {CODE: None}}}))
            sweep = client.send(requests.create(requests.CONFIG_MAPS.path(namespace), sweep_of(other.job)))
            assert code_store.prune(client, namespace) == [], "its trials are still to come"
            path = requests.CONFIG_MAPS.path(namespace, sweep["metadata"]["name"])
            client.send(requests.delete(path))
            assert code_store.prune(client, namespace) == [other.holder]


def sweep_of(job: Job) -> Manifest:
    """Its ConfigMap, as `tfyard submit` writes it."""
    over, objective = {"lr": Choice((1, 2))}, Objective("auc", is_max=True)
    spec = SweepSpec(name="sweep", over=over, objective=objective, trials=2, sampler="grid")
    text = formats.to_yaml(tfjob(job, RenderOptions())[-1].manifest)
    return store.manifest(begun(spec, datetime.now(UTC)), job.namespace, text, {})


async def check_fetched(node: CodeNode, found: StoredTFJob, to: Path, files: dict[str, bytes]) -> None:
    env = {"KUBECONFIG": str(node.plane.write_kubeconfig(node.access, node.namespace))}
    await code_store.fetch(node.access, found, to, Silent())
    assert {name: (to / name).read_bytes() for name in files} == files
    (to / "train.py").write_text("mine")
    with pytest.raises(Usage, match=r"train\.py: there already, with other content"):
        await code_store.fetch(node.access, found, to, Silent())
    where = code_lookup.location(found)
    lines = (await asyncio.to_thread(tfyard, "describe", "train", "--code", **env)).out.splitlines()
    assert lines[:3] == [
        f"Code:   in the ConfigMap tfyard-code-{where.hash[:12]}",
        "At:     /code in each task",
        f"Hash:   {where.hash}",
    ]
    assert lines[-1].split() == ["2", "B", "train.py"]


@pytest.mark.usefixtures("crds")
async def test_large_code_goes_to_a_claim_once_and_comes_back(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"lib/a.txt": b"first\n", "weights": LARGE, "a b/ü.sh": b"#!/bin/sh\n", "old.part": b""}
    code = folder(tmp_path / "code", files)
    (code / "a b/ü.sh").chmod(0o755)
    job = job_of(JOB.format(code="code"), namespace)
    async with code_node(control_plane, namespace, tmp_path) as node:
        plan = planned(node.access, job, tmp_path)
        assert (plan.kind, plan.holder, plan.is_present) == ("claim", "tfyard-code", False)
        assert "so all tasks run on one node" in plan.notes[-1]
        assert await submitted(node, plan) == []
        stored = tmp_path / "claims" / "tfyard-code" / ON_CLAIM
        assert (stored / plan.hash / "weights").read_bytes() == LARGE
        assert (stored / plan.hash / "a b/ü.sh").stat().st_mode & 0o777 == 0o755
        assert await node.run_task(plan.job, "first") == "first\na b\nlib\nold.part\nweights\n"

        again = planned(node.access, job, tmp_path)
        assert (again.is_present, again.objects) == (True, ())
        async with Counted(control_plane.server) as relay:
            await submitted(node, again, relay.access(node.access))
            assert relay.sent < 10_000
        (code / "lib/a.txt").write_text("second\n")
        found = await created(node, plan.job)
        monkeypatch.setattr(code_claim, "KEPT", timedelta(0))
        for text in ("second\n", "third\n"):  # no job uses the second when the third comes
            (code / "lib/a.txt").write_text(text)
            newer = planned(node.access, job, tmp_path)
            await submitted(node, newer)
        assert {path.name for path in stored.iterdir()} == {
            *(plan.hash, f"{plan.hash}.sums", newer.hash, f"{newer.hash}.sums", "packages"),
        }
        assert await Helpers(node.client, namespace).helpers() == []
        copied = await code_store.fetch(node.access, found, tmp_path / "back", Silent())
        assert (copied.files, (tmp_path / "back" / "weights").read_bytes()) == (4, LARGE)
        assert [each.path for each in await listed(node, found)] == [*sorted(files)]


async def listed(node: CodeNode, found: StoredTFJob) -> list[code_lookup.ListedFile]:
    from tfyard.remote.submitting import code_transfer

    return await code_transfer.listed(node.access, found, code_lookup.location(found), print)


class Counted(Relay):
    """Counts what goes to the server, and cuts all connections once after so many bytes."""

    def __init__(self, server: str, cut_after: int = 0) -> None:
        super().__init__(server)
        self.sent, self._cut_after = 0, cut_after

    def access(self, access: Access) -> Access:
        return replace(access, cluster=replace(access.cluster, server=self.url))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_up = writer in self._open.values()
        while data := await reader.read(65536):
            self.sent += len(data) if is_up else 0
            if self._cut_after and self.sent > self._cut_after:
                self._cut_after = 0
                self.cut()
            writer.write(data)
            await writer.drain()
        writer.close()


async def test_an_upload_that_is_cut_is_repeated_and_never_counts_by_half(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    folder(tmp_path / "code", {f"part-{number}": LARGE[number:] for number in range(4)})
    job = job_of(JOB.format(code="{from: code, claim: mine}"), namespace)
    async with code_node(control_plane, namespace, tmp_path) as node:
        with pytest.raises(Usage, match="there is no claim mine in the namespace"):
            planned(node.access, job, tmp_path)
        stored = await node.create_claim(claim("mine")) / ON_CLAIM
        plan = planned(node.access, job, tmp_path)
        assert (plan.objects, plan.notes) == ((), ())
        async with Counted(control_plane.server, cut_after=3_000_000) as relay:
            said = await submitted(node, plan, relay.access(node.access))
        assert len(said) == 1
        assert said[0].startswith("the connection broke (")
        assert relay.sent > 3_000_000 + 4 * len(LARGE)
        assert sorted(path.name for path in (stored / plan.hash).iterdir()) == [f"part-{n}" for n in range(4)]

        (tmp_path / "code" / "part-0").write_bytes(LARGE[::-1])
        newer = planned(node.access, job, tmp_path)
        (tmp_path / "code" / "part-3").write_bytes(LARGE)
        with pytest.raises(FileChanged, match="part-3 was changed"):
            await submitted(node, newer)
        assert {path.suffix for path in stored.iterdir()} <= {"", ".sums", ".part"}
        assert not (stored / newer.hash).exists()
        assert not planned(node.access, job, tmp_path).is_present
        assert await Helpers(node.client, namespace).helpers() == []


def test_the_claim_is_for_many_nodes_where_a_storage_class_offers_that(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    folder(tmp_path / "code", {"weights": LARGE})
    job = job_of(JOB.format(code="code"), namespace)
    with SyncClient(control_plane.admin) as client:
        alone = code_store.plan(client, job, tmp_path)
        path = requests.STORAGE_CLASSES.path()
        provisioners = {f"{namespace}-disk": "disk.csi.azure.com", f"{namespace}-nfs": "nfs.csi.k8s.io"}
        for name, provisioner in provisioners.items():
            client.send(requests.create(path, {"metadata": {"name": name}, "provisioner": provisioner}))
        try:
            shared = code_store.plan(client, job, tmp_path)
        finally:
            for name in provisioners:
                client.send(requests.delete(requests.STORAGE_CLASSES.path(name=name)))
    (made,) = shared.objects
    assert made["spec"]["accessModes"] == ["ReadWriteMany"]
    assert made["spec"]["storageClassName"] == f"{namespace}-nfs"
    assert shared.notes == (
        f"code: the claim tfyard-code is created: 10Gi, ReadWriteMany, of the storage class {namespace}-nfs",
    )
    assert "affinity" not in shared.job.roles[0].template["spec"]
    template = alone.job.roles[0].template
    (term,) = template["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


@pytest.mark.usefixtures("crds")
async def test_packages_that_no_job_uses_are_deleted_by_the_next_upload(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = folder(tmp_path / "code", {"train.py": b""})
    text = "name: {}\nimage: none\nrun: ls\ncode: {{from: code, claim: mine}}\nrequirements: needs.txt\n"
    plans: dict[str, Plan] = {}

    def needing(package: str) -> Plan:
        (code / "needs.txt").write_text(package)
        plans[package] = planned(node.access, job_of(text.format(package), namespace), tmp_path)
        return plans[package]

    def layers() -> list[str]:
        found = [path.name for path in (stored / "packages").iterdir()]
        return sorted(
            name for name, plan in plans.items() for layer in plan.layers if Path(layer).name in found
        )

    async with code_node(control_plane, namespace, tmp_path) as node:
        stored = await node.create_claim(claim("mine")) / ON_CLAIM
        for package in ("numpy", "scipy"):
            await submitted(node, needing(package))
            (stored / plans[package].layers[0]).mkdir()  # as the init container of a task does
        found = await created(node, plans["numpy"].job)
        assert needing("pandas").outdated == ()  # not within a day
        monkeypatch.setattr(code_claim, "KEPT", timedelta(0))
        await submitted(node, needing("pandas"))
        assert layers() == ["numpy"]

        spec = {**plans["numpy"].job.roles[0].template["spec"], "nodeName": "elsewhere"}
        pod = {"metadata": {"name": "a"}, "spec": spec}
        await node.client.send(requests.create(requests.PODS.path(namespace), pod))
        await node.client.send(requests.delete(found.path))
        assert set(plans["numpy"].layers).isdisjoint(needing("pandas").outdated)  # a pod is still there
        await node.client.send(requests.delete(requests.PODS.path(namespace, "a"), grace=0))
        assert {*plans["numpy"].layers, plans["numpy"].hash} <= {*needing("pandas").outdated}


@pytest.mark.long
async def test_packages_are_installed_once_on_the_claim_for_all_tasks(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    code = folder(tmp_path / "code", {"train.py": b"import answers; print(answers.ANSWER)"})
    (code / "needs.txt").write_text(f"./{wheel(code, 'answers').name}\n")
    text = "name: a\nimage: none\nrun: [python3, train.py]\ncode: {from: code, claim: mine}\n"
    text += "requirements: needs.txt\n"
    async with code_node(control_plane, namespace, tmp_path) as node:
        stored = await node.create_claim(claim("mine")) / ON_CLAIM
        plan = planned(node.access, job_of(text, namespace), tmp_path)
        await submitted(node, plan)
        tasks = [node.run_task(plan.job, f"a-worker-{index}") for index in range(2)]
        assert await asyncio.gather(*tasks) == ["42\n", "42\n"]
        assert len([*(stored / "packages").iterdir()]) == 1
        assert await node.run_task(plan.job, "a-worker-2") == "42\n"
        said = node.log("a-worker-2", "tfyard-packages")
        assert said.startswith("the packages of /code/needs.txt are in /tfyard-packages/")

        (code / "needs.txt").write_text("./absent.whl\n")
        plan = planned(node.access, job_of(text, namespace), tmp_path)
        await submitted(node, plan)
        await node.start_task(plan.job, "a-worker-3")
        (status,) = (await node.until_phase("a-worker-3", "Failed"))["status"]["initContainerStatuses"]
        assert (
            "pip could not install the packages of /code/needs.txt"
            in status["state"]["terminated"]["message"]
        )


SEND = """
import asyncio, os, resource, sys
from pathlib import Path
from msgspec.structs import replace
from tests.cli.running import tfyard
from tests.remote.code_node import job_of
from tfyard.kube import kubeconfig
from tfyard.kube.sync import SyncClient
from tfyard.remote.submitting import code_store
namespace, base = sys.argv[1:]
access = kubeconfig.load(os.environ)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with SyncClient(access) as client:
    job = job_of("name: train\\nimage: none\\nrun: ls\\ncode: {from: code, claim: mine}\\n", namespace)
    plan = code_store.plan(client, job, Path(base))
asyncio.run(code_store.upload(access, plan, print))
print(plan.hash, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.long
async def test_300_megabytes_of_code_take_little_memory(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    code, chance = tmp_path / "code", random.Random(2)
    code.mkdir()
    for number in range(3):
        (code / f"weights-{number}").write_bytes(chance.randbytes(100 << 20))
    async with code_node(control_plane, namespace, tmp_path) as node:
        stored = await node.create_claim(claim("mine")) / ON_CLAIM
        sending = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", SEND, namespace, str(tmp_path)),
            env={**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
        )
        said = (await sending.communicate())[0].decode().split()
        assert sending.returncode == 0
        assert sum(path.stat().st_size for path in (stored / said[-2]).iterdir()) == 300 << 20
        assert int(said[-1]) < 60 << 10  # KiB
