"""Programs of others, installed in a cluster by their own manifests for the time of some tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from tests.cluster.clusters import Cluster
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.model import Manifest

PATIENCE = 300.0
APPLY = ("apply", "--server-side", "--force-conflicts", "-f", "-")
DELETE = ("delete", "--ignore-not-found", "-f", "-")


@contextmanager
def installed(cluster: Cluster, name: str, *, without: str = "") -> Iterator[None]:
    """`without`: a part of the names of objects that are left out."""
    try:
        found = cluster.guest(name)
    except MissingBinaries as problem:
        pytest.skip(str(problem))
    wanted = [each for each in found if not without or without not in each["metadata"]["name"]]
    try:
        cluster.kubectl(*APPLY, stdin=yaml.safe_dump_all(wanted))
        for each in wanted:
            if each["kind"] == "Deployment":
                _wait(cluster, each)
        yield
    finally:
        backwards = yaml.safe_dump_all(reversed(wanted))  # the operator's webhooks go before its pods
        cluster.kubectl(*DELETE, stdin=backwards, timeout=PATIENCE)


def _wait(cluster: Cluster, deployment: Manifest) -> None:
    place, name = ("-n", deployment["metadata"]["namespace"]), f"deployment/{deployment['metadata']['name']}"
    try:
        cluster.kubectl(
            "rollout", "status", *place, name, f"--timeout={PATIENCE:.0f}s", timeout=PATIENCE + 60
        )
    except AssertionError:
        pytest.fail(cluster.kubectl("describe", *place, "pods"))
