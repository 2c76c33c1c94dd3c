"""A real Kubernetes control plane in one folder and a few processes, for the time of a `with` block.

    with ControlPlane() as plane:
        async with plane.client() as client: ...
        plane.kubectl("get", "pods")
        plane.apiserver.kill(); plane.restart("kube-apiserver")

It has no kubelet and no network: pods exist as objects until a kubelet (see `tfyard.kubelet`) runs them.
"""

import asyncio
import base64
import http.client
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import msgspec

from tfyard import extras
from tfyard.controlplane.binaries import Binaries, locate
from tfyard.controlplane.components import (
    COMMAND_LINES,
    KUBELET_CLIENT,
    ON_LOOPBACK,
    Addresses,
    Layout,
    passing_websockets_on,
    reserve_port,
)
from tfyard.controlplane.process import Process, ProcessFailed, SyncProcesses

with extras.needs("control-plane", "a control plane"):
    from tfyard.controlplane.certificates import CertificateAuthority, KeyPair, key_pem, new_key, public_pem
    from tfyard.kube import Access, Client, ClusterEntry, Limits, User, kubeconfig
    from tfyard.kube.transport import DEFAULT_LIMITS

API = ("etcd", "kube-apiserver")
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
ADMIN = ("tfyard-admin", ("system:masters",))
READY_TIMEOUT = 120.0


