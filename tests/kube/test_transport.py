"""The client against the real server: verbs, identities, refusals, and retries that the server asks for."""

import asyncio
import base64
import datetime
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tfyard import kube
from tfyard.kube import Access, Client, Kind, Limits, Patch, Request, User, kubeconfig, requests
from tfyard.model.backoff import Backoff
from tfyard.testing import ControlPlane, builders, eventually

pytestmark = pytest.mark.cluster

WHO_AM_I = requests.create(
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
)


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str


class ConfigMap(msgspec.Struct, frozen=True):
    metadata: Meta
    data: dict[str, str] = {}


KIND = Kind(ConfigMap)


async def name_of(plane: ControlPlane, user: User) -> str:
    async with Client(Access(plane.admin.cluster, user)) as client:
        return str((await client.send(WHO_AM_I))["status"]["userInfo"]["username"])


async def test_an_object_is_created_read_patched_replaced_applied_and_deleted(
    control_plane: ControlPlane, namespace: str
) -> None:
    path = requests.CONFIG_MAPS.path(namespace, "words")
    async with control_plane.client() as client:
        body = builders.config_map("words", {"a": "1"})
        made = await client.send(requests.create(requests.CONFIG_MAPS.path(namespace), body), KIND.one)
        merged = await client.send(requests.patch(path, {"data": {"b": "2"}}), KIND.one)
        operations = [{"op": "remove", "path": "/data/a"}]
        pruned = await client.send(requests.patch(path, operations, Patch.JSON), KIND.one)
        replaced = await client.send(requests.replace(path, {**body, "data": {"c": "3"}}), KIND.one)
        applied = await client.send(requests.apply(path, {**body, "data": {"d": "4"}}), KIND.one)
        await client.send(requests.delete(path))
        with pytest.raises(kube.NotFound):
            await client.send(requests.get(path))
    assert [made.data, merged.data, pruned.data] == [{"a": "1"}, {"a": "1", "b": "2"}, {"b": "2"}]
    assert [replaced.data, applied.data] == [{"c": "3"}, {"c": "3", "d": "4"}]


async def test_refusals_are_types(control_plane: ControlPlane, namespace: str) -> None:
    collection = requests.CONFIG_MAPS.path(namespace)
    async with control_plane.client() as client:
        body = builders.config_map("words")
        made = await client.send(requests.create(collection, body))
        with pytest.raises(kube.AlreadyExists):
            await client.send(requests.create(collection, body))
        with pytest.raises(kube.Conflict):
            await client.send(requests.delete(f"{collection}/words", uid="another"))
        stale = {**body, "metadata": {"name": "words", "resourceVersion": "1"}}
        with pytest.raises(kube.Conflict):
            await client.send(requests.replace(f"{collection}/words", stale))
        with pytest.raises(kube.Unprocessable, match="RFC 1123"):
            await client.send(requests.create(collection, builders.config_map("No Good")))
        strict = {"fieldValidation": "Strict", "dryRun": "All"}
        with pytest.raises(kube.Refused, match='unknown field "nonsense"'):
            await client.send(
                requests.create(collection, {**builders.config_map("x"), "nonsense": 1}, strict)
            )
    assert made["metadata"]["uid"]


async def test_lists_come_in_pages_of_one_moment(control_plane: ControlPlane, namespace: str) -> None:
    collection = requests.CONFIG_MAPS.path(namespace)
    async with control_plane.client() as client:
        for number in range(7):
            await client.send(requests.create(collection, builders.config_map(f"words-{number}")))
        listing = await kube.list_all(client, KIND, collection, page=3)
        whole = await kube.list_all(client, KIND, collection)
    assert [item.metadata.name for item in listing.items] == [f"words-{number}" for number in range(7)]
    assert listing == whole


