"""The node of a cluster: a kubelet whose pods are processes of this machine, and the pods' network."""

import asyncio
import os
import shlex
import ssl
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard import __version__
from tfyard.controlplane.components import LOOPBACK
from tfyard.controlplane.control_plane import ControlPlane
from tfyard.dev import pod_proxy
from tfyard.dev.folder import BoxFolder
from tfyard.dev.networking import Networking
from tfyard.dev.pod_proxy import PodProxy
from tfyard.dev.service_relay import ServiceRelay
from tfyard.dev.shared_network import SharedNetwork
from tfyard.install.settings import REPOSITORY
from tfyard.kube import Client
from tfyard.kubelet import metrics
from tfyard.kubelet.claims import Provisioner
from tfyard.kubelet.kubelet import Kubelet
from tfyard.kubelet.metrics import MetricsApi
from tfyard.kubelet.nodes import MachineFacts, MachineNode
from tfyard.kubelet.processes import ProcessNodeOptions, ProcessRuntime
from tfyard.kubelet.server import KubeletServer, server_tls
from tfyard.node import interpreter
from tfyard.node.interpreter import Interpreter
from tfyard.node.log_limits import keep_times
from tfyard.node.memory import capacity

KUBELET_PORT = 10250
PASSED_ON = (
    *("HOME", "USER", "LOGNAME", "LANG", "LC_*", "TZ", "TMPDIR", "XDG_CACHE_HOME"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "PIP_*", "UV_*"),
    *("CUDA_*", "NVIDIA_*", "TF_CPP_*", "KERAS_*"),
    *("SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
"""Variables of this process that pods get, as from an image; never those that may be secrets of the user."""


def environment(python: str, shims: Path) -> dict[str, str]:
    """Environment of every pod, before its own variables. PATH finds `python`; its output is not buffered."""
    chosen = Interpreter(python, "")
    interpreter.write_shims(chosen, shims)
    own = {name: value for name, value in os.environ.items() if any(fnmatchcase(name, p) for p in PASSED_ON)}
    path = interpreter.search_path(chosen, os.environ.get("PATH", os.defpath), shims)
    return {"PYTHONUNBUFFERED": "1", **own, "PATH": path}


def machine_proxies() -> dict[str, str]:
    """Proxy variables for pods in the machine's own network."""
    return {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}


class BoxNode(Struct, frozen=True, kw_only=True):
    folder: BoxFolder
    plane: ControlPlane
    client: Client
    networking: Networking

    @property
    def address(self) -> str:
        network = self.networking.network
        return network.address if network else LOOPBACK

    async def start(self, parts: AsyncExitStack) -> None:
        """Start all parts, which end with the stack in the reverse order: first the kubelet, then its pods."""
        env, options = await self._network(parts)
        await parts.enter_async_context(Provisioner(self.client, self.folder.data / "claims"))
        runtime = await parts.enter_async_context(self._runtime(env, options))
        noticing = asyncio.create_task(keep_times(runtime.growing_logs))
        parts.callback(noticing.cancel)
        port = KUBELET_PORT if self.networking.network else 0
        api = MetricsApi(self.client, runtime, self.folder.name)
        server = KubeletServer(runtime, self._tls(), self.address, port, api.routes())
        await parts.enter_async_context(server)
        await api.register(self.address, server.port, self._authority.read_bytes())
        node = MachineNode(self.client, self._machine(server.port))
        await parts.enter_async_context(Kubelet(self.client, runtime, node))

    async def _network(self, parts: AsyncExitStack) -> tuple[dict[str, str], ProcessNodeOptions]:
        """Start Services and the way out; returns variables of pods and options of the runtime for them."""
        network, outside = self.networking.network, self.networking.outside
        options = ProcessNodeOptions(
            node=self.folder.name,
            host_ip=self.address,
            api=self.plane.endpoint,
            allocatable=self._capacity,
            entrypoints={image: shlex.split(line) for image, line in self._entrypoints.items()},
        )
        if network is None or outside is None:
            shared = await parts.enter_async_context(SharedNetwork(self.client))
            return machine_proxies(), replace(options, rewrite=shared.rewrite)
        await parts.enter_async_context(outside)
        await parts.enter_async_context(PodProxy(network, outside))
        await parts.enter_async_context(ServiceRelay(self.client, network.hosts))
        return pod_proxy.environment(network), options

    @property
    def _entrypoints(self) -> dict[str, str]:
        """What images run: tfyard's own is known, so that `tfyard install` works here as on any cluster."""
        operator = f"{shlex.quote(sys.executable)} -m tfyard"
        return {f"{REPOSITORY}:{__version__}": operator, **self.folder.settings().entrypoint}

    @property
    def _capacity(self) -> dict[str, str]:
        return capacity(self.folder.data, self.folder.settings().pretend)

    def _runtime(self, env: Mapping[str, str], options: ProcessNodeOptions) -> ProcessRuntime:
        own = environment(self.folder.settings().python, self.folder.path / "bin")
        folder, network = self.folder.data / "node", self.networking.network
        return ProcessRuntime(self.client, folder, {**own, **env}, network, options)

    def _tls(self) -> ssl.SSLContext:
        pair = self.plane.kubelet_certificate(self.folder.name, self.address, metrics.HOST)
        certificate, key = (self.plane.folder / f"kubelet.{kind}" for kind in ("crt", "key"))
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        return server_tls(certificate, key, self._authority)

    @property
    def _authority(self) -> Path:
        return self.plane.folder / "ca.crt"

    def _machine(self, port: int) -> MachineFacts:
        return MachineFacts(
            name=self.folder.name,
            address=self.address,
            port=port,
            version=f"v{self.plane.binaries.version}",
            capacity=self._capacity,
        )
