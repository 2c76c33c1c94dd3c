"""APIs that a cluster gets while the operator runs."""

import asyncio
import signal
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from tests.controller import test_gang as gang
from tests.controller.cluster import Bench, install, tfjob
from tests.controller.test_crds import NAME, OLD_NAME, remove
from tests.controller.test_old_jobs import OLD
from tests.controller.test_process import lines, operator, port_of
from tfyard.controller import crds, process
from tfyard.formats.crd.documents import crds as definitions
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.kube import Client, requests
from tfyard.kube.requests import BOTH_TFJOBS, OLD_TFJOBS
from tfyard.model import Manifest
from tfyard.planner import Gang
from tfyard.testing import ControlPlane, Script, ScriptedKubelet, builders, eventually

pytestmark = pytest.mark.cluster

IMPATIENT = """
from tfyard.__main__ import main
from tfyard.controller import process

process.LOOK_EVERY = 0.5
main()
"""


@pytest.mark.long
async def test_an_api_that_is_installed_after_its_start_is_used(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """TFJobs of 2017, as soon as their statuses are kept; then a gang scheduler. Jobs that run meanwhile go on."""
    log, kubeflow, old = tmp_path / "log", *definitions(VERSIONS)
    async with control_plane.client() as client, ScriptedKubelet(client, Script(), namespace) as kubelet:
        yard = Bench(client, namespace, kubelet)
        await builders.install_crds(client, kubeflow)
        await remove(client, OLD_NAME)
        await gang.remove(client, gang.VOLCANO.group, gang.PLUGINS.group)
        options, program = ("--gang-scheduler", "auto"), ("-c", IMPATIENT)
        async with operator(control_plane, namespace, log, *options, program=program) as running:
            await yard.submit(tfjob("first", Worker=1))
            await yard.phase("Running", "first")
            await client.send(requests.create(requests.CRDS.path(), forgetful(old)))
            await eventually(lambda: said(log, f"cannot use more APIs: {OLD_NAME} would drop"))
            await builders.install_crds(client, old)
            await client.send(requests.create(OLD_TFJOBS.path(namespace), OLD))
            await yard.pods({"first-worker-0", "train-master-0"})

            await gang.install(client, gang.VOLCANO.group)
            await eventually(lambda: said(log, "serving /metrics", times=3))
            await yard.submit(tfjob("together", {"schedulingPolicy": {}}, Worker=1))
            await gang.group(yard, gang.VOLCANO)
            await kubelet.finish("first-worker-0")
            await yard.phase("Succeeded", "first")
            running.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(running.wait(), 30) == 0
    await said(log, "serving /metrics", times=3)


async def test_an_api_that_the_operator_may_not_list_does_not_stop_it(
    control_plane: ControlPlane,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(process, "LOOK_EVERY", 0.2)
    before, options = process.Apis([*BOTH_TFJOBS], None), process.OperatorOptions(gang_scheduler="auto")
    async with control_plane.client() as client:
        await install(client)
        await gang.install(client, gang.VOLCANO.group)
        token = await builders.service_account_token(client, namespace, "default")
    async with Client(control_plane.token_access(token)) as client:
        kubectl = partial(asyncio.to_thread, control_plane.kubectl)
        account = f"--serviceaccount={namespace}:default"
        await kubectl("create", "clusterrolebinding", f"{namespace}-view", "--clusterrole=view", account)
        looking = asyncio.create_task(process._find_more_apis(client, options, before, []))

        async def refused() -> None:
            assert "cannot use more APIs: " in caplog.text
            assert "is forbidden" in caplog.text

        await eventually(refused)
        assert not looking.done()
        await kubectl(
            "create", "clusterrolebinding", f"{namespace}-all", "--clusterrole=cluster-admin", account
        )
        found = await asyncio.wait_for(looking, 30)
    assert found.gang == Gang(by="volcano", scheduler="volcano", every=False)
    assert found.jobs == before.jobs


@pytest.mark.long
async def test_a_definition_in_use_that_begins_to_forget_ends_the_operator(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do; its next start refuses to act until that is done, or installs ours if it may."""
    monkeypatch.setattr(process, "LOOK_EVERY", 0.1)
    async with control_plane.client() as client:
        await install(client)
        looking = asyncio.create_task(
            process._find_more_apis(client, process.OperatorOptions(), process.Apis([*BOTH_TFJOBS], None), [])
        )
        try:
            await put(client, forgetful(definitions(VERSIONS)[0]))
            with pytest.raises(crds.CrdForgets, match=r"tfjobs.kubeflow.org would drop .*; run tfyard op"):
                await asyncio.wait_for(looking, 30)
        finally:
            await install(client)


async def test_it_is_not_ready_while_the_cluster_has_no_tfjobs(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Its watches are answered 404 until the CRD is there again; then it goes on by itself."""
    log = tmp_path / "log"
    async with control_plane.client() as client, ScriptedKubelet(client, Script(), namespace) as kubelet:
        await install(client)
        async with operator(control_plane, namespace, log, program=("-c", IMPATIENT)):
            await eventually(lambda: answers(log, 200, "ok"))
            try:
                await remove(client, NAME)
                await eventually(
                    lambda: answers(log, 503, "the cluster does not serve tfjobs.kubeflow.org/v1")
                )
            finally:
                await install(client)
            await eventually(lambda: answers(log, 200, "ok"))
            yard = Bench(client, namespace, kubelet)
            await yard.submit(tfjob(Worker=1))
            await yard.phase("Running")
    await said(log, "the cluster does not serve tfjobs.kubeflow.org/v1")


async def answers(log: Path, status: int, text: str) -> None:
    url = f"http://127.0.0.1:{port_of(log)}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert (response.status, (await response.text()).strip()) == (status, text)


async def put(client: Client, definition: Manifest) -> None:
    """In place of the one that is there."""
    path = requests.CRDS.path(name=definition["metadata"]["name"])
    there = await client.send(requests.get(path))
    await client.send(requests.replace(path, {**there, "spec": definition["spec"]}))


def forgetful(definition: Manifest) -> Manifest:
    """The same CRD, but its statuses lose what nobody declared."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"status": {"type": "object"}}}}
    versions = [{**version, "schema": schema} for version in definition["spec"]["versions"]]
    bare = [{key: each[key] for key in ("name", "served", "storage", "schema")} for each in versions]
    return {**definition, "spec": {**definition["spec"], "versions": bare}}


async def said(log: Path, words: str, times: int = 1) -> None:
    assert sum(words in line["message"] for line in lines(log)) == times
