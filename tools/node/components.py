"""Configuration files and command lines of what a node runs besides a control plane. Pure: values from values."""

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

from tfyard.controlplane.components import KUBELET_CLIENT
from tools.node import ADDRESS, DNS, NAME, NOWHERE, PODS, REGISTRY, UNREACHABLE

PAUSE = f"{REGISTRY}/pause:1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PROXY_USER, DNS_USER, NODE_USER = "system:kube-proxy", "coredns", f"system:node:{NAME}"
RBAC = "rbac.authorization.k8s.io"


class Paths(Struct, frozen=True):
    """Where the files of a node are. `keys` and `etc` go with the running node."""

    etc: Path
    keys: Path
    cni: Path

    def file(self, name: str) -> str:
        return str(self.etc / name)


def files(paths: Paths, cgroup: str, may_lower_oom_score: bool) -> dict[str, str]:
    """Path below `etc` -> content."""
    return {
        "containerd.toml": containerd(paths, may_lower_oom_score),
        "certs.d/_default/hosts.toml": hosts(f"http://{REGISTRY}"),
        f"certs.d/{UNREACHABLE}/hosts.toml": hosts(f"http://{NOWHERE}"),
        "cni/10-node.conflist": json.dumps(network()),
        "resolv.conf": f"nameserver {ADDRESS}\n",
        "kubelet.json": json.dumps(kubelet(paths, cgroup)),
        "proxy.json": json.dumps(proxy(paths)),
        "Corefile": corefile(paths),
        "objects.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}),
    }


def containerd(paths: Paths, may_lower_oom_score: bool) -> str:
    """runc fails if it may not lower oom_score_adj (root without CAP_SYS_RESOURCE), unless containerd knows."""
    cri = 'plugins."io.containerd.cri.v1'
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
address = "{CONTAINERD_SOCKET}"
[{cri}.images"]
snapshotter = "overlayfs"
[{cri}.images".pinned_images]
sandbox = "{PAUSE}"
[{cri}.images".registry]
config_path = "{paths.file("certs.d")}"
[{cri}.runtime"]
restrict_oom_score_adj = {json.dumps(not may_lower_oom_score)}
[{cri}.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
[{cri}.runtime".cni]
bin_dirs = ["{paths.cni}"]
conf_dir = "{paths.file("cni")}"
"""


def hosts(server: str) -> str:
    """Where images of a registry really come from."""
    return f'server = "{server}"\n[host."{server}"]\ncapabilities = ["pull", "resolve"]\n'


def network() -> dict[str, Any]:
    """The addresses of pods are in /run: after a reboot none is taken."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": str(PODS)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni-addresses",
    }
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}, "backend": "nftables"}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def kubelet(paths: Paths, cgroup: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(paths.keys / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": paths.file("kubelet.crt"),
        "tlsPrivateKeyFile": paths.file("kubelet.key"),
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": paths.file("resolv.conf"),
        "protectKernelDefaults": True,  # read, and never set for the whole machine: see inside.py
        "failSwapOn": False,
        "serializeImagePulls": False,
        "maxPods": 250,
        "evictionHard": {
            "memory.available": "200Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "systemReserved": {"memory": "1Gi"},
        "enforceNodeAllocatable": ["pods"],
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "volumeStatsAggPeriod": "5s",  # after which an emptyDir that is too large is noticed
    }


def proxy(paths: Paths) -> dict[str, Any]:
    """Settings of connection tracking are those of the machine: they stay."""
    nothing = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": str(PODS),
        "hostnameOverride": NAME,
        "clientConnection": {"kubeconfig": str(paths.keys / "kube-proxy.kubeconfig")},
        "conntrack": nothing,
    }


def corefile(paths: Paths) -> str:
    """Names of the cluster; all others do not exist, because there is no way out."""
    return f"""cluster.local in-addr.arpa {{
  bind {ADDRESS}
  errors
  kubernetes {{
    kubeconfig {paths.keys / "coredns.kubeconfig"}
    pods insecure
    ttl 5
  }}
  cache 5
  loadbalance
}}
. {{
  bind {ADDRESS}
  errors
  template ANY ANY {{
    rcode NXDOMAIN
  }}
}}
"""


def objects() -> list[dict[str, Any]]:
    """Cluster DNS is a process of the node behind a Service; the apiserver may call the kubelet."""
    reads = ["get", "list", "watch"]
    core = ["endpoints", "services", "pods", "namespaces", "nodes"]
    rules = [
        {"apiGroups": [""], "resources": core, "verbs": reads},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": reads},
    ]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": DNS_USER}, "rules": rules}
    return [
        role,
        _binding(DNS_USER, DNS_USER),
        _binding("system:kubelet-api-admin", KUBELET_CLIENT),
        *_dns_service(),
    ]


def _binding(role: str, user: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"node:{user}"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }


def _dns_service() -> list[dict[str, Any]]:
    ports = [{"name": f"dns-{kind.lower()}", "port": 53, "protocol": kind} for kind in ("UDP", "TCP")]
    place = {"name": "kube-dns", "namespace": "kube-system"}
    spec = {"clusterIP": DNS, "ports": ports}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": place, "spec": spec},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**place, "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [ADDRESS]}],
            "ports": ports,
        },
    ]
