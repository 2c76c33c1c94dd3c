"""A page that is saved as one file, and times in another zone: for tickets, and for readers elsewhere."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.cli.running import tfyard
from tests.dashboard.browser import browser, text, window
from tests.dashboard.served import served

pytestmark = pytest.mark.processes
LARGEST = 10_000_000
WRITES = """
import json, os, pathlib, time
me = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
def together(point):
    pathlib.Path(f"{point}-{me}").touch()
    while len(list(pathlib.Path().glob(f"{point}-*"))) < 3:
        time.sleep(0.05)
for line in range(2500):
    print(f"{line} of {me} <&\\">" + "&" * 1000)
together("flooded")
for step in range(40):
    print(f"Step: {step}, loss: {1 / (step + 1):.4f}")
print(f"the last of {me}", flush=True)
together("told")
"""


async def test_a_page_of_a_job_with_huge_logs_is_saved_whole_within_ten_megabytes(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "write.py").write_text(WRITES)
    words = ("--worker", "3", "--env", f"QUOTES={'<&' * 30_000}")
    assert tfyard("run", "write.py", *words, "-q", cwd=tmp_path).code == 0
    with served(tmp_path, "--local") as page:
        async with browser(pytestconfig) as program, window(program, timezone_id="Asia/Tokyo") as watched:
            await watched.page.goto(page.address)
            await watched.page.get_by_role("link", name=text("^write-")).click()
            async with watched.page.expect_download() as saving:
                await watched.page.get_by_role("link", name="Save this page as one file").click()
            file = await (await saving.value).path()
            assert LARGEST / 5 < file.stat().st_size < LARGEST
            await zone_is_changed(watched.page)
            asked: list[str] = []
            watched.page.on("request", lambda request: asked.append(request.url))
            moved = file.rename(tmp_path / "ticket.html")  # by its name, a browser knows what it is
            await watched.page.goto(moved.as_uri())
            await saved_page_has_everything(watched.page)
            assert asked == [moved.as_uri()], "it needs nothing else"


async def zone_is_changed(page: Page) -> None:
    """Between UTC and the reader's own, for all times of the page; it is remembered."""
    created = page.locator(".facts time").first
    told = datetime.fromisoformat(await created.inner_text()).replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - told) < timedelta(hours=1)
    line = page.locator("#lines time").last
    hour = int((await line.inner_text())[:2])
    await page.get_by_role("button", name="Times are in UTC").click()
    await expect(created).to_have_text(f"{told + timedelta(hours=9):%Y-%m-%d %H:%M:%S}")
    await expect(line).to_have_text(re.compile(f"^{(hour + 9) % 24:02}:"))
    await page.reload()
    await expect(created).to_have_text(f"{told + timedelta(hours=9):%Y-%m-%d %H:%M:%S}")
    await page.get_by_role("button", name="Times are in local time").click()
    await expect(created).to_have_text(f"{told:%Y-%m-%d %H:%M:%S}")


async def saved_page_has_everything(page: Page) -> None:
    lines = page.locator("#lines li")
    for task in range(3):
        await expect(lines.filter(has_text=f"the last of {task}")).to_have_count(1)
    await expect(page.locator(".log .past")).to_contain_text(text(r"[\d,]+ earlier lines are left out"))
    await expect(page.locator(".chart").first).to_be_visible()
    await expect(page.locator(".timeline")).to_be_visible()
    await expect(page.locator("#spec-given pre")).to_contain_text("worker: 3")
