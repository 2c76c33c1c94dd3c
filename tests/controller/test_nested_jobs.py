"""A job that is nested too deeply to be read fails, and does no harm to other jobs."""

import pytest

from tests.controller.cluster import Bench, bench, tfjob
from tests.kube.test_decoding import DEEP, nested
from tfyard.kube import Request, requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster


async def submit_deep(bench: Bench) -> None:
    """Into a field that the definition preserves, as templates are."""
    flat = b'{"name":"tensorflow","image":"x"}'
    template = b'{"spec":{"containers":[%s],"deep":%s}}' % (flat, nested(DEEP))
    spec = b'{"tfReplicaSpecs":{"Worker":{"replicas":1,"template":%s}}}' % template
    body = b'{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"deep"},"spec":%s}' % spec
    await bench.client.send(Request("POST", TFJOBS.path(bench.namespace), body, "application/json"))


@pytest.mark.long
async def test_all_other_jobs_go_on_by_watch_and_by_list(control_plane: ControlPlane, namespace: str) -> None:
    async with bench(control_plane, namespace, Script(run_for=0.1)) as first:
        await submit_deep(first)
        await first.submit(tfjob("after", Worker=1))
        await first.phase("Succeeded", "after")
    async with bench(control_plane, namespace, Script(run_for=0.1)) as second:
        await second.submit(tfjob("restarted", Worker=1))
        await second.phase("Succeeded", "restarted")
        assert second.operator is not None

        async def known() -> None:
            assert "deep" in {key.name for key in second.operator.cache.jobs}

        await eventually(known)
        failed = await second.phase("Failed", "deep")
        assert "spec: is nested too deeply to be read" in failed["conditions"][-1]["message"]
        await second.client.send(requests.delete(TFJOBS.path(namespace, "deep")))
