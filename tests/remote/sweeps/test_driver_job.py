"""What is said before a Job drives a sweep, on a real API server."""

from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster

JOB = 'name: a\nimage: example/a:1\nrun: [python, a.py, "{lr}"]\nworker: 1\n'
SWEEP = "name: s\njob: job.yaml\nover: {lr: [1, 2]}\nobjective: max auc\n"


def test_a_cluster_without_the_role_of_drivers_needs_it_before_anybody_can_bind_it(
    plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = tfyard("submit", "sweep.yaml", cwd=tmp_path, KUBECONFIG=str(plane.kubeconfig))
    assert done.code == 1
    assert "has no ClusterRole tfyard-sweep, which `tfyard install` and the chart bring" in done.err
