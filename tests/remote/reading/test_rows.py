"""Summaries of TFJobs in a list, from the status of any operator."""

from typing import Any

import msgspec
import pytest

from tfyard.overview import job_table
from tfyard.remote.reading.rows import summary

META = {"name": "a", "namespace": "ml", "creationTimestamp": "2024-11-16T03:00:00Z"}


def cells(status: Any, **spec: Any) -> tuple[str, str]:
    job = summary(msgspec.json.encode({"metadata": META, "spec": spec, "status": status}))
    worker = job.status.replica_statuses.get("Worker")
    return job_table.state(job), worker.ready if worker else ""


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ({}, ("Pending", "")),
        ({"phase": "Running", "replicaStatuses": {"Worker": {"ready": "1/2"}}}, ("Running", "1/2")),
        # training-operator: no phase, and counts without a total
        (
            {
                "conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}],
                "replicaStatuses": {"Worker": {"active": 1, "succeeded": 1}},
                "completionTime": None,
            },
            ("Running", "2/3"),
        ),
        ({"state": "Succeeded", "phase": "Done"}, ("Succeeded", "")),  # v1alpha1
        ({"conditions": "none"}, ("Unknown", "")),
    ],
)
def test_the_state_is_read_from_the_status_of_any_operator(status: Any, found: tuple[str, str]) -> None:
    assert cells(status, tfReplicaSpecs={"Worker": {"replicas": 3}}) == found


def test_a_spec_that_cannot_be_read_hides_nothing() -> None:
    assert cells({"replicaStatuses": {"Worker": {"active": 1}}}, tfReplicaSpecs=[]) == ("Pending", "")
