"""The table of pods by `tfyard run`; tests/cluster/test_same_pods.py runs it on clusters."""

from pathlib import Path

import pytest

from tests.cluster.same_pods import FILES, MAIN, Container, Row, read
from tests.e2e.conftest import Outcome, Yard
from tfyard import formats

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_pod_comes_out_as_everywhere(yard: Yard, file: Path) -> None:
    row = read(file)
    yard.write("job.yaml", "---\n".join(map(formats.to_yaml, [job_of(row), *row.objects])))
    if row.refused:
        done = yard.tfyard("run", "job.yaml")
        assert done.returncode == 2
        assert row.refused in done.stderr
        return
    outcome = yard.run()
    assert outcome.events[-1]["phase"] == row.phase, outcome.events[-5:]
    assert row.reason in message(outcome)
    for container in row.containers:
        row.compare(container, seen(outcome, container))


def job_of(row: Row) -> dict[str, object]:
    role = {"restartPolicy": row.template["spec"].get("restartPolicy"), "template": row.template}
    spec = {"tfReplicaSpecs": {"Worker": role}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": row.name}, "spec": spec}


def seen(outcome: Outcome, container: str) -> Container:
    name = "worker-0" if container == MAIN else f"worker-0.{container}"
    starts, ends = outcome.of("started", name), outcome.of("ended", name)
    return Container(
        code=ends[-1]["code"],
        restarts=len(starts) - 1,
        reason=ends[-1]["reason"],
        log=(outcome.folder / starts[-1]["log"]).read_text(),
        message=message(outcome),
    )


def message(outcome: Outcome) -> str:
    """How it failed; empty if it did not."""
    return outcome.message if outcome.code else ""
