"""Photographs the page for the docs, in Debian's chromium: each picture with its path below the page and its size.

tfyard dashboard                                     # where some jobs run, wait and have failed
python -m tools.dashboard_picture ADDRESS docs/images/dashboard.png,,1240x700 docs/images/job.png,PATH,1240x1050
"""

import sys
import time
from collections.abc import Sequence

from playwright.sync_api import sync_playwright

from tools import browser

READ = 12.0
"""Seconds until the details of all jobs have been read."""


def photograph(address: str, pictures: Sequence[str]) -> None:
    """The address opens the page once, so all pictures are made in one browser."""
    with sync_playwright() as playwright:
        program = playwright.chromium.launch(executable_path=browser.browser(), args=list(browser.ARGUMENTS))
        page = program.new_page()
        page.goto(address)
        for each in pictures:
            picture, path, size = each.split(",")
            width, height = map(int, size.split("x"))
            page.set_viewport_size({"width": width, "height": height})
            page.goto(address.partition("?")[0] + path)
            time.sleep(READ)
            page.screenshot(path=picture)
        program.close()


if __name__ == "__main__":
    photograph(sys.argv[1], sys.argv[2:])
