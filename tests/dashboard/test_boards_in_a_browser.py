"""TensorBoard and Jupyter opened by their buttons, in a real browser. Those of jobs on a cluster are pressed in
tests/cluster/test_boards.py."""

from pathlib import Path

import pytest
from playwright.async_api import Error, expect

from tests.cli.running import tfyard
from tests.cli.test_tensorboard import JOB, WRITE
from tests.dashboard.browser import Watched, browser, text, window
from tests.dashboard.served import served

STARTS = 180_000
"""Milliseconds: it imports TensorFlow, or waits for a pod."""


async def opened_by_its_button(watched: Watched, label: str) -> str:
    """The address of what the button has opened."""
    await watched.page.get_by_role("button", name=label, exact=True).click()
    link = watched.page.locator(".opened", has_text=text(label)).get_by_role("link")
    await expect(link).to_be_visible(timeout=STARTS)
    await expect(watched.page.locator("p.line", has_text=text(f"tfyard {label.lower()} "))).to_be_visible()
    return str(await link.get_attribute("href"))


async def closed_by_its_button(watched: Watched, label: str, url: str) -> None:
    """Nothing listens there any more."""
    await watched.page.get_by_role("button", name=f"Close {label}").click()
    await expect(watched.page.locator(".opened", has_text=text(label))).to_have_count(0)
    other = await watched.context.new_page()
    with pytest.raises(Error, match="ERR_CONNECTION_REFUSED"):
        await other.goto(url)
    await other.close()


async def has_the_loss(watched: Watched, url: str) -> bool:
    board = await watched.context.new_page()
    answer = await board.goto(f"{url}data/plugin/scalars/tags")
    assert answer
    told = await answer.text()
    await board.close()
    return "loss" in told


@pytest.mark.long
@pytest.mark.tensorflow
async def test_tensorboard_of_a_run_is_opened_and_closed_on_its_page(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "write.py").write_text(WRITE)
    (tmp_path / "job.yaml").write_text(JOB)
    assert tfyard("run", "job.yaml", "-q", cwd=tmp_path).code == 0
    with served(tmp_path, "--local") as page:
        async with browser(pytestconfig) as program, window(program) as watched:
            await watched.page.goto(page.address)
            await watched.page.get_by_role("link", name=text("^t-")).click()
            url = await opened_by_its_button(watched, "TensorBoard")
            assert await has_the_loss(watched, url)
            await closed_by_its_button(watched, "TensorBoard", url)
