"""`tfyard port-forward`: the ports that it is given; to tasks of a cluster: tests/cluster."""

import pytest

from tfyard.errors import Usage
from tfyard.sdk.forwarding import Port, read_ports


def test_ports_are_read_as_kubectl_reads_them() -> None:
    assert read_ports(["6006", "8080:80", ":2222"]) == [Port(6006, 6006), Port(80, 8080), Port(2222, 0)]
    with pytest.raises(Usage, match=r"^80:, 70000, http, 1:2:3: a port is 6006"):
        read_ports(["80", "80:", "70000", "http", "1:2:3"])
