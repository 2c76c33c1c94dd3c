"""`tf1: true` in manifests: a ConfigMap with the module, mounted where Python looks first."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tfyard.render import tf1

from . import schema
from .calling import Manifest, named, of_kind, tfyard

JOB = """\
name: old
image: tensorflow/tensorflow:2.21.0
tf1: true
run: python train.py --ps_hosts=$PS_HOSTS
worker: 2
ps: 1
"""


def containers(manifest: Manifest) -> list[Manifest]:
    if manifest["kind"] == "TFJob":
        templates = [spec["template"] for spec in manifest["spec"]["tfReplicaSpecs"].values()]
    else:
        templates = (
            [manifest["spec"]["template"]] if manifest["kind"] in ("Job", "ReplicationController") else []
        )
    return [container for template in templates for container in template["spec"]["containers"]]


@pytest.mark.parametrize("form", ["tfjob", "plain", "legacy"])
def test_every_form_carries_the_module_to_every_task(form: str) -> None:
    done = tfyard("render", "-", "--as", form, text=JOB)
    files = {path.name: path.read_text() for path in (tf1.FOLDER / "tensorflow").glob("*.py")}
    files["tensorflow.py"] = files.pop("__init__.py")
    assert named(done.objects, "ConfigMap", "old-tf1")["data"] == files
    mounted = [container for manifest in done.objects for container in containers(manifest)]
    assert mounted
    for container in mounted:
        assert {"name": "PYTHONPATH", "value": "/tfyard-tf1"} in container["env"]
        assert {"name": "tfyard-tf1", "mountPath": "/tfyard-tf1"} in container["volumeMounts"]
    assert "path: tensorflow/__init__.py" in done.out
    assert "path: tensorflow/before_1.py" in done.out
    assert [text for manifest in done.objects for text in schema.problems(manifest)] == []
    assert "tf1" not in done.err


def test_a_python_path_of_the_job_is_kept_behind_it_in_its_place() -> None:
    text = JOB + "env: {BASE: /opt, PYTHONPATH: $(BASE)/lib, AFTER: $(PYTHONPATH)}\n"
    (job,) = of_kind(tfyard("render", "-", text=text).objects, "TFJob")
    env = containers(job)[0]["env"]
    assert [(entry["name"], entry["value"]) for entry in env] == [
        ("BASE", "/opt"),
        ("TFYARD_PYTHONPATH", "$(BASE)/lib"),
        ("PYTHONPATH", "/tfyard-tf1:$(TFYARD_PYTHONPATH)"),
        ("AFTER", "$(PYTHONPATH)"),
    ]


def test_the_page_lists_what_is_understood_from_before_tensorflow_1_0() -> None:
    module = runpy.run_path(str(tf1.FOLDER / "tensorflow" / "before_1.py"))
    understood = {*module["RENAMED"], *module["SUMMARIES"], *module["CHANGED"]}
    page = (ROOT / "docs" / "coming-from.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| (.*tf\..*) \|$", page, re.MULTILINE)
    listed = re.findall(r"`tf\.([\w.]+)`", " ".join(rows))
    assert sorted(listed) == sorted(name.removesuffix(".__init__") for name in understood)


def test_convert_says_that_it_does_not_carry_tf1_over() -> None:
    assert "not carried over: tf1: `tfyard render` ships" in tfyard("convert", "-", text=JOB).out


def python(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with `folder` in place of site-packages."""
    path = f"{tf1.FOLDER}:{folder}"
    return subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_installed_tensorflow_1_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("__version__ = '1.15.5'; app = 'its own'")
    done = python(tmp_path, "import tensorflow as tf; print(tf.app, tf.__file__)")
    assert done.stdout == f"its own {tmp_path}/tensorflow/__init__.py\n", done.stderr


def test_without_an_installed_tensorflow_the_error_is_pythons_own(tmp_path: Path) -> None:
    done = python(tmp_path, "import tensorflow")
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'tensorflow'\n")
