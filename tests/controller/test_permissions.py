"""The permissions that are installed: they suffice, and a missing one is reported."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.controller.cluster import install, tfjob
from tests.controller.faults import OperatorProcess
from tests.controller.test_process import lines, port_of
from tests.test_docs import DOCS, blocks
from tfyard.backends.kubernetes.resources import CHILDREN
from tfyard.controller.health import PermissionCheck
from tfyard.install import manifests, permissions
from tfyard.install.settings import NAME, Settings
from tfyard.kube import AlreadyExists, Client, requests
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.model import Manifest
from tfyard.testing import ControlPlane, Script, ScriptedKubelet, builders, eventually

(FOR_DEFINITIONS,) = [
    text
    for text in blocks((DOCS / "operator.md").read_text(encoding="utf-8"), "yaml")
    if "rbac.authorization.k8s.io" in text
]
"""Permissions that `--install-crds` needs in addition, as in the docs."""
Triple = tuple[str, str, str]


def installed(home: str, *namespaces: str, read_logs: bool = False) -> list[Manifest]:
    """The operator's ServiceAccount and roles; not those of people."""
    settings = Settings(image="i", namespace=home, namespaces=namespaces, read_logs=read_logs)
    found = manifests.objects(settings)
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    return [each for each in found if each["kind"] in kinds and each["metadata"]["name"].startswith(NAME)]


def for_work(manifests: list[Manifest], namespace: str) -> list[Manifest]:
    """The Role of one namespace and its binding; not those of the lease."""
    wanted = {"name": NAME, "namespace": namespace}.items()
    return [each for each in manifests if "Role" in each["kind"] and wanted <= each["metadata"].items()]


def granted(manifests: list[Manifest]) -> set[Triple]:
    """(group, resource, verb) of all rules."""
    rules = [rule for each in manifests for rule in each.get("rules", [])]
    return {
        (g, r, v)
        for rule in rules
        for g in rule["apiGroups"]
        for r in rule["resources"]
        for v in rule["verbs"]
    }


def asked(*wanted: permissions.Permission) -> set[Triple]:
    return {(r.group, f"{r.resource}/{r.subresource}".strip("/"), verb) for r in wanted for verb in r.verbs}


def test_what_is_installed_is_what_the_operator_asks_for() -> None:
    finalizers = {(group, "tfjobs/finalizers", "update") for group in ("kubeflow.org", "tensorflow.org")}
    jobs = [each for resource in (TFJOBS, OLD_TFJOBS) for each in permissions.of_jobs(resource.group)]
    work = asked(*jobs, *permissions.of_children(), permissions.EVENTS, permissions.POD_EVENTS) | finalizers
    lead = asked(permissions.of_lease("team-a"))
    few = installed("team-a", "team-a", "team-b")
    assert granted(for_work(few, "team-a")) == granted(for_work(few, "team-b")) == work
    assert granted(few) == work | lead
    assert granted(installed("tfyard")) == work | lead | asked(permissions.NODES)
    definitions = {
        ("apiextensions.k8s.io", "customresourcedefinitions", v) for v in ("create", "get", "patch")
    }
    assert granted(list(yaml.safe_load_all(FOR_DEFINITIONS))) == definitions


def test_the_page_names_every_permission() -> None:
    page = (DOCS / "operator.md").read_text(encoding="utf-8")
    rows = [line for line in page.split("## Permissions")[1].split("\n\n")[2].splitlines() if "`" in line]
    shown = {
        (resource, verb)
        for _, on, verbs, *_ in (row.split("|") for row in rows)
        for resource in re.findall(r"`([a-z/]+)`", on)
        for verb in verbs.strip().split(", ")
    }
    everything = granted(installed("tfyard")) | asked(permissions.POD_LOGS)
    assert shown == {(resource, verb) for _, resource, verb in everything}


def test_the_operator_is_permitted_all_that_it_creates() -> None:
    assert [(each.group, each.plural) for each in (requests.PODS, *CHILDREN.values())] == list(
        permissions.CHILDREN
    )


async def namespaces(client: Client, *names: str) -> None:
    for name in names:
        try:
            await client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": name}}))
        except AlreadyExists:
            continue
        await builders.create_service_account(client, name, "default")


async def apply(plane: ControlPlane, *manifests: Manifest) -> None:
    text = yaml.safe_dump_all(manifests)
    await asyncio.to_thread(plane.kubectl, "apply", "-f", "-", stdin=text)


@asynccontextmanager
async def running(plane: ControlPlane, home: str, log: Path, *options: str) -> AsyncIterator[OperatorProcess]:
    """The real command as the ServiceAccount of that namespace, ended in order."""
    async with plane.client() as client:
        token = await builders.service_account_token(client, home, NAME)
    kubeconfig = plane.write_kubeconfig(plane.token_access(token), f"operator-{home}")
    process = OperatorProcess(kubeconfig, "", log, f"--lease-namespace={home}", *options)
    try:
        yield process
        process.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.process.wait, 30) == 0
    finally:
        process.kill()


