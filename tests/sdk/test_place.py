"""What rows and places say themselves, so that nobody asks which kind they are."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import NotPossible
from tfyard.kube import Access
from tfyard.kube.kubeconfig import ClusterEntry
from tfyard.kube.requests import TFJOBS
from tfyard.model import Condition, Status
from tfyard.model.summary import JobSummary
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.sdk import rows
from tfyard.sdk.forwarding import Port
from tfyard.sdk.on_cluster import OnCluster
from tfyard.sdk.on_machine import OnMachine
from tfyard.sdk.pages import LocalSide
from tfyard.sdk.place import HelperOptions


def job(condition: str, phase: str = "") -> JobSummary:
    status = Status(conditions=(Condition(type=condition, status="True"),), phase=phase)
    return JobSummary(name="a", job="a", created=datetime.now(UTC), status=status)


def test_a_row_says_what_can_be_done_to_a_run() -> None:
    running = rows.of_run(job("Running"), is_over=False)
    assert (running.title, running.actions) == ("run/a", ("stop", "restart", "rerun", "tensorboard"))
    assert rows.of_run(job("Succeeded"), is_over=True).actions == ("rerun", "delete", "tensorboard")
    killed = rows.of_run(job("Running", "Killed"), is_over=True)
    assert killed.actions == ("resume", "rerun", "delete", "tensorboard")


def test_a_row_says_what_can_be_done_to_a_job_of_a_cluster() -> None:
    pages = ("tensorboard", "notebook")
    running, suspended, ended = (
        rows.of_tfjob("tfjob.kubeflow.org/a", job(condition))
        for condition in ("Running", "Suspended", "Failed")
    )
    assert running.actions == ("stop", "restart", "scale", "rerun", "delete", *pages)
    assert suspended.actions == ("resume", "scale", "rerun", "delete", *pages)
    assert (ended.is_over, ended.actions) == (True, ("rerun", "delete", *pages))


async def test_a_board_of_a_run_and_a_job_of_a_cluster_is_refused_instead_of_leaving_one_out(
    tmp_path: Path,
) -> None:
    run = OnMachine(RunDirectory(tmp_path / "a"))
    manifest = {"metadata": {"name": "b", "namespace": "ml"}}
    other = OnCluster(Access(ClusterEntry(server="http://127.0.0.1:1")), StoredTFJob(TFJOBS, manifest), print)
    with pytest.raises(NotPossible, match=r"run/a is on this machine, .*/b in the namespace ml"):
        async with run.tensorboard([other], "", HelperOptions(), LocalSide(Port(0), print)):
            pass
