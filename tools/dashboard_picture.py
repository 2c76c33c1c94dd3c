"""Photographs the page for the docs, in Debian's chromium.

tfyard dashboard                                     # where some jobs run, wait and have failed
python -m tools.dashboard_picture ADDRESS docs/images/dashboard.png [PATH] [WIDTHxHEIGHT]
"""

import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tools import browser

READ = 12.0
"""Seconds until the details of all jobs have been read."""


def photograph(address: str, picture: Path, below: str, size: tuple[int, int]) -> None:
    with sync_playwright() as playwright:
        program = playwright.chromium.launch(executable_path=browser.browser(), args=list(browser.ARGUMENTS))
        page = program.new_page(viewport={"width": size[0], "height": size[1]})
        page.goto(address)
        page.goto(address.partition("?")[0] + below)
        time.sleep(READ)
        page.screenshot(path=picture)
        program.close()


if __name__ == "__main__":
    address, picture, *rest = sys.argv[1:]
    below = rest[0] if rest else ""
    width, _, height = (rest[1] if len(rest) > 1 else "1180x600").partition("x")
    photograph(address, Path(picture), below, (int(width), int(height)))
