"""Another release is installed, by its own command or its chart, under jobs that its own command started."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Result
from tests.cluster.clusters import until
from tests.dev.running_box import TestBox, running
from tests.helm import CHART, Helm
from tests.last_release import known_to
from tfyard.install.settings import NAME
from tools import last_release as tool

pytestmark = [pytest.mark.cluster, pytest.mark.long]

TRAIN = """\
import os, sys, time
from pathlib import Path
end = Path(os.environ["TFYARD_OUT"], "end")
for step in (1, 2, 3): print(f"Step: {step}, loss: {1 / step}", flush=True)
while sys.argv[1:] == ["--wait"] and not end.exists():
    time.sleep(0.2)
"""
IMAGE, TAG = "tfyard/operator", "last-release"
Install = Callable[[str], None]
"""Installs the release of this interpreter."""


@pytest.fixture
def box(tmp_path: Path, last_release: str) -> Iterator[TestBox]:
    """A cluster without an operator, which has the images of both releases."""
    entrypoint = f"--entrypoint={IMAGE}:{TAG}={last_release} -m tfyard"
    with running(tmp_path / "state", "--no-operator", entrypoint, name="upgrades") as box:
        yield box


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    return folder


@pytest.fixture(params=["tfyard install", "helm"])
def install(request: pytest.FixtureRequest, box: TestBox, tmp_path: Path, helm: Helm) -> Install:
    def by_command(python: str) -> None:
        options = () if python == sys.executable else (f"--image={IMAGE}:{TAG}",)
        done = tfyard(box, tmp_path, python, "install", *options)
        assert done.code == 0, done.err

    def by_chart(python: str) -> None:
        options = () if python == sys.executable else (f"--set=image.tag={TAG}",)
        chart = CHART if python == sys.executable else tool.source(tmp_path / "source") / "charts" / "tfyard"
        words = ("tf-job", str(chart), "--namespace=tfyard", "--create-namespace", "--wait", *options)
        helm("upgrade", "--install", *words, kubeconfig=box.kubeconfig)

    return by_command if request.param == "tfyard install" else by_chart


def tfyard(box: TestBox, folder: Path, python: str, *words: str) -> Result:
    command, env = [python, "-m", "tfyard", *words], {**os.environ, "KUBECONFIG": str(box.kubeconfig)}
    return Result(subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False))


class Command:
    """`tfyard` of one release, used in one folder."""

    def __init__(self, box: TestBox, folder: Path, python: str) -> None:
        self._box, self._folder, self._python = box, folder, python

    def __call__(self, *words: str) -> str:
        done = tfyard(self._box, self._folder, self._python, *words)
        assert done.code == 0, (words, done.err)
        return done.out

    def submit(self, name: str, *args: str) -> None:
        self("submit", "train.py", "--name", name, "--", *args)

    def reads_all_of(self, name: str, phase: str) -> Any:
        """What it says of a job by every command that reads; its status."""
        status = json.loads(self("get", name, "-o", "json"))["status"]
        assert status["phase"] == phase
        assert phase in self("describe", name)
        assert name in self("get")
        assert "Normal" in self("events", name)
        if phase != "Suspended":
            assert self("logs", name).count("Step: ") == 3
            assert "loss" in self("metrics", name)
        return status


def phase(box: TestBox, name: str) -> str:
    return str((box.get("tfjob", name).get("status") or {}).get("phase"))


def is_in(box: TestBox, **phases: str) -> None:
    until(lambda: {name: phase(box, name) for name in phases} == phases, 90)


def pods(box: TestBox) -> dict[str, tuple[str, int]]:
    """Pod -> which one of that name it is, and how often its program was started again."""
    found = box.get("pods")["items"]
    restarts = [sum(each["restartCount"] for each in pod["status"]["containerStatuses"]) for pod in found]
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], count)
        for pod, count in zip(found, restarts, strict=True)
    }


def let_end(box: TestBox, name: str) -> None:
    box.kubectl("exec", f"{name}-worker-0", "--", "sh", "-c", "touch $TFYARD_OUT/end")
    is_in(box, **{name: "Succeeded"})


def test_commands_and_operator_of_two_releases_follow_each_other_on_the_same_jobs(
    box: TestBox, folder: Path, last_release: str, install: Install
) -> None:
    old, new = Command(box, folder, last_release), Command(box, folder, sys.executable)
    install(last_release)
    old.submit("done")
    old.submit("runs", "--wait")
    old.submit("stopped", "--wait")
    is_in(box, done="Succeeded", runs="Running", stopped="Running")
    old("stop", "stopped", "--yes")
    is_in(box, stopped="Suspended")
    phases = {"done": "Succeeded", "runs": "Running", "stopped": "Suspended"}
    before, were = {name: old.reads_all_of(name, phases[name]) for name in phases}, pods(box)

    install(sys.executable)
    for name, status in before.items():
        assert known_to(status, new.reads_all_of(name, phases[name])) == status
    assert "record" in new("describe", "done", "--record", "-o", "json")
    new.submit("runs", "--wait")
    new("resume", "stopped", "--yes")
    new.submit("later", "--wait")
    is_in(box, stopped="Running", later="Running")
    assert box.get("configmap", "later-record")["immutable"]
    assert were.items() <= pods(box).items()

    install(last_release)
    assert box.get("-n", "tfyard", f"deployment/{NAME}")["status"]["readyReplicas"] == 1
    later = old.reads_all_of("later", "Running")
    assert known_to(later, new.reads_all_of("later", "Running")) == later
    were |= pods(box)
    let_end(box, "runs")
    let_end(box, "stopped")
    old("rerun", "later", "--name", "again", "--yes")
    is_in(box, again="Running")
    let_end(box, "later")
    assert were.items() <= pods(box).items()
    for release in (old, new):
        assert release.reads_all_of("later", "Succeeded")
    old("delete", "later", "--yes")
    until(lambda: "later-record" not in box.kubectl("get", "configmaps", "-o", "name"))
