"""Times on the page: all follow one choice between UTC and the reader's own zone, which is remembered."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.cli.running import tfyard
from tests.dashboard.browser import browser, text, window
from tests.dashboard.served import served

pytestmark = pytest.mark.processes

TOKYO = timedelta(hours=9)
TIMES = """all => all.map(each => ({
    at: each.getAttribute("datetime"), shows: each.dataset.shows, text: each.textContent, title: each.title,
    part: each.closest("[id]").id }))"""
CLOCK = re.compile(r"\d\d:\d\d:\d\d")


async def test_all_times_of_all_pages_follow_one_choice_which_reloads_and_other_tabs_keep(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "fail.py").write_text("print('Step: 1, loss: 0.5')\nraise KeyError('shard')\n")
    for _ in range(2):
        tfyard("run", "fail.py", "-q", cwd=tmp_path)
    one, two = sorted(each.name for each in (tmp_path / ".tfyard/runs").iterdir())
    compared = f"compare?job=%2F{one}&job=%2F{two}"
    with served(tmp_path, "--local") as page:
        async with browser(pytestconfig) as program, window(program, timezone_id="Asia/Tokyo") as watched:
            await watched.page.goto(page.address)
            other = await watched.context.new_page()
            await other.goto(f"{page.root}run/{one}/")
            await expect(other.locator("#timeline svg")).to_contain_text(text(r"UTC, \d+s"))
            await expect(other.locator("#lines li").first).to_be_visible()
            await are_shown(other, timedelta(), "UTC")
            await watched.page.get_by_role("button", name="Times are in UTC").click()
            for path in ("", compared, "cluster/", f"run/{one}/"):
                if path:
                    await watched.page.goto(page.root + path)
                await expect(watched.page.locator("h1")).to_be_visible()
                await are_shown(watched.page, TOKYO, "local time")
            await expect(other.locator("#timeline svg")).to_contain_text(text(r"local time, \d+s"))
            parts = await are_shown(other, TOKYO, "local time")
            assert {"fresh", "head", "timeline", "events", "why"} <= parts
            assert any("@" in each for each in parts), "lines of the log"
            tips = await other.locator("#timeline title").all_text_contents()
            assert [each for each in tips if "began" in each and each.endswith("local time")] == tips


async def are_shown(page: Page, shift: timedelta, zone: str) -> set[str]:
    """All times of the page, also those under the pointer; the result: the ids of what they are in."""
    found: list[dict[str, Any]] = await page.locator("[datetime]").evaluate_all(TIMES)
    for each in found:
        at = datetime.fromisoformat(each["at"]) + shift
        whole, clock = f"{at:%Y-%m-%d %H:%M:%S}", f"{at:%H:%M:%S}"
        if each["shows"] != "words":
            assert each["text"] == (clock if each["shows"] == "short" else whole), each
        assert each["title"] == f"{whole} {zone}", each
    body = page.locator("body")
    bare = await body.evaluate(
        "body => { const copy = body.cloneNode(true);"
        " copy.querySelectorAll('[datetime], pre').forEach(each => each.remove()); return copy.textContent; }"
    )
    assert not CLOCK.search(bare), "a time that does not follow"
    return {each["part"] for each in found}


async def test_without_a_script_and_in_a_saved_file_all_times_are_in_utc_and_it_is_said(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "train.py").write_text("print('Step: 1, loss: 0.5')\n")
    assert tfyard("run", "train.py", "-q", cwd=tmp_path).code == 0
    with served(tmp_path, "--local") as page:
        plain = {"java_script_enabled": False, "timezone_id": "Asia/Tokyo"}
        async with browser(pytestconfig) as program, window(program, **plain) as watched:
            await watched.page.goto(page.address)
            await watched.page.get_by_role("link", name=text("^train-")).click()
            await expect(watched.page.get_by_role("banner")).to_contain_text("Times are in UTC")
            for each in await watched.page.locator("[datetime]").evaluate_all(TIMES):
                at = datetime.fromisoformat(each["at"])
                assert (
                    each["text"] in (f"{at:%Y-%m-%d %H:%M:%S}", f"{at:%H:%M:%S}") or each["shows"] == "words"
                )
            async with watched.page.expect_download() as saving:
                await watched.page.get_by_role("link", name="Save this page as one file").click()
            saved = (await (await saving.value).path()).read_text()
            assert "times are in UTC" in saved
