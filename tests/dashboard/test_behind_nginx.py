"""The page behind a real nginx: under a sub-path, with a stream that is passed on or held back, and with headers
that are believed only if the proxy was configured."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.dashboard.browser import browser, more_than, text, window
from tests.dashboard.many import PODS, READ, Reader, account, add_job, add_namespace, many
from tests.dashboard.nginx import HOLDS_BACK, location, nginx
from tests.dashboard.served import served
from tests.dashboard.test_runs_in_a_browser import running
from tfyard.testing import ControlPlane

FORWARDED = (
    'proxy_set_header X-Forwarded-Prefix "/tools/"; proxy_set_header X-Forwarded-Proto https; '
    "proxy_set_header X-Forwarded-Host jobs.example;"
)


@pytest.mark.processes
async def test_runs_are_followed_under_a_sub_path_also_where_the_stream_is_held_back(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with running(tmp_path), served(tmp_path, "--local") as page:
        places = [("/lab/tfyard/", ""), ("/slow/", HOLDS_BACK)]
        locations = [location(path, f"{page.host}/", more) for path, more in places]
        with nginx(pytestconfig, tmp_path, *locations) as proxy:
            async with browser(pytestconfig) as program, window(program) as watched:
                token = page.address.removeprefix(f"http://{page.host}/")
                await watched.page.goto(f"http://{proxy}/lab/tfyard/{token}")
                await follow_a_stream(watched.page)
                (cookie,) = await watched.context.cookies()
                assert cookie.get("path") == f"/lab/tfyard{page.base}"
                await watched.context.add_cookies(
                    [
                        {
                            "name": "tfyard-dashboard",
                            "value": cookie.get("value", ""),
                            "url": f"http://{proxy}/slow/x",
                        }
                    ]
                )
                asked: list[str] = []
                watched.page.on("request", lambda request: asked.append(request.url))
                await watched.page.goto(f"http://{proxy}/slow{page.base}/")
                await follow_a_log(watched.page)
                assert [url for url in asked if "/slow/" in url and "poll=1" in url]
                await watched.page.get_by_role("link", name="Stop").click()
                await watched.page.get_by_role("button", name="Stop").click()
                await expect(watched.page.locator("#head .pill")).to_have_text("Stopped")


async def follow_a_stream(page: Page) -> None:
    """While the clock of the browser stands still, nothing is asked for again: what comes, comes by the stream."""
    await page.clock.install()
    await page.clock.pause_at(datetime.now() + timedelta(hours=1))
    await follow_a_log(page)
    await page.clock.resume()


async def follow_a_log(page: Page) -> None:
    await page.get_by_role("link", name=text("^train-")).click()
    lines = page.locator("#lines li")
    await more_than(lines, 0)
    await more_than(lines, await lines.count())


@pytest.mark.cluster
def test_only_configured_proxies_are_believed_and_one_that_authenticates_lets_in(
    control_plane: ControlPlane, crds: None, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    team = add_namespace(control_plane)
    add_job(control_plane, team, "seen")
    token = account(control_plane, team, "anna", [READ, PODS])
    hosts = ("--allow-host", "jobs.example")
    with (
        many(control_plane.kubeconfig, *hosts, "--trust-proxy", "127.0.0.0/8") as believing,
        many(control_plane.kubeconfig, *hosts, "--path", "/kept") as other,
        nginx(
            pytestconfig,
            tmp_path,
            location("/tools/", f"{believing.host}/", FORWARDED),
            location("/kept/", other.host, FORWARDED),
            location("/sso/", f"{believing.host}/", f'proxy_set_header Authorization "Bearer {token}";'),
        ) as proxy,
    ):
        assert attributes(Reader(proxy, "/tools/"), token, "https://jobs.example") == {
            *("HttpOnly", "SameSite=Strict", "Path=/tools/", "Secure")
        }
        kept = Reader(proxy, "/kept/")
        origin = f"http://{other.host}"  # nginx tells the page this name, and nobody believes the other one
        assert attributes(kept, token, origin) == {"HttpOnly", "SameSite=Strict"}
        assert "seen" in kept.until_shown("", "seen")
        assert Reader(proxy, "/kept/").ask("POST", "sign-in", Origin="https://jobs.example").status == 403
        assert "seen" in Reader(proxy, "/sso/").until_shown("", "seen", f"serviceaccount:{team}:anna")


def attributes(reader: Reader, token: str, origin: str) -> set[str]:
    """Those of the cookie that signing in gives."""
    answer = reader.ask("POST", "sign-in", {"token": token}, Origin=origin)
    assert (answer.status, answer.headers["Location"]) == (303, "./")
    (cookie,) = [
        each for each in answer.headers.get_all("Set-Cookie", []) if each.startswith("tfyard-dashboard=")
    ]
    return set(cookie.split("; ")[1:])
