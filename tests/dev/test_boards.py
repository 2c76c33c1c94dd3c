"""TensorBoard and Jupyter for jobs on a whole cluster, through a port of this machine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import environ
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.running import tfyard
from tests.dev.running_box import TestBox
from tests.dev.test_jobs import wait

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]

WRITE = """
import tensorflow as tf
with tf.summary.create_file_writer("/out/logs").as_default():
    tf.summary.scalar("loss", 0.5, step=1)
"""
JOB = """
name: {name}
image: example/mnist:1
code: {name}
run: python write.py
worker: 1
volumes: {{out: {{claim: {name}-out, at: /out, size: 1Gi}}}}
"""


def trained(box: TestBox, folder: Path, name: str, more: str = "") -> None:
    (folder / name).mkdir()
    (folder / name / "write.py").write_text(WRITE)
    (folder / f"{name}.yaml").write_text(JOB.format(name=name) + more)
    rendered = tfyard("render", f"{name}.yaml", cwd=folder)
    assert rendered.code == 0, rendered.err
    box.kubectl("apply", "-f", "-", stdin=rendered.out)
    wait(box, f"tfjob/{name}")


@contextmanager
def page(box: TestBox, *words: str) -> Iterator[tuple[list[str], str]]:
    """What the command prints first, and its address. It ends because nobody looks."""
    command = [sys.executable, "-m", "tfyard", *words, "--no-browser", "--idle", "3s"]
    env = {**environ, "KUBECONFIG": str(box.folder.kubeconfig)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        said = [process.stdout.readline().decode().strip()]
        while said[-1] and "http://" not in said[-1]:
            said.append(process.stdout.readline().decode().strip())
        if not said[-1]:
            raise AssertionError(process.communicate())
        yield said, said[-1].partition(": ")[2]
        _, errors = process.communicate()
    assert (process.returncode, "no request for 3s" in errors.decode()) == (0, True), errors


def helpers(box: TestBox) -> list[str]:
    pods = box.get("pods", "-l", "tfyard.dev/helper")["items"]
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def test_summaries_of_jobs_that_have_ended_are_read_from_their_claims(box: TestBox, tmp_path: Path) -> None:
    for name in ("board-a", "board-b"):
        trained(box, tmp_path, name)
    with page(box, "tensorboard", "board-a", "board-b", "--logdir", "/out/logs") as (said, url):
        assert said[0].startswith("TensorBoard of board-a, board-b: ")
        assert len(helpers(box)) == 1
        with urlopen(f"{url}data/plugin/scalars/tags") as answer:
            assert [run.removesuffix("/.") for run in json.load(answer)] == ["board-a", "board-b"]
    assert helpers(box) == []


def test_the_one_beside_a_job_is_reached(box: TestBox, tmp_path: Path) -> None:
    trained(box, tmp_path, "board-c", "tensorboard: /out/logs\n")
    with page(box, "tensorboard", "board-c") as (_, url):
        assert helpers(box) == []
        with urlopen(f"{url}data/plugin/scalars/tags") as answer:
            assert "loss" in answer.read().decode()


def test_jupyter_has_the_claims_of_the_job_and_a_password(box: TestBox, tmp_path: Path) -> None:
    trained(box, tmp_path, "board-d")
    with page(box, "notebook", "board-d") as (said, url):
        assert said[0].startswith("password: ")
        with urlopen(f"{url}login") as answer:
            assert b"password" in answer.read().lower()
    assert helpers(box) == []