class ControlPlane:
    """etcd, kube-apiserver and `controllers`. `flags`: component -> additional command line flags, such as feature
    gates. `data`: a folder that is kept, with logs; another control plane can continue with it. All other files
    are deleted at the end of the block."""

    def __init__(
        self,
        version: str | None = None,
        binaries: Path | None = None,
        controllers: Sequence[str] = (),
        flags: Mapping[str, Sequence[str]] = MappingProxyType({}),
        addresses: Addresses = ON_LOOPBACK,
        data: Path | None = None,
    ) -> None:
        self.binaries: Binaries = locate(binaries, version)
        self._flags, self._addresses, self._data = flags, addresses, data
        self._wanted = (*API, *controllers)
        self._components: dict[str, Process] = {}
        self._reserved: list[socket.socket] = []

    @cached_property
    def folder(self) -> Path:
        """Folder of keys, sockets and other files, deleted with the block. A socket's path must be short."""
        return Path(tempfile.mkdtemp(prefix="tfyard-k8s-"))

    def __enter__(self) -> Self:
        self._processes = SyncProcesses(self.folder)
        try:
            self._prepare()
            for name in self._wanted:
                self.start(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def abandon(self) -> None:
        """Kill all processes at once: faster than an orderly end, for data that is no longer needed."""
        self._components.clear()
        self._processes.close()

    def __exit__(self, *_: object) -> None:
        """Stop clients before servers: an apiserver without its etcd takes long to shut down."""
        try:
            for name in reversed(list(COMMAND_LINES)):
                if name in self._components:
                    self._components.pop(name).stop()
        finally:
            self._processes.close()
            for port in self._reserved:
                port.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.__exit__)

    # --- components

    @property
    def etcd(self) -> Process:
        return self._components["etcd"]

    @property
    def apiserver(self) -> Process:
        return self._components["kube-apiserver"]

    @property
    def processes(self) -> list[Process]:
        return list(self._components.values())

    def start(self, name: str) -> Process:
        """Start a component unless it is running, and wait until it reports ready."""
        process = self._components.get(name)
        if process is None:
            own = list(self._flags.get(name, ()))
            if name == "kube-apiserver":
                own += passing_websockets_on(self.binaries.minor)
            argv = [str(self.binaries.path(name)), *COMMAND_LINES[name](self._layout), *own]
            process = self._components[name] = self.process(name, argv)
        if not process.running:
            process.start()
        self.wait_ready(name)
        return process

    def process(self, name: str, argv: Sequence[str]) -> Process:
        """A process beside the components, such as an operator: it ends with them, however they end."""
        return Process(name, argv, self.logs / f"{name}.log", self._processes)

    def stop(self, name: str) -> None:
        self._components[name].stop()

    def restart(self, name: str) -> None:
        self.stop(name)
        self.start(name)

    def wait_ready(self, name: str, timeout: float = READY_TIMEOUT) -> None:
        process, end = self._components[name], time.monotonic() + timeout
        while not self._is_ready(name):
            if not process.running:
                raise ProcessFailed(f"{name} ended before it was ready:\n{process.log_tail()}")
            if time.monotonic() > end:
                raise ProcessFailed(f"{name} is not ready after {timeout:.0f} s:\n{process.log_tail()}")
            time.sleep(0.05)

    def restore(self) -> None:
        """Start or resume every component and wait for it, after a test stopped or paused some."""
        for name in self._wanted:
            if self._components[name].running:
                self._components[name].resume()
            self.start(name)

    def compact(self) -> int:
        """Compact etcd's history up to now, as the apiserver does every five minutes."""
        revision = int(self._etcd("/v3/kv/range", {"key": "AA=="})["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    # --- access

    @property
    def server(self) -> str:
        return self._layout.url("kube-apiserver")

    @property
    def endpoint(self) -> tuple[str, int]:
        """The apiserver's address and port."""
        return self._addresses.address, self._layout.ports["kube-apiserver"]

    def access(self, user: str = ADMIN[0], groups: Iterable[str] | None = None) -> Access:
        """Access of the admin by default, else of a user of that name with a new client certificate."""
        chosen = ADMIN[1] if groups is None and user == ADMIN[0] else tuple(groups or ())
        return Access(self._cluster(), _user(self._authority.client(user, chosen)))

    def kubelet_certificate(self, node: str, *names: str) -> KeyPair:
        """A certificate for the kubelet of a node with these names; the apiserver accepts no other."""
        return self._authority.server(f"system:node:{node}", names)

    def token_access(self, token: str, namespace: str = "default") -> Access:
        """Access of the token's user, such as a ServiceAccount (see `builders.service_account_token`)."""
        return Access(self._cluster(), User(token=token), namespace)

    def client(self, access: Access | None = None, limits: Limits = DEFAULT_LIMITS) -> Client:
        return Client(access or self.admin, limits)

    def write_kubeconfig(self, access: Access, name: str) -> Path:
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(kubeconfig.dump(access))
        path.chmod(0o600)
        return path

    def kubectl_command(self, *args: str) -> list[str]:
        """A command line of kubectl as the admin, with a home directory of its own: its caches are deleted with
        the control plane, and the user's kuberc does not change its output."""
        home = ["env", f"HOME={self.folder}", "KUBERC=off"]
        return [*home, str(self.binaries.path("kubectl")), f"--kubeconfig={self.kubeconfig}", *args]

    def kubectl(self, *args: str, stdin: str = "", timeout: float = 60) -> str:
        """The output of the real kubectl; ProcessFailed with its error output if it fails."""
        command = self.kubectl_command(*args)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise ProcessFailed(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    # --- preparation and readiness

    def _prepare(self) -> None:
        data = self._data or self.folder
        self.logs = data / "logs" if self._data else data
        self.logs.mkdir(parents=True, exist_ok=True)
        self._layout = Layout(
            self.folder, data, self._addresses, self._addresses.ports or self._reserve_ports()
        )
        self._authority = CertificateAuthority()
        self._write_keys()
        self.admin = self.access()
        self.kubeconfig = self.write_kubeconfig(self.admin, "admin")
        for name in CONTROLLERS:
            self.write_kubeconfig(self.access(f"system:{name}"), name)
        self._tls = ssl.create_default_context(cadata=self._authority.pem.decode())
        self._load_admin_certificate()

    def _reserve_ports(self) -> dict[str, int]:
        names = ("kube-apiserver", *CONTROLLERS)
        self._reserved += [reserve_port() for _ in names]
        return {name: port.getsockname()[1] for name, port in zip(names, self._reserved, strict=True)}

    def _write_keys(self) -> None:
        serving = self._authority.server("kube-apiserver", self._addresses.names)
        kubelet_client = self._authority.client(KUBELET_CLIENT)
        files = {
            "ca.crt": self._authority.pem,
            "server.crt": serving.certificate,
            "server.key": serving.key,
            "kubelet-client.crt": kubelet_client.certificate,
            "kubelet-client.key": kubelet_client.key,
        }
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        self._write_service_account_keys()

    def _write_service_account_keys(self) -> None:
        """Write the keys, unless kept data has some: tokens that were signed by them are in use."""
        private, public = (Path(self._layout.kept(f"service-accounts.{kind}")) for kind in ("key", "pub"))
        if not (private.exists() and public.exists()):
            key = new_key()
            private.touch(mode=0o600)
            private.write_bytes(key_pem(key))
            public.write_bytes(public_pem(key))

    def _load_admin_certificate(self) -> None:
        user = self.admin.user
        pem = base64.b64decode(user.client_certificate_data) + base64.b64decode(user.client_key_data)
        (self.folder / "admin.pem").write_bytes(pem)
        self._tls.load_cert_chain(self.folder / "admin.pem")

    def _cluster(self) -> ClusterEntry:
        return ClusterEntry(self.server, certificate_authority_data=_base64(self._authority.pem))

    def _is_ready(self, name: str) -> bool:
        if name == "etcd":
            connection: http.client.HTTPConnection = _UnixConnection(self._layout.file("etcd.sock"))
            path = "/health"
        else:
            host, port = self._addresses.address, self._layout.ports[name]
            connection = http.client.HTTPSConnection(host, port, timeout=5, context=self._tls)
            path = "/readyz" if name == "kube-apiserver" else "/healthz"
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _etcd(self, path: str, body: dict[str, Any]) -> Any:
        """A call of etcd's JSON gateway: two calls are not worth a client library."""
        connection = _UnixConnection(self._layout.file("etcd.sock"))
        try:
            connection.request("POST", path, msgspec.json.encode(body))
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise ProcessFailed(f"etcd {path}: {answer.decode()}")
            return msgspec.json.decode(answer)
        finally:
            connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _base64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def _user(pair: KeyPair) -> User:
    return User(client_certificate_data=_base64(pair.certificate), client_key_data=_base64(pair.key))
