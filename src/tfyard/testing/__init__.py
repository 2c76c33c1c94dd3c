"""A cluster for tests: a real Kubernetes control plane that starts for them and goes after them.

    with testing.ControlPlane() as plane:                       # etcd and kube-apiserver, TLS, RBAC
        async with plane.client() as client:                    # tfyard.kube, as the admin
            async with testing.ScriptedKubelet(client): ...     # pods run, by a script

In pytest: `pytest_plugins = ["tfyard.testing.fixtures"]` gives `control_plane`, `namespace`, `controllers`.
There is no fake apiserver: what holds here holds in Kubernetes.
"""

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.controlplane.control_plane import CONTROLLERS, ControlPlane
from tfyard.controlplane.process import Process, ProcessFailed
from tfyard.kubelet.runtime import Pod
from tfyard.kubelet.script import Script
from tfyard.kubelet.scripted import ScriptedKubelet
from tfyard.testing.relay import Relay
from tfyard.testing.waiting import eventually

__all__ = [
    "CONTROLLERS",
    "ControlPlane",
    "MissingBinaries",
    "Pod",
    "Process",
    "ProcessFailed",
    "Relay",
    "Script",
    "ScriptedKubelet",
    "eventually",
]
