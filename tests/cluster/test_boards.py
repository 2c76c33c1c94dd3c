"""TensorBoard and Jupyter for jobs on a whole cluster, through a port of this machine."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.async_api import expect

from tests.cli.running import tfyard
from tests.cluster.clusters import Cluster
from tests.cluster.test_training import wait
from tests.dashboard.browser import Watched, browser, window
from tests.dashboard.served import served
from tests.dashboard.test_boards_in_a_browser import closed_by_its_button, has_the_loss, opened_by_its_button

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


def trained(cluster: Cluster, folder: Path, name: str, more: str = "") -> None:
    (folder / name).mkdir()
    (folder / name / "write.py").write_text(WRITE)
    (folder / f"{name}.yaml").write_text(JOB.format(name=name) + more)
    rendered = tfyard("render", f"{name}.yaml", cwd=folder)
    assert rendered.code == 0, rendered.err
    cluster.kubectl("apply", "-f", "-", stdin=rendered.out)
    wait(cluster, f"tfjob/{name}")


@contextmanager
def page(cluster: Cluster, *words: str) -> Iterator[tuple[list[str], str]]:
    """What the command prints first, and its address. It ends because nobody looks."""
    with cluster.start_tfyard(*words, "--no-browser", "--idle", "3s") as process:
        assert process.stdout
        said = [process.stdout.readline().strip()]
        while said[-1] and "http://" not in said[-1]:
            said.append(process.stdout.readline().strip())
        if not said[-1]:
            raise AssertionError(process.communicate())
        yield said, said[-1].partition(": ")[2]
        _, errors = process.communicate()
    assert (process.returncode, "no request for 3s" in errors) == (0, True), errors


def helpers(cluster: Cluster) -> list[str]:
    pods = cluster.get("pods", "-l", "tfyard.dev/helper")["items"]
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def test_summaries_of_jobs_that_have_ended_are_read_from_their_claims(
    cluster: Cluster, tmp_path: Path
) -> None:
    for name in ("board-a", "board-b"):
        trained(cluster, tmp_path, name)
    with page(cluster, "tensorboard", "board-a", "board-b", "--logdir", "/out/logs") as (said, url):
        assert said[0].startswith("TensorBoard of board-a, board-b: ")
        assert len(helpers(cluster)) == 1
        with urlopen(f"{url}data/plugin/scalars/tags") as answer:
            assert [run.removesuffix("/.") for run in json.load(answer)] == ["board-a", "board-b"]
    assert helpers(cluster) == []


def test_the_one_beside_a_job_is_reached(cluster: Cluster, tmp_path: Path) -> None:
    trained(cluster, tmp_path, "board-c", "tensorboard: /out/logs\n")
    with page(cluster, "tensorboard", "board-c") as (_, url):
        assert helpers(cluster) == []
        with urlopen(f"{url}data/plugin/scalars/tags") as answer:
            assert "loss" in answer.read().decode()


def test_jupyter_has_the_claims_of_the_job_and_a_password(cluster: Cluster, tmp_path: Path) -> None:
    trained(cluster, tmp_path, "board-d")
    with page(cluster, "notebook", "board-d") as (said, url):
        assert said[0].startswith("password: ")
        with urlopen(f"{url}login") as answer:
            assert b"password" in answer.read().lower()
    assert helpers(cluster) == []


async def test_the_buttons_of_a_jobs_page_open_both_and_close_them(
    cluster: Cluster, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    await asyncio.to_thread(trained, cluster, tmp_path, "board-e", "tensorboard: /out/logs\n")
    with served(tmp_path, KUBECONFIG=str(cluster.kubeconfig)) as opened:
        async with browser(pytestconfig) as program, window(program) as watched:
            await watched.page.goto(opened.address)
            await watched.page.get_by_role("link", name="board-e").click()
            board = await opened_by_its_button(watched, "TensorBoard")
            assert await has_the_loss(watched, board)
            notebook = await opened_by_its_button(watched, "Notebook")
            password = await watched.page.locator(".opened code").inner_text()
            await signed_in_to_jupyter(watched, notebook, password)
            await closed_by_its_button(watched, "Notebook", notebook)
            await closed_by_its_button(watched, "TensorBoard", board)
    assert helpers(cluster) == []


async def signed_in_to_jupyter(watched: Watched, url: str, password: str) -> None:
    page = await watched.context.new_page()
    await page.goto(f"{url}login?next=/api/contents")
    await page.locator("input[type=password]").fill(password)
    await page.locator("input[type=password]").press("Enter")
    await expect(page.locator("body")).to_contain_text('"type"')
    await page.close()
