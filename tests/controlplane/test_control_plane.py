"""The control plane is a real cluster: real kubectl, real users, real faults, and nothing is left at its end."""

import base64
import json
import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest
import yaml

from tfyard import kube
from tfyard.kube import requests
from tfyard.testing import ControlPlane, ProcessFailed, builders, eventually

pytestmark = pytest.mark.cluster


def test_real_kubectl_creates_watches_gets_describes_and_deletes(
    control_plane: ControlPlane, namespace: str
) -> None:
    def kubectl(*args: str, stdin: str = "") -> str:
        return control_plane.kubectl("-n", namespace, *args, stdin=stdin)

    manifest = yaml.safe_dump(builders.config_map("words", {"greeting": "hello"}))
    watching = control_plane.kubectl_command(
        *("-n", namespace, "get", "configmaps", "--watch", "--output-watch-events", "--request-timeout=60s"),
        *("-o", "custom-columns=EVENT:.type,NAME:.object.metadata.name", "--no-headers"),
    )

    with subprocess.Popen(watching, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout
        created = kubectl("create", "-f", "-", stdin=manifest)
        got = json.loads(kubectl("get", "configmap", "words", "-o", "json"))
        described = kubectl("describe", "configmap", "words")
        seen = [watcher.stdout.readline().split()]
        deleted = kubectl("delete", "configmap", "words")
        seen.append(watcher.stdout.readline().split())
        watcher.kill()

    assert created == "configmap/words created\n"
    assert got["data"] == {"greeting": "hello"}
    assert "greeting:\n----\nhello" in described
    assert deleted == f'configmap "words" deleted from {namespace} namespace\n'
    assert seen == [["ADDED", "words"], ["DELETED", "words"]]


def test_kubectl_failures_have_its_own_message(control_plane: ControlPlane) -> None:
    with pytest.raises(ProcessFailed, match='configmaps "nobody" not found'):
        control_plane.kubectl("get", "configmap", "nobody")


def test_headers_that_name_another_user_are_not_believed(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The apiserver's own certificate alone may name users, and nobody else has that."""
    ada = control_plane.access("ada", ["engineers"])
    (tmp_path / "ada.pem").write_bytes(
        base64.b64decode(ada.user.client_certificate_data) + base64.b64decode(ada.user.client_key_data)
    )
    tls = ssl.create_default_context(cadata=base64.b64decode(ada.cluster.certificate_authority_data).decode())
    tls.load_cert_chain(tmp_path / "ada.pem")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    url = f"{control_plane.server}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {
        "X-Remote-User": "root",
        "X-Remote-Group": "system:masters",
        "Content-Type": "application/json",
    }
    asked = urllib.request.Request(url, json.dumps(review).encode(), headers)
    with urllib.request.urlopen(asked, context=tls) as answer:
        user = json.load(answer)["status"]["userInfo"]
    assert (user["username"], "system:masters" in user["groups"]) == ("ada", False)


async def test_rbac_is_on_and_every_user_can_have_a_certificate(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with control_plane.client(control_plane.access("ada", ["engineers"])) as ada:
        with pytest.raises(kube.Forbidden, match='User "ada" cannot list resource "pods"'):
            await ada.send(requests.get(requests.PODS.path(namespace)))
        # Not the ClusterRole `view`: it has no rules until a controller has aggregated them.
        control_plane.kubectl("-n", namespace, "create", "role", "see", "--verb=list", "--resource=pods")
        control_plane.kubectl(
            "-n", namespace, "create", "rolebinding", "see", "--role=see", "--group=engineers"
        )
        pods = await eventually(lambda: ada.send(requests.get(requests.PODS.path(namespace))))
    assert pods["items"] == []


async def test_a_service_account_has_a_real_token(control_plane: ControlPlane, namespace: str) -> None:
    async with control_plane.client() as admin:
        await builders.create_service_account(admin, namespace, "robot")
        token = await builders.service_account_token(admin, namespace, "robot")
    async with control_plane.client(control_plane.token_access(token)) as robot:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = await robot.send(
            requests.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        )
    assert answer["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:robot"


def test_what_was_stored_survives_a_killed_apiserver_and_etcd(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("create", "configmap", "kept", "-n", namespace)
    port = control_plane.server
    control_plane.apiserver.kill()
    control_plane.etcd.kill()
    control_plane.start("etcd")
    control_plane.start("kube-apiserver")
    assert control_plane.server == port
    assert "configmap/kept" in control_plane.kubectl("get", "configmaps", "-n", namespace, "-o", "name")


@pytest.mark.long
def test_two_control_planes_at_once_do_not_disturb_each_other(
    control_plane: ControlPlane, namespace: str
) -> None:
    with ControlPlane() as other:
        folder = other.folder
        assert other.server != control_plane.server
        other.kubectl("create", "namespace", "only-here")
        other.apiserver.kill()
        assert namespace in control_plane.kubectl("get", "namespaces", "-o", "name")
        other.start("kube-apiserver")
        assert "only-here" in other.kubectl("get", "namespaces", "-o", "name")
        pids = [other.etcd.pid, other.apiserver.pid]
    assert "only-here" not in control_plane.kubectl("get", "namespaces", "-o", "name")
    assert not folder.exists()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


async def test_a_control_plane_can_be_used_asynchronously(control_plane: ControlPlane) -> None:
    async with ControlPlane(binaries=control_plane.binaries.folder) as plane, plane.client() as client:
        version = await client.send(requests.get("/version"))
    assert version["gitVersion"] == f"v{control_plane.binaries.version}"


def test_a_component_that_cannot_start_says_why(control_plane: ControlPlane) -> None:
    control_plane.apiserver.stop()
    control_plane.apiserver.argv.append("--no-such-flag")
    try:
        with pytest.raises(ProcessFailed, match="unknown flag: --no-such-flag"):
            control_plane.start("kube-apiserver")
    finally:
        control_plane.apiserver.argv.pop()


async def test_the_apiserver_outlives_an_absent_etcd(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.etcd.kill()
    control_plane.start("etcd")
    async with control_plane.client() as client:
        path = requests.CONFIG_MAPS.path(namespace)
        await eventually(lambda: client.send(requests.create(path, builders.config_map("after"))))


@pytest.mark.long
async def test_another_control_plane_continues_with_kept_data_and_its_tokens_stay_valid(
    tmp_path: Path,
) -> None:
    async def token_of_robot(plane: ControlPlane) -> str:
        async with plane.client() as admin:
            namespace = await builders.create_namespace(admin)
            await builders.create_service_account(admin, namespace, "robot")
            return await builders.service_account_token(admin, namespace, "robot")

    async with ControlPlane(data=tmp_path) as plane:
        token = await token_of_robot(plane)
    assert {path.name for path in tmp_path.iterdir()} == {
        "etcd",
        "logs",
        "service-accounts.key",
        "service-accounts.pub",
    }
    assert (tmp_path / "service-accounts.key").stat().st_mode & 0o777 == 0o600
    async with ControlPlane(data=tmp_path) as plane, plane.client(plane.token_access(token)) as robot:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        await robot.send(requests.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review))
