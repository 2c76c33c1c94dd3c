"""Volcano's own scheduler on a whole cluster: all pods of a job start, or none."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster import guests
from tests.cluster.clusters import GPUS, Cluster, until
from tests.cluster.test_installation import has_succeeded, job, release
from tests.helm import CHART, Helm

pytestmark = [pytest.mark.cluster, pytest.mark.long]


@pytest.fixture
def box(empty: Cluster, helm: Helm) -> Iterator[Cluster]:
    """Without its webhooks, which nothing here needs: they check Volcano's own jobs and queues."""
    with guests.installed(empty, "volcano", without="admission"):
        release(helm, empty, "install", str(CHART), "--create-namespace", "--set=gangScheduler=volcano")
        yield empty
        empty.kubectl("delete", "tfjobs", "--all")
        release(helm, empty, "uninstall")
        empty.kubectl("delete", "crd/tfjobs.kubeflow.org", "namespace/tfyard")


def create(box: Cluster, gpus: int) -> None:
    """Two workers with so many GPUs each; the node says that it has four."""
    found = yaml.safe_load(job("sleep 1", replicas=2))
    (container,) = found["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {GPUS[0]: gpus}}
    box.apply(found)


def pods(box: Cluster) -> list[Any]:
    return list(box.get("pods", "-l", "training.kubeflow.org/job-name=train")["items"])


def causes(box: Cluster) -> list[str]:
    """The kinds of what `tfyard why` finds."""
    answer = json.loads(box.tfyard("why", "train", "-o", "json").out)
    return [each["kind"] for each in answer["causes"]]


def test_a_gang_that_does_not_fit_starts_no_pod_and_one_that_fits_starts_all(box: Cluster) -> None:
    create(box, gpus=3)
    until(lambda: "gang" in causes(box), 120)
    assert [each for each in pods(box) if each["spec"].get("nodeName")] == []
    group = box.get("podgroups.scheduling.volcano.sh", "train")
    assert group["spec"]["minMember"] == 2
    box.kubectl("delete", "tfjob/train")
    until(lambda: not pods(box))

    create(box, gpus=2)
    until(lambda: len(pods(box)) == 2)
    assert {each["spec"]["schedulerName"] for each in pods(box)} == {"volcano"}
    until(lambda: has_succeeded(box, "default"), 120)
