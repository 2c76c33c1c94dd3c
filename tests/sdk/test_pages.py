"""Pages of helper pods through a port of this machine, on a node of real processes."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.remote.copy_node import CopyNode, copy_node
from tfyard.cli import target
from tfyard.cli.web_session import PageOptions, show
from tfyard.errors import TfyardError
from tfyard.local.ports import PortPool
from tfyard.remote.helper_pods.helper_pod import HelperPod
from tfyard.sdk.cluster_streams import in_helper
from tfyard.sdk.forwarding import Port
from tfyard.sdk.pages import LocalSide
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster


def helper(node: CopyNode, *argv: str) -> HelperPod:
    return HelperPod(namespace=node.namespace, purpose="page", mounts=(), argv=argv)


async def test_a_page_is_shown_until_requests_end_and_its_pod_is_deleted(
    control_plane: ControlPlane,
    crds: None,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ports = PortPool()
    port, here = ports.one(), ports.one()  # two: this pod has no network of its own
    async with copy_node(control_plane, namespace, tmp_path) as node:
        server = helper(node, sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
        async with in_helper(node.client, server, "Files", LocalSide(Port(port, here), target.say)) as page:
            await show([page], PageOptions(idle=0.2, browser=False))
            assert (
                page.forwarding.bound[0].local != port
            )  # which is taken: this pod has no network of its own
        await node.until_no_helper()
    ports.release()
    told = capsys.readouterr()
    assert told.out == f"Files: http://127.0.0.1:{here}/\n"
    assert told.err.splitlines()[-1].startswith("tfyard: no request for 0s: stopping")


async def test_a_pod_whose_program_ends_says_why(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with copy_node(control_plane, namespace, tmp_path) as node:
        wait = f"while ! [ -e {tmp_path}/go ]; do sleep .05; done"
        broken = helper(node, "sh", "-c", f"{wait}; echo TensorBoard is not installed >&2; exit 1")
        with pytest.raises(TfyardError, match="Page has ended: TensorBoard is not installed"):
            await shown(node, broken, tmp_path / "go")
        await node.until_no_helper()


async def shown(node: CopyNode, broken: HelperPod, go: Path) -> None:
    async with in_helper(node.client, broken, "Page", LocalSide(Port(9, 0), target.say)) as page:
        go.touch()
        await asyncio.wait_for(show([page], PageOptions(browser=False)), 60)
