"""Kubeflow's training-operator as a bare process, as `make node` builds it: `--beside training-operator`.

Its manifests have a cluster provide a Secret for the certificate of its webhook, and a kubelet write that into the
pod. Without them it waits for a quarter of an hour and ends, so both are done here. The webhook is left out, but
its server listens on all addresses; this keeps it, and all else, in a network of its own:

    unshare --net sh -c 'ip link set lo up && .venv/bin/python bench/operator --beside training-operator'
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tfyard.kube import Client, requests
from tfyard.model import Manifest
from tools.node import guests

NAME = "training-operator"
NAMESPACE, SECRET = "kubeflow", "training-operator-webhook-cert"
CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")
"""Where it looks for them; no option changes that."""
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
OPTIONS = (
    *("--enable-scheme=tfjob", "--controller-threads=16", "--kube-api-qps=5000", "--kube-api-burst=5000"),
    *("--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:{port}", "--zap-log-level=error"),
    "--kubeconfig={kubeconfig}",
)
"""By default it sends 20 requests a second, which would take minutes for a thousand jobs."""


def command() -> str:
    guests.manifests(NAME)  # says how to get it
    (image,) = guests.GUESTS[NAME].programs
    return " ".join([str(guests.GUESTS[NAME].program(image)), *OPTIONS])


def definition() -> Manifest:
    """Its CRD of TFJobs: what a job costs the apiserver depends on that, too."""
    found = guests.manifests(NAME)
    return next(each for each in found if each["metadata"]["name"] == "tfjobs.kubeflow.org")


@asynccontextmanager
async def provided(client: Client) -> AsyncIterator[None]:
    """What it needs to start, and goes on needing while it runs."""
    await client.send(requests.create(requests.NAMESPACES.path(), {"metadata": {"name": NAMESPACE}}))
    await client.send(requests.create(requests.SECRETS.path(NAMESPACE), {"metadata": {"name": SECRET}}))
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    name = {"name": f"validator.{NAME}.kubeflow.org"}
    await client.send(requests.create(WEBHOOKS, {**kind, "metadata": name, "webhooks": []}))
    task = asyncio.create_task(_mount(client))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()  # without its certificate it does nothing, and says nothing


async def _mount(client: Client) -> None:
    """Writes the certificate to its folder as a kubelet does, once the operator has put it into the Secret."""
    async with asyncio.timeout(60):
        while not (
            data := (await client.send(requests.get(requests.SECRETS.path(NAMESPACE, SECRET)))).get("data")
        ):
            await asyncio.sleep(0.2)
    CERTIFICATES.mkdir(parents=True, exist_ok=True)
    for name, text in data.items():
        (CERTIFICATES / name).write_bytes(base64.b64decode(text))
