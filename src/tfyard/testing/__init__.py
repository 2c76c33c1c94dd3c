"""Tools for tests: of a training, by running its job to the end, and of programs that need a cluster, on a real
control plane.

    def test_it_learns(tfyard_run):                             # pytest_plugins = ["tfyard.testing.training"]
        run = tfyard_run("train.py", worker=2)
        assert run.metrics()[-1]["loss"] < 0.5

    with testing.ControlPlane() as plane:                       # etcd and kube-apiserver, TLS, RBAC
        async with plane.client() as client:                    # tfyard.kube, as the admin
            async with testing.ScriptedKubelet(client): ...     # pods run, by a script

In pytest: `pytest_plugins = ["tfyard.testing.fixtures"]` gives `control_plane`, `namespace`, `controllers`.
There is no fake apiserver: tests run against Kubernetes' own.

Names that need the extra `testing` are imported on first use; `tfyard.testing.training` needs only pytest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfyard.controlplane.binaries import MissingBinaries
    from tfyard.controlplane.control_plane import CONTROLLERS, ControlPlane
    from tfyard.controlplane.process import Process, ProcessFailed
    from tfyard.testing.builders import eventually
    from tfyard.testing.relay import Relay
    from tfyard.testing.script import Pod, Script, Sidecar
    from tfyard.testing.scripted import ScriptedKubelet

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
    "Sidecar",
    "eventually",
]

_HOMES = {
    "controlplane.binaries": ("MissingBinaries",),
    "controlplane.control_plane": ("CONTROLLERS", "ControlPlane"),
    "controlplane.process": ("Process", "ProcessFailed"),
    "testing.script": ("Pod", "Script", "Sidecar"),
    "testing.scripted": ("ScriptedKubelet",),
    "testing.builders": ("eventually",),
    "testing.relay": ("Relay",),
}

if not TYPE_CHECKING:

    def __getattr__(name):
        for module, names in _HOMES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(f"tfyard.{module}"), name)
                return value
        raise AttributeError(f"module 'tfyard.testing' has no attribute {name!r}")
