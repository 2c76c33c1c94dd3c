"""`python -m` runs this module: a TFJob of one task, to its end, to see that an installation works."""

import argparse
import contextlib
import os
import sys
import time

from tfyard.errors import TfyardError
from tfyard.kube import NotFound, kubeconfig, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest, restricted
from tfyard.model.names import HELPER_IMAGE
from tfyard.views.tfjob_status import load_status

NAME = "tfyard-trial"


def job(image: str) -> Manifest:
    """A job that passes PodSecurity `restricted`. If it fails, the operator deletes it after ten minutes."""
    container = {
        "name": "tensorflow",
        "image": image,
        "command": ["sh", "-c", "echo trained"],
        "securityContext": restricted.CONTAINER,
    }
    worker = {"template": {"spec": {"containers": [container], "securityContext": restricted.POD}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": NAME},
        "spec": {"runPolicy": {"ttlSecondsAfterFinished": 600}, "tfReplicaSpecs": {"Worker": worker}},
    }


def run(client: SyncClient, namespace: str, image: str, timeout: float) -> str:
    """Phase of the job at its end, or when the time is up."""
    with contextlib.suppress(NotFound):  # of an earlier trial
        client.send(requests.delete(TFJOBS.path(namespace, NAME)))
    client.send(requests.create(TFJOBS.path(namespace), job(image)))
    end, phase = time.monotonic() + timeout, ""
    while phase not in ("Succeeded", "Failed") and time.monotonic() < end:
        manifest = client.send(requests.get(TFJOBS.path(namespace, NAME)))
        now = load_status(manifest).phase or "Pending"
        if now != phase:
            print(f"{NAME}: {now}", flush=True)
        phase = now
        time.sleep(0.5)
    if phase == "Succeeded":  # a job that failed stays, so that its reason can be found
        client.send(requests.delete(TFJOBS.path(namespace, NAME)))
    return phase


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a TFJob of one task to its end.")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--image", default=HELPER_IMAGE)
    parser.add_argument("--timeout", type=float, default=240.0)
    options = parser.parse_args()
    try:
        with SyncClient(kubeconfig.load(os.environ)) as client:
            phase = run(client, options.namespace, options.image, options.timeout)
    except TfyardError as problem:
        print(f"tfyard: {problem}", file=sys.stderr)
        return 1
    return 0 if phase == "Succeeded" else 1


if __name__ == "__main__":
    sys.exit(main())
