"""Where the summaries of jobs are, and the pod that shows them."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.kube.requests import TFJOBS
from tfyard.remote.helper_pods import tensorboard
from tfyard.remote.helper_pods.helper_pod import Mount
from tfyard.remote.helper_pods.tensorboard import NoSummaries, helper, shared, summaries
from tfyard.remote.reading.jobs import StoredTFJob


def job(name: str, at: str = "/out", namespace: str = "ml", **volume: Any) -> StoredTFJob:
    source = volume or {"persistentVolumeClaim": {"claimName": f"{name}-out"}}
    container = {
        "name": "tensorflow",
        "image": "example/mnist:1",
        "volumeMounts": [{"name": "out", "mountPath": at, "subPath": "runs"}],
    }
    template = {"spec": {"containers": [container], "volumes": [{"name": "out", **source}]}}
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}},
    }
    return StoredTFJob(TFJOBS, manifest)


def test_one_job_has_its_folder_where_its_tasks_have_it() -> None:
    made = helper([summaries(job("mnist"), "/out/logs/")])
    assert made.mounts == (Mount("mnist-out", "/out", "runs", True),)
    assert made.argv[4:6] == ("--logdir", "/out/logs")
    assert (made.image, made.owner) == ("example/mnist:1", job("mnist").manifest)
    other = helper([summaries(job("mnist"))], "other:1", 0)
    assert (other.image, other.user) == ("other:1", 0)
    assert other.argv[4:6] == ("--logdir", "/out")


def test_several_jobs_share_a_pod_below_their_names() -> None:
    parts = [summaries(job(name), "/out/logs") for name in ("a", "b")]
    made = helper(parts)
    assert [mount.at for mount in made.mounts] == ["/a/out", "/b/out"]
    assert made.argv[4:6] == ("--logdir_spec", "a:/a/out/logs,b:/b/out/logs")
    assert made.owner is None


def test_jobs_whose_claims_are_in_use_on_different_nodes_do_not_share_one() -> None:
    a, b, c = (
        replace(summaries(job(name)), node=node) for name, node in (("a", ""), ("b", "n1"), ("c", "n2"))
    )
    other = summaries(job("d", namespace="other"))
    assert shared([a, b, c, other]) == [[b, a], [c], [other]]
    assert helper([b, a]).node == "n1"


def test_a_folder_that_no_other_pod_can_read_is_refused() -> None:
    with pytest.raises(
        NoSummaries, match="not write to a claim; say where they are: `tensorboard: /out/logs`"
    ):
        summaries(job("mnist", emptyDir={}))
    with pytest.raises(
        NoSummaries, match="/logs of mnist is not on a claim, so no other pod can read it; /out is"
    ):
        summaries(job("mnist"), "/logs")
    with pytest.raises(Usage, match="must be a path as the tasks see it"):
        summaries(job("mnist"), "logs")
    assert tensorboard.MEMORY in helper([summaries(job("mnist"))]).memory