async def ready(log: Path) -> str:
    """What /readyz says; empty when all is well."""
    async with aiohttp.ClientSession() as session:
        answer = await session.get(f"http://127.0.0.1:{port_of(log)}/readyz")
        return "" if answer.status == 200 else await answer.text()


async def is_ready(log: Path) -> None:
    assert await ready(log) == ""


async def waits_for(log: Path, permission: str) -> None:
    assert f"missing permission: {permission}\n" in await ready(log)


async def phases(client: Client, *wanted: tuple[str, str]) -> None:
    """Each of these namespaces' job is in that phase."""

    async def look() -> None:
        found = [
            (await client.send(requests.get(TFJOBS.path(place, "train")))).get("status") or {}
            for place, _ in wanted
        ]
        assert [status.get("phase", "") for status in found] == [phase for _, phase in wanted]

    await eventually(look, 60)


def warnings(log: Path) -> list[Any]:
    return [
        line["message"] for line in lines(log) if line["level"] != "info" or "orbidden" in line["message"]
    ]


@pytest.mark.cluster
async def test_nothing_is_known_about_permissions_until_the_server_has_answered(
    control_plane: ControlPlane,
) -> None:
    counts: list[int] = []
    async with control_plane.client() as client:
        check = PermissionCheck(client, [permissions.NODES], counts.append)
        assert not check.has_answer, "no missing permission is known, which must not count as ready"
        checking = asyncio.create_task(check.run())
        while not check.has_answer:
            await asyncio.sleep(0.01)
        checking.cancel()
    assert (check.missing, counts) == ([], [0])


@pytest.mark.cluster
async def test_a_permission_that_is_taken_away_is_missing_at_the_next_check(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfyard.controller.health.CHECK_GRANTED", 0.5)
    rule = {"apiGroups": [""], "resources": ["events"], "verbs": list(permissions.EVENTS.verbs)}
    role = {"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "rules": [rule]}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "events"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "checked"}
    binding = {"kind": "RoleBinding", "apiVersion": role["apiVersion"], "roleRef": ref, "subjects": [user]}
    metadata = {"name": "events", "namespace": namespace}
    await apply(control_plane, *({**each, "metadata": metadata} for each in (role, binding)))
    needed = permissions.in_namespaces([permissions.EVENTS], (namespace,))
    counts: list[int] = []

    async def counted(number: int) -> None:
        assert counts[-1:] == [number]

    async with Client(control_plane.access("checked")) as client:
        checking = asyncio.create_task(PermissionCheck(client, needed, counts.append).run())
        await eventually(lambda: counted(0))
        await asyncio.to_thread(control_plane.kubectl, "delete", "rolebinding", "events", "-n", namespace)
        await eventually(lambda: counted(1))
        checking.cancel()


@pytest.mark.cluster
@pytest.mark.long
async def test_roles_in_two_namespaces_suffice_for_these_two_and_a_missing_one_holds_up_only_its_own(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with control_plane.client() as client, ScriptedKubelet(client, Script(run_for=0.2)):
        await install(client)
        await namespaces(client, "team-a", "team-b", "team-c")
        everything = installed("team-a", "team-a", "team-b")
        missing = for_work(everything, "team-b")
        await apply(control_plane, *(each for each in everything if each not in missing))
        for place in ("team-a", "team-b", "team-c"):
            await client.send(requests.create(TFJOBS.path(place), tfjob(Worker=2, PS=1)))
        async with running(control_plane, "team-a", log, "--namespaces=team-a,team-b"):
            await eventually(
                lambda: waits_for(log, "get, list, watch, create, delete, patch pods in namespace team-b"), 60
            )
            (told,) = [line for line in warnings(log) if line.startswith("missing permissions: ")]
            assert "update tfjobs.kubeflow.org/status in namespace team-b; " in told
            assert "team-a" not in told
            await phases(client, ("team-a", "Succeeded"), ("team-b", "Pending"), ("team-c", "Pending"))
            before = len(warnings(log))
            await apply(control_plane, *missing)
            await eventually(lambda: is_ready(log), 60)
            await phases(client, ("team-a", "Succeeded"), ("team-b", "Succeeded"), ("team-c", "Pending"))
            assert warnings(log)[before:] == []


@pytest.mark.cluster
async def test_the_cluster_role_suffices_to_install_the_definitions_and_to_work_everywhere(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with control_plane.client() as client, ScriptedKubelet(client, Script(run_for=0.2), namespace):
        await namespaces(client, "tfyard")
        await apply(control_plane, *installed("tfyard"), *yaml.safe_load_all(FOR_DEFINITIONS))
        async with running(control_plane, "tfyard", log, "--install-crds"):
            await eventually(lambda: is_ready(log), 60)
            job = tfjob(policy={"ttlSecondsAfterFinished": 1, "cleanPodPolicy": "All"}, Worker=1)
            await client.send(requests.create(TFJOBS.path(namespace), job))

            async def gone() -> None:
                found = await client.send(requests.get(TFJOBS.path(namespace)))
                assert found["items"] == []

            await eventually(gone, 60)
            refused = [line for line in warnings(log) if 'User "system:serviceaccount' in line]
            assert refused == [], "whatever else is wrong with the jobs that other tests left"
