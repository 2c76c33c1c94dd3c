"""Sweeps on the page, in a real browser: one row that opens, and a page with the values of all trials."""

import base64
import gzip
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.cli.running import tfyard
from tests.dashboard.browser import browser, text, window
from tests.dashboard.served import Served, served
from tests.dashboard.test_jobs_in_a_browser import configured, seen
from tests.remote.acting.test_actions import Yard, yard
from tfyard.kube import NotFound, requests
from tfyard.model.sweep import Choice, Objective, Range, SweepSpec, SweepState, Trial
from tfyard.remote.sweeps import store

__all__ = ["yard"]
pytestmark = pytest.mark.processes

HOSTILE = "<b>x</b>"
TRAIN = """
import sys, time
lr, seconds = float(sys.argv[1]), float(sys.argv[3])
for step in (1, 2):
    print(f"step {step} auc {1 - abs(lr - .01) - .1 / step:.5f}", flush=True)
    time.sleep(seconds)
"""
OVER = ("--over", "lr=0.1,0.01,0.001", "--over", f"kind=plain,{HOSTILE}", "--objective", "max auc", "-q")


@contextmanager
def sweeping(folder: Path) -> Iterator[None]:
    """A sweep that has ended, and one that goes on."""
    (folder / "train.py").write_text(TRAIN)
    ended = tfyard("sweep", "train.py", *OVER, "--", "{lr}", "{kind}", "0", cwd=folder)
    assert ended.code == 0, ended.err
    command = [sys.executable, "-m", "tfyard", "sweep", "train.py", "--name", "busy", *OVER]
    command += ["--parallel", "1", "--", "{lr}", "{kind}", "600"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()


async def test_a_sweep_is_a_row_that_opens_and_a_page_with_its_trials(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with sweeping(tmp_path), served(tmp_path, "--local") as served_page:
        async with browser(pytestconfig) as program, window(program) as watched:
            page = watched.page
            await page.goto(served_page.address)
            await row_opens(page)
            assert await watched.broken_rules() == []
            await page.get_by_role("link", name=text("^train-sweep-20")).click()
            await shows_the_sweep(page)
            assert await watched.broken_rules() == []
            await page.set_viewport_size({"width": 400, "height": 800})
            assert not await watched.is_too_wide()
            await page.set_viewport_size({"width": 1280, "height": 800})
            await trials_are_jobs(page)
            await page.goto(served_page.root)
            await is_stopped_and_resumed(page)


async def row_opens(page: Page) -> None:
    rows = page.locator("table.jobs > tbody > tr")
    await expect(rows).to_have_count(2)
    ended = rows.filter(has_text="train-sweep-20")
    await expect(ended).to_contain_text("6/6 done, best auc 0.95")
    await ended.get_by_role("link", name="Trials").click()
    await expect(page).to_have_url(text(r"\?open="))
    inner = page.locator("tr.opened table tbody tr")
    await expect(inner).to_have_count(6)
    await expect(inner.first).to_contain_text("0.95")
    await page.get_by_role("link", name="Hide trials").click()
    await expect(inner).to_have_count(0)


async def shows_the_sweep(page: Page) -> None:
    await expect(page.locator("#head")).to_contain_text("by grid, over lr, kind, 6 combinations")
    await expect(page.locator("svg.parallel polyline")).to_have_count(6)
    await expect(page.locator("svg.parallel .best title")).to_contain_text("auc 0.95: lr=0.01")
    await expect(page.locator("#best")).to_contain_text("tfyard rerun train-sweep-20")
    await expect(page.locator("#trials tbody tr")).to_have_count(6)
    await expect(page.locator("#trials")).to_contain_text(HOSTILE)


async def trials_are_jobs(page: Page) -> None:
    boxes = page.locator("#trials input[type=checkbox]")
    await boxes.nth(0).check()
    await boxes.nth(5).check()
    await page.get_by_role("button", name="Compare").click()
    await expect(page.locator("table.sides")).to_contain_text("lr")
    await page.go_back()
    await page.locator("#trials tbody a").first.click()
    await expect(page.locator("#lines")).to_contain_text("step 2 auc 0.95")


async def is_stopped_and_resumed(page: Page) -> None:
    await page.get_by_role("link", name=text("^busy-20")).click()
    await expect(page.locator("#trials .pill.running")).to_have_count(1)
    await page.get_by_role("link", name="Stop").click()
    await expect(page.locator("main")).to_contain_text("tfyard stop run/busy-20")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator("#head .pill")).to_have_text("Stopped")
    await page.get_by_role("link", name="Resume").click()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator("#head .pill")).to_have_text("Running")
    await expect(page.locator("#trials .pill.running")).to_have_count(1)