async def test_pages_begin_small_and_are_as_large_as_the_objects_allow(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection, limits, read = requests.CONFIG_MAPS.path(namespace), list[int](), Client.read

    async def reading(client: Client, request: Request) -> bytes:
        limits.append(int(parse_qs(urlsplit(request.path).query)["limit"][0]))
        return await read(client, request)

    async with control_plane.client() as client:
        for number in range(26):
            large = {**builders.config_map(f"words-{number:02}"), "data": {"a": "x" * 700_000}}
            await client.send(requests.create(collection, large))
        monkeypatch.setattr(Client, "read", reading)
        listing = await kube.list_all(client, KIND, collection)
    assert len(listing.items) == 26
    assert limits == [20, 5, 5], "14 MB, then pages of 4 MB"


async def test_client_certificates_work_inline_and_from_files(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    inline = control_plane.access("ada").user
    (tmp_path / "ada.crt").write_bytes(base64.b64decode(inline.client_certificate_data))
    (tmp_path / "ada.key").write_bytes(base64.b64decode(inline.client_key_data))
    files = User(client_certificate=f"{tmp_path}/ada.crt", client_key=f"{tmp_path}/ada.key")
    assert await name_of(control_plane, inline) == "ada"
    assert await name_of(control_plane, files) == "ada"


async def test_the_kubeconfig_that_kubectl_reads_is_read_alike(control_plane: ControlPlane) -> None:
    async with Client(kubeconfig.load({"KUBECONFIG": str(control_plane.kubeconfig)})) as client:
        answer = await client.send(WHO_AM_I)
    assert answer["status"]["userInfo"]["groups"] == ["system:masters", "system:authenticated"]


async def test_impersonation_with_several_groups(control_plane: ControlPlane) -> None:
    admin = control_plane.admin
    user = msgspec.structs.replace(admin.user, impersonate="bob", impersonate_groups=["a", "b"])
    async with Client(Access(admin.cluster, user)) as client:
        answer = await client.send(WHO_AM_I)
    assert answer["status"]["userInfo"]["username"] == "bob"
    assert answer["status"]["userInfo"]["groups"] == ["a", "b", "system:authenticated"]


async def test_a_token_file_is_read_again_when_its_token_is_refused(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with control_plane.client() as admin:
        token = await builders.service_account_token(admin, namespace, "default")
    (tmp_path / "token").write_text("expired long ago")
    async with Client(Access(control_plane.admin.cluster, User(token_file=f"{tmp_path}/token"))) as client:
        with pytest.raises(kube.Unauthorized):
            await client.send(WHO_AM_I)
        (tmp_path / "token").write_text(token)  # what the kubelet does before a token ends
        answer = await client.send(WHO_AM_I)
    assert answer["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


async def test_a_server_with_another_certificate_is_not_trusted(control_plane: ControlPlane) -> None:
    stranger = msgspec.structs.replace(control_plane.admin.cluster, certificate_authority_data="")
    async with Client(Access(stranger), Limits(attempts=1)) as client:
        with pytest.raises(kube.Unreachable, match="CERTIFICATE_VERIFY_FAILED") as problem:
            await client.send(requests.get("/version"))
    assert not problem.value.sent


PLUGIN = """
import json, os, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
calls = open(sys.argv[1], "a"); calls.write(os.environ["WHO"] + asked["spec"]["cluster"]["server"] + "\\n")
status = json.load(open(sys.argv[2]))
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


class Plugin:
    """An exec plugin that prints the test's credentials and notes each call."""

    def __init__(self, folder: Path) -> None:
        self.calls, self._status = folder / "calls", folder / "status"
        (folder / "plugin.py").write_text(PLUGIN)
        command = [str(folder / "plugin.py"), str(self.calls), str(self._status)]
        env = [{"name": "WHO", "value": "me at "}]
        version = "client.authentication.k8s.io/v1"
        plugin = kubeconfig.Exec(sys.executable, version, command, env, provide_cluster_info=True)
        self.user = User(exec=plugin)

    def will_print(self, **status: str) -> None:
        self._status.write_bytes(msgspec.json.encode(status))


async def test_an_exec_plugin_logs_in_with_a_token_until_it_ends(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with control_plane.client() as admin:
        token = await builders.service_account_token(admin, namespace, "default")
    plugin = Plugin(tmp_path)
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC).isoformat()
    plugin.will_print(token=token, expirationTimestamp=past)
    async with Client(Access(control_plane.admin.cluster, plugin.user)) as client:
        await client.send(WHO_AM_I)
        plugin.will_print(token=token)
        await asyncio.gather(*(client.send(WHO_AM_I) for _ in range(10)))
    assert plugin.calls.read_text().splitlines() == [f"me at {control_plane.server}"] * 2


async def test_an_exec_plugin_logs_in_with_a_certificate(control_plane: ControlPlane, tmp_path: Path) -> None:
    plugin, ada = Plugin(tmp_path), control_plane.access("ada").user
    plugin.will_print(
        clientCertificateData=base64.b64decode(ada.client_certificate_data).decode(),
        clientKeyData=base64.b64decode(ada.client_key_data).decode(),
    )
    assert await name_of(control_plane, plugin.user) == "ada"


@pytest.mark.parametrize(
    ("command", "args", "message"),
    [
        ("no-such-login", [], "no-such-login cannot be run: .* Install it from the shop"),
        ("false", [], "false ended with 1"),
        ("echo", ["hello"], "printed no ExecCredential"),
    ],
)
async def test_an_exec_plugin_that_fails_is_named(
    control_plane: ControlPlane, command: str, args: list[str], message: str
) -> None:
    plugin = kubeconfig.Exec(
        command, "client.authentication.k8s.io/v1", args, None, "Install it from the shop"
    )
    with pytest.raises(kube.BadKubeconfig, match=message):
        await name_of(control_plane, User(exec=plugin))


def closed_door(user: str) -> list[tuple[str, dict[str, Any]]]:
    """Flow control that refuses every request of one user, with 429 and Retry-After."""
    version = "flowcontrol.apiserver.k8s.io/v1"
    root = "/apis/flowcontrol.apiserver.k8s.io/v1"
    seats = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0}
    limited = {**seats, "limitResponse": {"type": "Reject"}}
    level = {"apiVersion": version, "kind": "PriorityLevelConfiguration", "metadata": {"name": "closed"}}
    schema = {"apiVersion": version, "kind": "FlowSchema", "metadata": {"name": "closed"}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True}
    rule = {
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "resourceRules": [{**everything, "namespaces": ["*"]}],
    }
    spec = {"priorityLevelConfiguration": {"name": "closed"}, "matchingPrecedence": 2, "rules": [rule]}
    return [
        (
            f"{root}/prioritylevelconfigurations/closed",
            {**level, "spec": {"type": "Limited", "limited": limited}},
        ),
        (f"{root}/flowschemas/closed", {**schema, "spec": spec}),
    ]


@asynccontextmanager
async def turned_away(plane: ControlPlane, user: str) -> AsyncIterator[None]:
    async with plane.client() as admin:
        for path, body in closed_door(user):
            await admin.send(requests.apply(path, body))
        try:
            yield
        finally:
            for path, _ in closed_door(user):
                await admin.send(requests.delete(path))


async def test_writes_that_flow_control_turns_away_are_repeated_when_the_server_said(
    control_plane: ControlPlane,
) -> None:
    """With no seats at all, flow control accepts one request at a time and refuses the others."""
    ada = control_plane.access("ada")

    async def crowd(attempts: int) -> list[Any]:
        async with control_plane.client(ada, Limits(attempts=attempts)) as client:
            return await asyncio.gather(*(client.send(WHO_AM_I) for _ in range(40)), return_exceptions=True)

    async def some_rejected() -> list[kube.TooManyRequests]:
        rejected = [answer for answer in await crowd(attempts=1) if isinstance(answer, kube.TooManyRequests)]
        assert rejected, "flow control reads its configuration a moment later"
        return rejected

    async with turned_away(control_plane, "ada"):
        rejected = await eventually(some_rejected)
        patient = await crowd(attempts=60)
    assert all((refusal.retry_after or 0) >= 1 for refusal in rejected), "a busy server says more than 1"
    assert [answer["status"]["userInfo"]["username"] for answer in patient] == ["ada"] * 40


async def test_a_read_waits_for_a_restarting_server_and_a_write_never_acts_twice(
    control_plane: ControlPlane, namespace: str
) -> None:
    collection = requests.CONFIG_MAPS.path(namespace)
    limits = Limits(answer_timeout=1.0, backoff=Backoff(first=1.0, longest=2.0, jitter=0.5), attempts=60)
    async with control_plane.client(limits=limits) as client:
        await client.send(requests.get(collection))
        control_plane.apiserver.pause()
        with pytest.raises(kube.Unreachable) as problem:
            await client.send(requests.create(collection, builders.config_map("words")))
        control_plane.apiserver.kill()
        reading = asyncio.create_task(client.send(requests.get(collection)))
        await asyncio.to_thread(control_plane.start, "kube-apiserver")
        listing = await reading
    assert problem.value.sent
    assert len(listing["items"]) <= 1


async def test_a_stream_s_consumer_keeps_its_own_errors(control_plane: ControlPlane, namespace: str) -> None:
    path = requests.CONFIG_MAPS.path(namespace)

    async def consume(client: Client) -> None:
        async with client.stream(requests.get(path, {"watch": "1"}), idle=30) as chunks:
            async for _ in chunks:
                raise BrokenPipeError("the terminal is gone")

    async with control_plane.client() as client:
        await client.send(requests.create(path, builders.config_map("words")))
        with pytest.raises(BrokenPipeError):
            await consume(client)


async def test_watches_take_no_connection_from_requests(control_plane: ControlPlane, namespace: str) -> None:
    """An operator of many namespaces has more watches than requests in flight."""
    path = requests.CONFIG_MAPS.path(namespace)
    async with control_plane.client(limits=Limits(connections=1)) as client, AsyncExitStack() as watches:
        for _ in range(3):
            request = requests.get(path, {"watch": "true"})
            await asyncio.wait_for(watches.enter_async_context(client.stream(request, 60.0)), 30)
        await asyncio.wait_for(client.send(requests.get(path)), 30)
