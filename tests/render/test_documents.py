"""The users' documents 000 and 002, followed with the real kubectl on a real apiserver."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tfyard.controlplane.process import ProcessFailed
from tfyard.render import api_versions
from tfyard.testing import ControlPlane

from .calling import COMPAT, python
from .test_resource_config import SEED_CONFIG

pytestmark = pytest.mark.cluster


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    shutil.copytree(COMPAT, tmp_path, dirs_exist_ok=True)
    return tmp_path


def run_lines(control_plane: ControlPlane, verb: str, text: str) -> None:
    """The kubectl commands of this kind in the comments of a file."""
    lines = re.findall(rf"^#   kubectl ({verb} .*)$", text, re.MULTILINE)
    assert lines
    for line in lines:
        control_plane.kubectl(*shlex.split(line))


def test_000_every_job_is_created_alone_and_its_clean_up_leaves_the_others(
    control_plane: ControlPlane, namespace: str, desk: Path
) -> None:
    sets = ["--set", f"kube_namespace={namespace}"]

    def create(*words: str) -> str:
        text = python("render_template.py", *words, *sets, cwd=desk).out
        (desk / "job.yaml").write_text(text)
        control_plane.kubectl("create", "-f", str(desk / "job.yaml"))
        return text

    def left() -> set[str]:
        kinds = "jobs,deployments,services"
        return set(control_plane.kubectl("-n", namespace, "get", kinds, "-o", "name").split())

    shared = python("render_template.py", "tf_shared_template.yaml.jinja", *sets, cwd=desk).out
    for _ in range(2):
        control_plane.kubectl("apply", "-f", "-", stdin=shared)
    single = create("single", "tf_single_template.yaml.jinja", "boc-web-predict")
    create("single", "tf_single_template.yaml.jinja", "boc-web-predict", "--set", "model_name=ckpt-2")
    cluster = create("cluster", "tf_cluster_template.yaml.jinja", "boc-web-predict", "1", "2")
    assert len(left()) == 2 + 6
    run_lines(control_plane, "delete", cluster)
    assert left() == {"job.batch/boc-web-predict-model-1", "job.batch/boc-web-predict-ckpt-2"}
    run_lines(control_plane, "delete", single)
    assert left() == {"job.batch/boc-web-predict-ckpt-2"}


def test_002_its_commands_lead_from_a_config_to_a_cluster_that_has_the_namespace_or_not(
    control_plane: ControlPlane, namespace: str, desk: Path
) -> None:
    new = f"{namespace}-tf"
    (desk / "my-config.yaml").write_text(SEED_CONFIG.replace("namespace: tensorflow", f"namespace: {new}"))
    line = ["render.py", "--config", "my-config.yaml", "--out", "rendered.yaml"]
    assert f"the namespace {new} must exist" in python(*line, cwd=desk).err
    with pytest.raises(ProcessFailed, match="not found"):
        control_plane.kubectl("create", "-f", str(desk / "rendered.yaml"))
    assert python(*line, "--create-namespace", cwd=desk).code == 0
    control_plane.kubectl("create", "-f", str(desk / "rendered.yaml"))
    names = control_plane.kubectl("-n", new, "get", "services,statefulsets,deployments", "-o", "name").split()
    tasks = ["ps-0", "ps-1", "workers-0", "workers-1", "workers-2"]
    sets = [f"statefulset.apps/{name}" for name in ("ps", "workers")]
    assert names == [f"service/{name}" for name in ("jupyter", *tasks)] + sets + ["deployment.apps/jupyter"]


def test_no_version_that_is_called_gone_is_served_and_those_of_today_are(control_plane: ControlPlane) -> None:
    rows = [row.split() for row in control_plane.kubectl("api-resources", "--no-headers").splitlines()]
    served = {(row[-3], row[-1]) for row in rows}
    versions = set(control_plane.kubectl("api-versions").split())
    for gone, kinds in api_versions.REMOVED.items():
        for kind, today in kinds.items():
            assert (gone, kind) not in served
            assert (today, kind) in served
    assert {version for version in api_versions.REMOVED if version in versions} <= {
        "networking.k8s.io/v1beta1",
        "storage.k8s.io/v1beta1",
    }, "new kinds have these versions"