@pytest.mark.cluster
async def test_a_sweep_of_a_cluster_is_shown_and_deleted_and_one_that_somebody_has_tampered_with_harms_nobody(
    yard: Yard, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    for name in ("plain", "tampered", "bomb"):
        yard.client.send(requests.create(requests.CONFIG_MAPS.path(yard.namespace), stored(yard, name)))
    yard.job("train")
    config = configured(yard.plane, yard.namespace, tmp_path)
    with served(tmp_path, KUBECONFIG=config) as served_page:
        async with browser(pytestconfig) as program, seen(program, served_page, 409, 410) as watched:
            page = watched.page
            rows = page.locator("table.jobs > tbody > tr")
            await expect(rows).to_have_count(3)
            await expect(rows.filter(has_text="tampered")).to_contain_text(HOSTILE)
            for name in ("tampered", "plain"):
                await page.goto(f"{served_page.root}job/{yard.namespace}/{name}/")
                await expect(page.locator("#trials tbody tr")).to_have_count(2)
                await expect(page.locator("svg.parallel polyline")).to_have_count(2)
            assert await watched.broken_rules() == []
            await is_deleted(page, yard, served_page)
            answer = await page.goto(f"{served_page.root}job/{yard.namespace}/bomb/")
            assert answer
            assert answer.status == 409
            await expect(page.get_by_role("main")).to_contain_text("kubectl delete configmap bomb")


def stored(yard: Yard, name: str) -> dict[str, object]:
    """A sweep as its driver stores it, or as whoever may write ConfigMaps can make it."""
    words, low = (HOSTILE, 0.0) if name == "tampered" else ("plain", 0.001)
    over = {"lr": Range(low, 0.1, is_log=True), words: Choice((words, "x"))}
    trials = tuple(
        Trial(
            number=at,
            values={"lr": 0.01 * at, words: words},
            state="Succeeded",
            objective=at / 3,
            job="train",
        )
        for at in (1, 2)
    )
    spec = SweepSpec(name=name, over=over, objective=Objective(words, is_max=True), trials=2)
    state = SweepState(spec=spec, created=datetime.now(UTC), phase="Succeeded", message=words, trials=trials)
    made = store.manifest(state, yard.namespace, "", {})
    if name == "bomb":
        packed = gzip.compress(b" " * (store.LARGEST_STATE + 1))
        made["binaryData"][store.STATE] = base64.b64encode(packed).decode()
    return made


async def is_deleted(page: Page, yard: Yard, served: Served) -> None:
    await page.get_by_role("link", name="Delete").click()
    await expect(page.locator("p.line code")).to_contain_text("tfyard delete plain -n ")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("status")).to_contain_text("plain")
    await expect(page.locator("table.jobs > tbody > tr").filter(has_text="plain")).to_have_count(0)
    with pytest.raises(NotFound):
        yard.client.send(requests.get(requests.CONFIG_MAPS.path(yard.namespace, "plain")))
    answer = await page.goto(f"{served.root}job/{yard.namespace}/plain/")
    assert answer
    assert answer.status == 410
    await expect(page.locator("#head")).to_contain_text("this is what was known of it then")
