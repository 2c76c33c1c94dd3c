"""The page Compare in a real browser: jobs are chosen in the list; curves say their values; for everybody."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.cli.running import tfyard
from tests.dashboard.browser import browser, text, window
from tests.dashboard.served import served
from tests.dashboard.test_comparing import TRAIN

pytestmark = pytest.mark.processes


async def test_jobs_that_are_chosen_in_the_list_are_compared_and_one_of_them_is_pinned(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    for rate in ("0.1", "0.3", "0.5"):
        assert tfyard("run", "train.py", "-q", "--", "--rate", rate, cwd=tmp_path).code == 0
    names = sorted(each.name for each in (tmp_path / ".tfyard/runs").iterdir())
    with served(tmp_path, "--local") as page:
        async with browser(pytestconfig) as program, window(program) as watched:
            await watched.page.goto(page.address)
            for name in names:
                await watched.page.get_by_role("checkbox", name=text(f"Choose {name}$")).check()
            await watched.page.get_by_role("button", name="Compare").click()
            await expect(watched.page.get_by_role("heading", level=1)).to_contain_text("Compare 3 jobs")
            await values_are_under_the_pointer(watched.page, names)
            await one_is_pinned(watched.page, names[0])
            await one_is_left_out(watched.page, names[1])
            compared = watched.page.url
            async with watched.page.expect_download() as saved:
                await watched.page.get_by_role("link", name="All of this as CSV").click()
            told = (await (await saved.value).path()).read_text()
            assert f"section,name,{names[0]},{names[2]}" in told
            cookies = await watched.context.storage_state()
            for scheme, width in (("light", 1280), ("dark", 400)):
                view = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
                async with window(program, storage_state=cookies, **view) as other:
                    await other.page.goto(compared)
                    await expect(other.page.get_by_role("heading", name="Curves")).to_be_visible()
                    assert await other.broken_rules() == []
                    assert not await other.is_too_wide()


async def values_are_under_the_pointer(page: Page, names: list[str]) -> None:
    """Those of all jobs, at one step."""
    mark = page.locator(".chart .mark").nth(3)
    await mark.locator("rect").hover(force=True)
    for name in names:
        said = mark.locator("text").filter(has_text=text(rf"^{name} \d+: 0\.\d+$"))
        await expect(said).to_be_visible()


async def one_is_pinned(page: Page, name: str) -> None:
    """The list is newest first, so the baseline was another."""
    await page.get_by_role("link", name=text(rf"baseline\s*: {name}$")).click()
    first = page.get_by_role("columnheader").first
    await expect(first).to_contain_text(name)
    await expect(first).to_contain_text("baseline")
    await expect(page.get_by_role("row", name=text("^rate")).get_by_role("cell").first).to_have_text("0.1")


async def one_is_left_out(page: Page, name: str) -> None:
    await page.get_by_role("link", name=text(rf"Leave out\s*: {name}$")).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("2 jobs")
    left = page.get_by_role("columnheader").get_by_role("link", name=name, exact=True)
    await expect(left).to_have_count(0)
