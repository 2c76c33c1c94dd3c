"""The page Cluster: what `tfyard doctor` finds, and the nodes."""

from datetime import UTC, datetime

from aiohttp import web

from tfyard import aio
from tfyard.dashboard import drawing
from tfyard.dashboard.answers import viewer_of, whole
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import TfyardError
from tfyard.kube import Forbidden
from tfyard.overview import nodes
from tfyard.overview.doctor import Finding
from tfyard.remote.installing import doctor


async def show(request: web.Request) -> web.Response:
    viewer = viewer_of(request)
    findings, rows, problem = await aio.in_thread(_looked_at, viewer)
    words = {
        "findings": findings,
        "nodes": drawing.table(nodes.COLUMNS, rows),
        "problem": problem,
        "now": datetime.now(UTC),
        "options": viewer.identity.options,
    }
    return whole(request, "cluster.html", words)


def _looked_at(viewer: Viewer) -> tuple[list[Finding], list[tuple[str, ...]], str]:
    """The findings, the nodes, and why the nodes cannot be shown."""
    connect = viewer.identity.connect
    if connect is None:
        fix = "`tfyard run` needs no cluster; `tfyard dev up` starts one on this machine"
        text = "no cluster is configured: there is no kubeconfig"
        return [Finding("warning", "server", text, fix)], [], ""
    found: list[Finding] = []
    try:
        with connect() as client:
            found.extend(doctor.examine(client))
            return found, [nodes.row(each) for each in doctor.node_uses(client)], ""
    except Forbidden as problem:
        return found, [], str(problem)
    except TfyardError as problem:
        return [*found, Finding("wrong", "server", str(problem))], [], ""
