"""A real Kubernetes node on this machine, for tests: kubelet, containerd, kube-proxy and CoreDNS around the
control plane of `tfyard.controlplane`, all as plain processes.

    python -m tools.node check                say what keeps this machine from running a node
    python -m tools.node                      build and fetch what is missing, once
    python -m tools.node up STATE             start a node in the folder STATE; again after `down`: it was rebooted
    python -m tools.node enter STATE COMMAND  run a command inside the node
    python -m tools.node down STATE [--purge]

The node has its own mount, network, PID, IPC and UTS namespaces below one init process (inside.py). Outside of
STATE it touches only cgroups named tfyard-*. There is no route out of its network: a connection to the world fails
at once. When its init process ends, every pod and daemon ends with it. It is no sandbox: a privileged pod sees the
devices of this machine.

It needs root, cgroups, the programs of `PROGRAMS`, and Go or its result in the cache (binaries.py). Images come
from a small registry inside the node (registry.py), which serves what images.py has made of folders. guests.py has
programs of others that tests install there.
"""

import os
import shutil
from ipaddress import IPv4Network
from pathlib import Path

HERE = Path(__file__).parent
NAME = "node"
ADDRESS = "10.88.0.2"
PODS = IPv4Network("10.244.0.0/16")
SERVICES = IPv4Network("10.96.0.0/16")
DNS = str(SERVICES[10])
REGISTRY = "127.0.0.1:5000"
UNREACHABLE, NOWHERE = "unreachable.example:5000", "192.0.2.1:5000"
"""A registry, and the address to which its images lead: there is no route."""
PROGRAMS = {
    "runc": "runc",
    "nft": "nftables",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
"""What must be installed -> the Debian package that has it."""


def obstacles() -> list[str]:
    """Everything that keeps a node from running on this machine; empty: it can."""
    packages = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program)})
    return [
        *(["it needs root: namespaces, mounts and cgroups are made for it"] if os.geteuid() else []),
        *([f"programs are missing: apt-get install {' '.join(packages)}"] if packages else []),
        *(["there are no cgroups at /sys/fs/cgroup"] if not any(Path("/sys/fs/cgroup").glob("*")) else []),
    ]
