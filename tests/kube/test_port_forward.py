"""Connections into a pod, through the real API server."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.kubelet.plain_containers import node
from tests.kubelet.test_server import SERVE, WAIT, served_port
from tfyard import kube
from tfyard.kube import Client, port_forward
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster


async def exchange(client: Client, namespace: str, port: int, size: int) -> int:
    """Sends so many bytes; how many come back, after their checksum."""
    async with port_forward.connect(client, namespace, "trainer", port) as connection:
        await connection.write(b"%d\n" % size)
        await connection.write(os.urandom(size))
        answer = b"".join([data async for data in connection.data()])
    return len(answer) - len("0" * 64 + "\n")


async def test_connections_are_one_websocket_each(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", SERVE)
        port = await served_port(box)
        sizes = [1, 300_000, 300_000, 4_000_000]
        found = await asyncio.gather(*(exchange(box.client, namespace, port, size) for size in sizes))
        assert found == sizes


async def test_a_closed_port_and_a_missing_permission_are_told(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await box.run("trainer", WAIT)
        with pytest.raises(kube.PortRefused, match="cannot connect to port 9 inside the pod"):
            async with port_forward.connect(box.client, namespace, "trainer", 9) as connection:
                assert [data async for data in connection.data()] == []
        async with Client(control_plane.access("nobody")) as client:
            with pytest.raises(kube.Forbidden, match="the verb create on pods/portforward"):
                await exchange(client, namespace, 9, 1)
