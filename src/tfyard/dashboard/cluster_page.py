"""The page Cluster: what `tfyard doctor` finds, and the nodes."""

from collections.abc import Sequence
from datetime import UTC, datetime

from aiohttp import web

from tfyard import aio
from tfyard.dashboard.answers import viewer_of, whole
from tfyard.dashboard.viewer import Viewer
from tfyard.errors import TfyardError
from tfyard.overview.doctor import Finding
from tfyard.remote import doctor


async def show(request: web.Request) -> web.Response:
    viewer = viewer_of(request)
    findings = await aio.in_thread(_findings, viewer)
    words = {"findings": findings, "now": datetime.now(UTC), "options": viewer.identity.options}
    return whole(request, "cluster.html", words)


def _findings(viewer: Viewer) -> Sequence[Finding]:
    connect = viewer.identity.connect
    if connect is None:
        text = "no cluster is configured: there is no kubeconfig"
        return [
            Finding(
                "warning", "server", text, "`tfyard run` needs no cluster; `tfyard dev up` starts one here"
            )
        ]
    found: list[Finding] = []
    try:
        with connect() as client:
            found.extend(doctor.examine(client))
    except TfyardError as problem:
        found.append(Finding("wrong", "server", str(problem)))
    return found
