"""The command lines of the control plane's components. Pure: from a Layout to lists of strings."""

import ipaddress
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

LOOPBACK = "127.0.0.1"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""The apiserver's common name in its client certificate for kubelets and aggregated APIs."""


class Addresses(msgspec.Struct, frozen=True):
    """The address and ports of a control plane, and the address range of Services."""

    address: str = LOOPBACK
    ports: Mapping[str, int] = {}
    """Port of each component; empty: free ones are reserved."""
    services: str = "10.0.0.0/24"

    @property
    def names(self) -> list[str]:
        """Host names and addresses of the apiserver; its Service has the first address of the range."""
        service = ipaddress.ip_network(self.services)[1]
        suffixes = ("", ".default", ".default.svc", ".default.svc.cluster.local")
        inside = [f"kubernetes{suffix}" for suffix in suffixes]
        return ["localhost", *inside, *dict.fromkeys((LOOPBACK, self.address, str(service)))]


ON_LOOPBACK = Addresses()


class Layout(msgspec.Struct, frozen=True):
    """The files and ports of one control plane: a folder that only its owner can read, and reserved ports."""

    folder: Path
    """Folder that is deleted at the end, with sockets, certificates and keys."""
    data: Path
    """Folder that another control plane can continue with: etcd's data, the keys of service accounts."""
    addresses: Addresses
    ports: Mapping[str, int]

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def kept(self, name: str) -> str:
        return str(self.data / name)

    def url(self, component: str) -> str:
        return f"https://{self.addresses.address}:{self.ports[component]}"


def reserve_port() -> socket.socket:
    """A socket that reserves a port as long as it is open: bound, but never listening.

    Asking the kernel for a free port and closing it again is a race between two control planes, and a restarted
    apiserver must come back where its clients expect it. The components are started with --permit-port-sharing
    (SO_REUSEPORT), so they can bind the port as well; programs that do not share it cannot.
    """
    reservation = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reservation.bind((LOOPBACK, 0))
    return reservation


def etcd(layout: Layout) -> list[str]:
    """etcd listens on a socket in the folder: no port, no TLS, and other users cannot open it. It has no peers,
    but the flags require an address for them. No fsync: the data need not survive a power cut."""
    no_peer = "http://localhost:1"
    return [
        "--name=tfyard",
        f"--data-dir={layout.kept('etcd')}",
        f"--listen-client-urls=unix://{layout.file('etcd.sock')}",
        f"--listen-peer-urls=unix://{layout.file('peer.sock')}",
        f"--advertise-client-urls={no_peer}",
        f"--initial-advertise-peer-urls={no_peer}",
        f"--initial-cluster=tfyard={no_peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(layout: Layout) -> list[str]:
    """kube-apiserver with RBAC and all default admission plugins."""
    return [
        *_serving(layout, "kube-apiserver"),
        f"--advertise-address={layout.addresses.address}",
        f"--etcd-servers=unix://{layout.file('etcd.sock')}",
        f"--client-ca-file={layout.file('ca.crt')}",
        f"--kubelet-certificate-authority={layout.file('ca.crt')}",
        f"--kubelet-client-certificate={layout.file('kubelet-client.crt')}",
        f"--kubelet-client-key={layout.file('kubelet-client.key')}",
        # The kubelet serves the aggregated APIs, such as metrics, and accepts this certificate of the apiserver.
        f"--proxy-client-cert-file={layout.file('kubelet-client.crt')}",
        f"--proxy-client-key-file={layout.file('kubelet-client.key')}",
        # Controllers look for these settings, and complain every few seconds if there are none.
        f"--requestheader-client-ca-file={layout.file('ca.crt')}",
        f"--requestheader-allowed-names={KUBELET_CLIENT}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={layout.addresses.services}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.kept('service-accounts.pub')}",
        f"--service-account-signing-key-file={layout.kept('service-accounts.key')}",
        # By address: the name of the node, which is the other possibility, cannot be resolved.
        "--kubelet-preferred-address-types=InternalIP",
        # The "kubernetes" Endpoints object would name a loopback address, which its validation refuses.
        *(["--endpoint-reconciler-type=none"] if layout.addresses.address == LOOPBACK else []),
    ]


def passing_websockets_on(minor: int) -> list[str]:
    """Flags by which this version of kube-apiserver passes WebSockets on to the kubelet of tests and `tfyard dev`.
    Since 1.36 it asks the node whether its kubelet speaks them; before, it translates them into SPDY."""
    gates = ("TranslateStreamCloseWebsocketRequests", "PortForwardWebsockets")
    return [f"--feature-gates={gate}=false" for gate in gates] if minor < 36 else []


def controller_manager(layout: Layout) -> list[str]:
    return [
        *_controller(layout, "kube-controller-manager"),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.kept('service-accounts.key')}",
        f"--root-ca-file={layout.file('ca.crt')}",
        # Kubelets choose the addresses of pods themselves.
        "--allocate-node-cidrs=false",
    ]


def scheduler(layout: Layout) -> list[str]:
    return _controller(layout, "kube-scheduler")


def _controller(layout: Layout, name: str) -> list[str]:
    """Flags of a controller. There is one of each, and no leader election, which would cost seconds."""
    kubeconfig = layout.file(f"{name}.kubeconfig")
    return [
        *_serving(layout, name),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        # Tests count on speed; the flow control that matters is the apiserver's.
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
    ]


def _serving(layout: Layout, name: str) -> list[str]:
    return [
        f"--bind-address={layout.addresses.address}",
        f"--secure-port={layout.ports[name]}",
        "--permit-port-sharing=true",
        f"--tls-cert-file={layout.file('server.crt')}",
        f"--tls-private-key-file={layout.file('server.key')}",
    ]


COMMAND_LINES = {
    "etcd": etcd,
    "kube-apiserver": apiserver,
    "kube-controller-manager": controller_manager,
    "kube-scheduler": scheduler,
}
