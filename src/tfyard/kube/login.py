"""The headers and the TLS context of a request, from a kubeconfig or from an exec plugin.

Shared by both transports, so it imports neither asyncio nor aiohttp.
"""

import base64
import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from tfyard.kube.errors import BadKubeconfig
from tfyard.kube.kubeconfig import Access, ClusterEntry, Exec, material
from tfyard.model.corrupt_json import CORRUPT_JSON

EXEC_TIMEOUT = 60.0
ACCEPT = "application/json, */*"
"""kubectl's header: the container runtime's server, which answers exec and port-forward, has no JSON."""

Headers = tuple[tuple[str, str], ...]
"""Pairs, because a name may occur twice: one Impersonate-Group per group."""
Keys = tuple[bytes, bytes, bytes]
"""The trusted CAs, our certificate and our key, as PEM."""


class ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(msgspec.Struct, frozen=True):
    status: ExecStatus


def headers(access: Access, token: str) -> Headers:
    user = access.user
    pairs = [("Accept", ACCEPT), ("User-Agent", "tfyard"), ("Accept-Encoding", "gzip")]
    if token:
        pairs.append(("Authorization", f"Bearer {token}"))
    elif user.username:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        pairs.append(("Authorization", f"Basic {pair}"))
    if user.impersonate:
        pairs.append(("Impersonate-User", user.impersonate))
    return (*pairs, *(("Impersonate-Group", group) for group in user.impersonate_groups or []))


def keys(access: Access, status: ExecStatus) -> Keys:
    user, trusted = access.user, _trusted(access.cluster)
    if status.client_certificate_data:
        return trusted, status.client_certificate_data.encode(), status.client_key_data.encode()
    certificate = material(user.client_certificate_data, user.client_certificate)
    return trusted, certificate, material(user.client_key_data, user.client_key)


def tls(cluster: ClusterEntry, pem: Keys) -> ssl.SSLContext | None:
    """The TLS context; None if the server does not use TLS."""
    if cluster.server.startswith("http://"):
        return None
    try:
        return _tls(cluster, *pem)
    except (ssl.SSLError, ValueError) as problem:
        raise BadKubeconfig(f"certificate or key cannot be used: {problem}") from problem


def _tls(cluster: ClusterEntry, trusted: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=trusted.decode() or None)
    # Python 3.13 turned strict checks on, which many clusters' long-lived CAs (no key identifier) fail.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.insecure_skip_tls_verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate:
        with _as_file(certificate + b"\n" + key) as path:
            context.load_cert_chain(path)
    return context


def read_token(path: str) -> str:
    try:
        with open(path) as file:  # noqa: PTH123 - the kubelet replaces it by a symlink swap; only its text matters
            return file.read().strip()
    except OSError as problem:
        raise BadKubeconfig(f"token cannot be read: {problem}") from problem


# --- exec plugins


def plugin_environment(plugin: Exec, cluster: ClusterEntry) -> dict[str, str]:
    info: dict[str, Any] = {"interactive": False}
    if plugin.provide_cluster_info:
        info["cluster"] = {"server": cluster.server, **_cluster_info(cluster)}
    credential = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": info}
    chosen = {pair["name"]: pair["value"] for pair in plugin.env or []}
    return {**os.environ, **chosen, "KUBERNETES_EXEC_INFO": msgspec.json.encode(credential).decode()}


def plugin_status(plugin: Exec, output: bytes, code: int | None) -> ExecStatus:
    """The credentials in a plugin's output; BadKubeconfig if it failed."""
    if code:
        raise BadKubeconfig(f"{plugin.command} ended with {code}. {plugin.install_hint}".strip())
    try:
        return msgspec.json.decode(output, type=ExecCredential).status
    except CORRUPT_JSON as problem:
        raise BadKubeconfig(f"{plugin.command} printed no ExecCredential: {problem}") from problem


def plugin_missing(plugin: Exec, problem: OSError) -> BadKubeconfig:
    return BadKubeconfig(f"{plugin.command} cannot be run: {problem}. {plugin.install_hint}".strip())


def plugin_too_slow(plugin: Exec) -> BadKubeconfig:
    return BadKubeconfig(f"{plugin.command} gave no credentials within {EXEC_TIMEOUT:.0f} s")


def _cluster_info(cluster: ClusterEntry) -> dict[str, Any]:
    trusted = _trusted(cluster)
    return {"certificate-authority-data": base64.b64encode(trusted).decode()} if trusted else {}


def _trusted(cluster: ClusterEntry) -> bytes:
    return material(cluster.certificate_authority_data, cluster.certificate_authority)


@contextlib.contextmanager
def _as_file(pem: bytes) -> Iterator[str]:
    """A file for Python's ssl, which reads certificates only from files; in memory, where the system can."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("tfyard"), "wb", buffering=0) as file:
            file.write(pem)
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile(buffering=0) as private:
        private.write(pem)
        yield private.name
