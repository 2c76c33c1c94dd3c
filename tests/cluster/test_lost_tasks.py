"""Jobs that lose a task by `kubectl drain`: each strategy with real TensorFlow goes on, at no retry."""

import subprocess
from pathlib import Path

import pytest

from tests.cluster.clusters import Cluster, until
from tests.cluster.jobs import Jobs
from tests.cluster.lost_tasks import ROWS, Row, check_steps, is_saved, steps
from tfyard.model import Manifest
from tfyard.model.names import JOB_NAME, REPLICA_INDEX, REPLICA_TYPE

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]
PATIENCE = 900.0
"""Seconds for a training whose machine may have more to do."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_drain_costs_a_training_time_and_nothing_else(cluster: Cluster, jobs: Jobs, row: Row) -> None:
    name, log = row.write(jobs.folder), jobs.folder.parent / f"{jobs.folder.name}.log"
    done = jobs.tfyard("submit", "job.yaml")
    assert done.code == 0, done.err
    with log.open("w") as file, jobs.start("logs", name, row.leader, "-f", stdout=file) as following:
        try:
            until(lambda: any(is_saved(step, row) for step in reported(log)), PATIENCE)
            drain(cluster, jobs, name, row.lost)
            until(lambda: jobs.phase(name) in ("Succeeded", "Failed"), PATIENCE)
            following.wait(60)
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            raise AssertionError(jobs.tfyard("describe", name).out + log.read_text()[-3000:]) from problem
        finally:
            following.kill()
    job = jobs.get("tfjob", name)
    status, again = job["status"], replaced(job)
    assert (status["phase"], status["restarts"]) == ("Succeeded", 0), jobs.tfyard("why", name).out
    assert "retries" not in str(status["tasks"])
    assert again == (everybody(job) if row.all_again else {row.lost})
    check_steps(row, reported(log))


def reported(log: Path) -> list[int]:
    return steps(log.read_text().splitlines())


def drain(cluster: Cluster, jobs: Jobs, name: str, task: str) -> None:
    role, _, index = task.rpartition("-")
    labels = {JOB_NAME: name, REPLICA_TYPE: role, REPLICA_INDEX: index}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=150s")
    jobs.kubectl("drain", cluster.name, *options, f"--pod-selector={selector}")
    jobs.kubectl("uncordon", cluster.name)


def replaced(job: Manifest) -> set[str]:
    """Tasks that got another pod."""
    memory = job["status"]["tasks"].items()
    return {f"{role.lower()}-{index}" for role, each in memory for index in each.get("attempts", {})}


def everybody(job: Manifest) -> set[str]:
    roles = job["spec"]["tfReplicaSpecs"].items()
    return {f"{role.lower()}-{index}" for role, each in roles for index in range(each["replicas"])}
