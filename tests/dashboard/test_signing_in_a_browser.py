"""Signing in at the page in the cluster, in a real browser: two people in two windows."""

import asyncio

import pytest
from playwright.async_api import expect

from tests.dashboard.browser import Watched, browser, window
from tests.dashboard.many import EDIT, PODS, READ, Many, account, add_job, add_namespace, many
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster


async def sign_in(watched: Watched, page: Many, token: str) -> None:
    await watched.page.goto(f"http://{page.host}/")
    assert await watched.broken_rules() == []
    await watched.page.get_by_label("Token").fill(token)
    await watched.page.get_by_role("button", name="Sign in").click()


async def test_two_people_see_their_own_jobs_and_signing_out_ends_an_open_page(
    control_plane: ControlPlane, crds: None, pytestconfig: pytest.Config
) -> None:
    teams = [await asyncio.to_thread(add_namespace, control_plane) for _ in range(2)]
    jobs = ("anna-trains", "ben-trains")
    for team, job in zip(teams, jobs, strict=True):
        await asyncio.to_thread(add_job, control_plane, team, job)
    anna = await asyncio.to_thread(account, control_plane, teams[0], "anna", [EDIT, PODS])
    ben = await asyncio.to_thread(account, control_plane, teams[1], "ben", [READ])
    with many(control_plane.kubeconfig) as page:
        async with (
            browser(pytestconfig) as program,
            window(program, 401) as of_anna,
            window(program, 401, viewport={"width": 400, "height": 800}) as of_ben,
        ):
            for watched, token, job in ((of_anna, anna, jobs[0]), (of_ben, ben, jobs[1])):
                await sign_in(watched, page, token)
                await expect(watched.page.get_by_role("link", name=job)).to_be_visible()
                assert await watched.page.get_by_role("link", name="-trains").count() == 1
                assert await watched.broken_rules() == []
            assert not await of_ben.is_too_wide()
            await of_ben.page.get_by_role("link", name=jobs[1]).click()
            await expect(of_ben.page.get_by_role("button", name="Delete")).to_be_disabled()
            await expect(of_anna.page.locator("#who summary")).to_contain_text("anna")
            other = await of_anna.context.new_page()
            await other.goto(f"http://{page.host}/")
            await other.locator("#who summary").click()
            await other.get_by_role("button", name="Sign out").click()
            await expect(of_anna.page.get_by_label("Token")).to_be_visible()
