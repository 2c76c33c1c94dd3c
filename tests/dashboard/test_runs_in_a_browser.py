"""The page of runs on this machine, in a real browser: real processes, the real command, nothing of a cluster."""

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.cli.running import tfyard
from tests.dashboard.browser import Watched, browser, more_than, text, window
from tests.dashboard.served import Served, served
from tfyard.testing import eventually

pytestmark = pytest.mark.processes

SILENT = 30_000
"""Milliseconds without a word after which a stream is taken for lost."""
HOSTILE = "<img src=x onerror=alert(1)><script>alert('&')</script>"
TRAIN = f"""
import json, os, time
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
for step in range(100000):
    if step % 10 == 0:
        print("{HOSTILE}", flush=True)
    print(f"reads {{step}}" if index else f"Step: {{step}}, loss: {{1 / (step + 1):.4f}}", flush=True)
    time.sleep(.1)
"""
FAIL = "print('Step: 1, loss: 0.5', flush=True)\nraise KeyError('<b>shard</b>')\n"


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """A run that goes on, and one that has failed."""
    (folder / "train.py").write_text(TRAIN)
    (folder / "fail.py").write_text(FAIL)
    tfyard("run", "fail.py", "-q", cwd=folder)
    command = [sys.executable, "-m", "tfyard", "run", "train.py", "--worker", "2", "-q"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()


@asynccontextmanager
async def opened(page: Served, pytestconfig: pytest.Config, **options: object) -> AsyncIterator[Watched]:
    async with browser(pytestconfig) as program, window(program, **options) as watched:
        await watched.page.goto(page.address)
        yield watched


def record(folder: Path, job: str) -> dict[str, object]:
    (path,) = (folder / ".tfyard" / "runs").glob(f"{job}-*/run.json")
    found: dict[str, object] = json.loads(path.read_text())
    return found


async def test_a_run_is_watched_its_log_followed_and_its_end_is_asked_for(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with running(tmp_path), served(tmp_path, "--local") as page:
        async with browser(pytestconfig) as program, window(program) as watched:
            await watched.page.goto(page.address)
            await expect(watched.page).to_have_url(page.root)  # the token is not left in the address
            await list_shows_both(watched.page)
            await watched.page.get_by_role("link", name=text("^train-")).click()
            await log_is_live(watched.page)
            await log_is_chosen(watched.page)
            await value_is_under_the_pointer(watched.page)
            await what_is_selected_stays(watched.page)
            await a_page_that_stands_still_is_noticed(watched.page, page)
            await run_is_stopped(watched.page, tmp_path)
            async with window(program, 401) as stranger:
                answer = await stranger.page.goto(page.address)
                assert answer
                assert answer.status == 401  # an address opens the page once
                await expect(stranger.page.get_by_role("main")).to_contain_text("Press Enter")


async def list_shows_both(page: Page) -> None:
    failed = page.get_by_role("row", name=text("fail-"))
    await expect(failed).to_contain_text("Failed")
    await expect(failed).to_contain_text("KeyError: '<b>shard</b>'")
    train = page.get_by_role("row", name=text("train-"))
    await expect(train).to_contain_text("Running")
    await expect(train).to_contain_text(text(r"worker \d/2"))
    await expect(train.get_by_role("img", name=text("^loss worker-0"))).to_be_visible()
    await expect(train).to_contain_text(text(r"step \d"))
    await expect(
        page.locator("#bulk").get_by_role("button", name="Delete")
    ).to_be_disabled()  # nothing is marked


async def log_is_live(page: Page) -> None:
    lines = page.locator("#lines li")
    await expect(lines.filter(has_text=HOSTILE).first).to_be_visible()
    seen = await lines.count()
    await more_than(lines, seen)
    assert await page.locator("#lines img, #lines script").count() == 0
    await page.get_by_role("button", name="Pause").click()
    paused = await lines.count()
    await expect(page.get_by_role("button", name="Go on (new lines wait)")).to_be_visible()
    assert await lines.count() == paused
    await page.get_by_role("button", name=text("Go on")).click()
    await more_than(lines, paused)


async def log_is_chosen(page: Page) -> None:
    """By task and text; the address has the choice, and each line has an address."""
    await page.get_by_role("combobox", name="Tasks").fill("worker-1")
    await page.get_by_role("searchbox", name="Search in the log").fill("reads 1")
    await page.get_by_role("button", name="Filter").click()
    assert "task=worker-1&find=reads+1" in page.url
    first = page.locator("#lines li").first
    await expect(first).to_contain_text(text("worker-1.*reads 1"))
    assert await page.locator("#lines li").filter(has_text="worker-0").count() == 0
    words = await first.locator("span").inner_text()
    await first.get_by_role("link").click()
    await expect(page.locator("#lines li.marked span")).to_have_text(words)
    await page.get_by_role("link", name="Back to the newest").click()
    await expect(page.locator("#lines li").filter(has_text="worker-0").first).to_be_visible()


async def value_is_under_the_pointer(page: Page) -> None:
    mark = page.locator(".chart .mark").nth(1)

    async def is_shown() -> None:
        """The picture is drawn anew while the job runs, and the point moves away from the pointer."""
        await mark.locator("rect").hover(force=True)
        assert await mark.locator("text").is_visible()
        assert text(r"^\d+: 0\.\d+").search(await mark.locator("text").text_content() or "")

    await eventually(is_shown)


async def what_is_selected_stays(page: Page) -> None:
    """While somebody selects words, the part that they are in is not replaced; everything else is."""
    words = page.locator("#head .sentence span").last
    await words.evaluate("each => { getSelection().selectAllChildren(each); each.id = 'mine'; }")
    selected = await page.evaluate("getSelection().toString()")
    fresh = await page.locator("#fresh").inner_text()
    await expect(page.locator("#fresh")).not_to_have_text(fresh)
    assert await page.locator("#mine").count() == 1
    assert await page.evaluate("getSelection().toString()") == selected
    await page.evaluate("getSelection().removeAllRanges()")
    await expect(page.locator("#mine")).to_have_count(0)


async def a_page_that_stands_still_is_noticed(page: Page, served: Served) -> None:
    """A stream may die without an end, when a laptop has slept or a proxy forgets it."""
    await expect(page).to_have_title(text("^Running: train-"))
    await page.clock.install()
    await page.reload()
    lines, lost = page.locator("#lines li"), page.locator("#lost")
    await more_than(lines, await lines.count())  # by the stream: the first lines are in the page itself
    served.process.send_signal(signal.SIGSTOP)
    try:
        await page.clock.fast_forward(SILENT)
        await expect(lost).to_be_visible()
    finally:
        served.process.send_signal(signal.SIGCONT)
    await page.clock.fast_forward(SILENT)
    await expect(lost).to_be_hidden()


async def run_is_stopped(page: Page, folder: Path) -> None:
    await page.get_by_role("link", name="Stop").click()
    await expect(page.get_by_role("main")).to_contain_text("after their grace period")
    await expect(page.get_by_role("main").locator("code")).to_contain_text("tfyard stop run/train-")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator("#head .pill")).to_have_text("Stopped")
    await expect(page.get_by_role("link", name="Resume")).to_be_visible()
    await expect(page).to_have_title(text("^Stopped: train-"))
    assert record(folder, "train")["phase"] == "Stopped"


async def test_every_page_is_for_everybody_by_keyboard_in_the_dark_narrow_and_without_a_script(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with running(tmp_path), served(tmp_path, "--local") as page:
        async with browser(pytestconfig) as program, window(program) as first:
            await first.page.goto(page.address)
            name = str(record(tmp_path, "fail")["name"])
            cookies = await first.context.storage_state()
            await job_is_reached_by_keyboard(first.page, name)
            paths = ("", f"run/{name}/", f"run/{name}/do/rerun?show=1", "cluster/", "run/none/")
            for scheme, width in (("light", 1280), ("dark", 400)):
                view = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
                async with window(program, 404, storage_state=cookies, **view) as watched:
                    for path in paths:
                        await watched.page.goto(page.root + path)
                        await expect(watched.page.get_by_role("heading", level=1)).to_be_visible()
                        assert await watched.broken_rules() == []
                        assert not await watched.is_too_wide()
            async with window(program, storage_state=cookies, java_script_enabled=False) as plain:
                await plain.page.goto(f"{page.root}run/{name}/")
                await expect(plain.page.locator("#lines li").last).to_contain_text("KeyError: '<b>shard</b>'")
                await expect(plain.page.locator("#why")).to_contain_text("worker-0 failed with KeyError")


async def job_is_reached_by_keyboard(page: Page, name: str) -> None:
    """From the search, by Tab, to the job, and to what can be done about it."""
    await expect(page.get_by_role("link", name=name)).to_be_visible()
    await page.get_by_role("checkbox").first.focus()  # a mark is no text that somebody types
    await page.keyboard.press("/")
    await page.keyboard.type(name)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("row")).to_have_count(2)
    await page.get_by_role("searchbox").focus()
    await menu_opens_and_closes(page)
    await tab_to(page, name)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    await tab_to(page, "Rerun")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Rerun")


async def menu_opens_and_closes(page: Page) -> None:
    await tab_to(page, "Columns")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="Hide Age")).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="Hide Age")).to_be_hidden()
    assert await page.evaluate("document.activeElement.textContent") == "Columns"


async def tab_to(page: Page, words: str) -> None:
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.textContent.trim()") == words:
            return
    raise AssertionError(f"Tab does not reach {words}")
