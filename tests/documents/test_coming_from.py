"""The five documents that users come from, walked with their own files by the commands of docs/coming-from.md."""

import asyncio
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import DATA, ROOT
from tests.controller.cluster import bench
from tests.render.test_legacy import FIRST, SECOND, without_stars
from tests.render.test_resource_config import SEED_CONFIG
from tfyard.controller.config import read_config, site
from tfyard.testing import ControlPlane, Script

pytestmark = [pytest.mark.cluster, pytest.mark.processes]

PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
SEED_004 = ROOT / "tests" / "golden" / "seed_004"


class Desk:
    """The folder of a reader, whose `tfyard`, `python` and `kubectl` are the real ones. `options`: of kubectl."""

    def __init__(self, folder: Path, plane: ControlPlane, *options: str) -> None:
        self.folder, programs = folder / "desk", folder / "bin"
        for made in (self.folder, programs):
            made.mkdir()
        commands = {
            "tfyard": [sys.executable, "-m", "tfyard"],
            "python": [sys.executable],
            "kubectl": plane.kubectl_command(*options),
        }
        for name, command in commands.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            (programs / name).chmod(0o755)
        self._path = programs

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def walk(self, title: str) -> None:
        """Every command of a section prints what the page says."""
        steps = commands_of(title)
        assert steps
        for line, printed in steps:
            command = ["/bin/sh", "-c", f'PATH="{self._path}:$PATH"; {line}']
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
            said = f"$ {line}\n{done.stdout}{done.stderr}"
            assert done.returncode == 0, said
            pattern = re.escape(printed).replace(r"\.\.\.", r"[\s\S]*")
            texts = (done.stdout, f"{done.stdout}\n", done.stderr + done.stdout)  # jsonpath ends no line
            assert any(re.fullmatch(pattern, text) for text in texts), said


def commands_of(title: str) -> list[tuple[str, str]]:
    """(command line, what it prints)."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    text = "".join(re.findall(r"```console\n(.*?)```", section, re.DOTALL))
    return [
        (line, printed) for line, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
    ]


def test_000_templates_are_rendered_created_and_deleted(control_plane: ControlPlane, tmp_path: Path) -> None:
    desk = Desk(tmp_path, control_plane)
    shutil.copytree(ROOT / "compat", desk.folder, dirs_exist_ok=True)
    desk.walk("Templates: render_template.py")


async def test_001_a_tfjob_is_created_watched_and_tried_here(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, control_plane, "--namespace", namespace)
    files = {"tfjob.yaml": "001-module6-ex1-gpu.yaml", "tfjob-azure.yaml": "001-module6-ex2-azurefile.yaml"}
    for name, seed in files.items():
        text = (DATA / "seeds" / seed).read_text()
        desk.write(
            name, text.replace("<DOCKER_USERNAME>", "reader").replace("<IMAGE>", "reader/tf-mnist:gpu")
        )
    desk.write("train.py", "import pathlib; pathlib.Path('/tmp/tensorflow/model').write_text('trained')")
    (desk.folder / "share").mkdir()
    async with bench(control_plane, namespace, Script()):
        await asyncio.to_thread(desk.walk, "A TFJob of Kubeflow")


def test_002_a_config_becomes_a_cluster_and_a_jupyter(control_plane: ControlPlane, tmp_path: Path) -> None:
    desk = Desk(tmp_path, control_plane)
    shutil.copytree(ROOT / "compat", desk.folder, dirs_exist_ok=True)
    desk.write("my-config.yaml", SEED_CONFIG)
    desk.walk("A config with resources: render.py")


@pytest.mark.tensorflow
@pytest.mark.usefixtures("crds")
@pytest.mark.long
def test_003_a_cluster_by_hand_trains_its_program_of_2016_here(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, control_plane)
    without_stars((*FIRST, *SECOND), desk.folder)
    program = desk.folder / "nfs" / "deep_recommend_system-master" / "distributed"
    shutil.copytree(ROOT / "examples" / "cancer", program)
    text = (program / "cancer_classifier.py").read_text()
    (program / "cancer_classifier.py").write_text(text.replace('"steps", 3000', '"steps", 1000'))
    desk.walk("ReplicationControllers by hand")
    (metrics,) = desk.folder.glob(".tfyard/runs/*/metrics.jsonl")
    assert json.loads(metrics.read_text().splitlines()[-1])["auc"] >= 0.976
    assert not (desk.folder / "deep_recommend_system-master").exists()


async def test_004_a_job_of_2017_gets_its_drivers_from_the_config_of_2017(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, control_plane, "--namespace", namespace)
    for name in ("tfjob.yaml", "job.yaml"):
        desk.write(name, (SEED_004 / name).read_text().replace("<SAMPLE IMAGE>", "sample"))
    desk.write("train.py", "print('Step: 1, loss: 0.5')")
    config = SEED_004 / "controller_config_file.yaml"
    desk.write(config.name, config.read_text())
    async with bench(control_plane, namespace, Script(), site=site(read_config(config))):
        await asyncio.to_thread(desk.walk, "The first TfJob operator")
