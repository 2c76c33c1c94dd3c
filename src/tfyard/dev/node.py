"""The node of a box: a kubelet whose pods are processes of this machine, and the network that they have."""

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from tfyard.controlplane.control_plane import ControlPlane
from tfyard.dev.folder import BoxFolder
from tfyard.kube import Client
from tfyard.kubelet.kubelet import Kubelet
from tfyard.kubelet.nodes import Nodes
from tfyard.kubelet.processes import ProcessRuntime
from tfyard.kubelet.surroundings import Options
from tfyard.local import interpreter
from tfyard.local.interpreter import Interpreter
from tfyard.model import Manifest
from tfyard.node.hosts import HostsFiles, OwnNames
from tfyard.node.network import BoxNetwork

PASSED_ON = (
    *("HOME", "USER", "LOGNAME", "LANG", "LC_*", "TZ", "TMPDIR", "XDG_CACHE_HOME"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "PIP_*", "UV_*"),
    *("CUDA_*", "NVIDIA_*", "TF_CPP_*", "KERAS_*"),
    *("SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
"""Of our environment, what an image would bring; never what may be a secret of the user."""


class PodHosts(Struct, frozen=True):
    """The hosts files of pods, from their manifests."""

    files: HostsFiles

    def add_pod(self, pod: Manifest, address: str, path: Path) -> None:
        meta, spec = pod["metadata"], pod["spec"]
        aliases = spec.get("hostAliases") or ()
        own = OwnNames(
            address=address,
            hostname=str(spec.get("hostname") or meta["name"])[:63],
            subdomain=str(spec.get("subdomain") or ""),
            aliases=tuple((alias["ip"], tuple(alias.get("hostnames") or ())) for alias in aliases),
        )
        self.files.add(meta["uid"], path, meta["namespace"], own)

    def remove(self, uid: str) -> None:
        self.files.remove(uid)


def environment(python: str, shims: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Of every pod, before its own. `python` is found by that name; its output appears at once."""
    chosen = Interpreter(python, "")
    interpreter.write_shims(chosen, shims)
    own = {name: value for name, value in environ.items() if any(fnmatchcase(name, p) for p in PASSED_ON)}
    path = interpreter.search_path(chosen, environ.get("PATH", os.defpath), shims)
    return {"PYTHONUNBUFFERED": "1", **own, "PATH": path}


async def start_node(
    parts: AsyncExitStack, folder: BoxFolder, plane: ControlPlane, client: Client, network: BoxNetwork | None
) -> None:
    settings = folder.settings()
    address = network.address if network else "127.0.0.1"
    options = Options(
        node=folder.name,
        host_ip=address,
        api=plane.endpoint,
        hosts=PodHosts(network.hosts) if network else None,
    )
    env = environment(settings.python, folder.path / "bin")
    runtime = ProcessRuntime(client, folder.data / "node", env, network, options)
    await parts.enter_async_context(runtime)
    await parts.enter_async_context(Kubelet(client, runtime, Nodes(client, [folder.name])))
