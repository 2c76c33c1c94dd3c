"""The page of jobs on a cluster, in a real browser and on a real control plane: what a button does is looked up
there. No operator runs, so statuses are written by hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.async_api import Browser, Page, expect

from tests.cli.test_get import running
from tests.dashboard.browser import Watched, browser, text, window
from tests.dashboard.served import Served, served
from tests.remote.acting.test_actions import AT, Yard, yard
from tfyard.kube import NotFound, kubeconfig, requests
from tfyard.kube.requests import TFJOBS
from tfyard.model import Manifest
from tfyard.model.names import DELETED_BY_TTL, QUEUE_NAME
from tfyard.model.origin import Origin
from tfyard.remote.reading import job_records
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.testing import ControlPlane

__all__ = ["yard"]
pytestmark = pytest.mark.cluster


def configured(plane: ControlPlane, namespace: str, folder: Path, user: str = "") -> str:
    """The kubeconfig of a user in this namespace."""
    access = plane.access(user) if user else plane.admin
    path = folder / f"{user or 'admin'}.yaml"
    path.write_text(kubeconfig.dump(replace(access, namespace=namespace)))
    return str(path)


@asynccontextmanager
async def seen(program: Browser, page: Served, *expected: int) -> AsyncIterator[Watched]:
    async with window(program, *expected) as watched:
        await watched.page.goto(page.address)
        yield watched


async def test_each_action_changes_the_job_on_the_cluster_and_the_page_follows(
    yard: Yard, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    mnist = yard.job("mnist")
    yard.pod(mnist, "worker", 0)
    config = configured(yard.plane, yard.namespace, tmp_path)
    with served(tmp_path, KUBECONFIG=config) as page:
        async with browser(pytestconfig) as program, seen(program, page, 410) as watched:
            await list_follows_the_cluster(watched.page, yard, mnist)
            await job_is_scaled(watched.page, yard, mnist)
            await tasks_are_restarted(watched.page, yard)
            await job_is_stopped_and_resumed(watched.page, yard, mnist)
            await job_is_run_again_with_other_values(watched.page, yard)
            await several_are_deleted(watched.page, yard, page)
            await cluster_is_examined(watched.page, page)


def spec(yard: Yard, found: StoredTFJob) -> Manifest:
    known: Manifest = yard.now(found).manifest["spec"]
    return known


async def list_follows_the_cluster(page: Page, yard: Yard, mnist: StoredTFJob) -> None:
    row = page.get_by_role("row", name=text("mnist"))
    await expect(row).to_contain_text("Pending")
    yard.status(mnist, **running())
    await expect(row).to_contain_text("Running")
    await expect(row).to_contain_text("worker 2/2")
    await expect(page.locator("#fresh")).to_contain_text("live")
    await page.get_by_role("link", name="mnist").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("mnist")


async def job_is_scaled(page: Page, yard: Yard, mnist: StoredTFJob) -> None:
    await page.get_by_role("link", name="Scale").click()
    await page.get_by_label("worker").fill("3")
    await page.get_by_role("button", name="Show the difference").click()
    await expect(page.locator(".difference .comes")).to_contain_text("replicas: 3")
    assert spec(yard, mnist)["tfReplicaSpecs"]["Worker"]["replicas"] == 2
    await expect(page.locator("p.line code")).to_contain_text("tfyard scale mnist worker=3")
    await page.get_by_role("button", name="Scale").click()
    await expect(page.get_by_role("status")).to_contain_text("mnist scaled")
    assert spec(yard, mnist)["tfReplicaSpecs"]["Worker"]["replicas"] == 3


async def tasks_are_restarted(page: Page, yard: Yard) -> None:
    await page.get_by_role("link", name="Restart tasks").click()
    await page.get_by_label("worker-0").check()
    await page.get_by_role("button", name="Show what would happen").click()
    await expect(page.locator(".goes").first).to_contain_text("worker-0")
    await page.get_by_role("button", name="Restart tasks").click()
    await expect(page.get_by_role("status")).to_contain_text("restarted")
    assert yard.pods() == []


async def job_is_stopped_and_resumed(page: Page, yard: Yard, mnist: StoredTFJob) -> None:
    await page.get_by_role("link", name="Stop").click()
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_role("status")).to_contain_text("stopped")
    assert spec(yard, mnist)["runPolicy"]["suspend"] is True
    yard.status(mnist, phase="Suspended")
    await page.get_by_role("link", name="Resume").click()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_role("status")).to_contain_text("resumed")
    assert spec(yard, mnist)["runPolicy"]["suspend"] is False


async def job_is_run_again_with_other_values(page: Page, yard: Yard) -> None:
    await page.get_by_role("link", name="Rerun").click()
    await page.get_by_label(text("Environment")).fill("LR=0.1\nNAME=a b")
    await page.get_by_role("button", name="Show the difference").click()
    await expect(page.locator(".difference")).to_contain_text("LR")
    await expect(page.locator("p.line code")).to_contain_text("--env 'NAME=a b'")
    await page.get_by_role("button", name="Rerun").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("mnist-2")
    made = yard.client.send(requests.get(TFJOBS.path(yard.namespace, "mnist-2")))
    (container,) = made["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "LR", "value": "0.1"}, {"name": "NAME", "value": "a b"}]


async def several_are_deleted(page: Page, yard: Yard, served: Served) -> None:
    """The page of a job that is deleted while somebody looks stays, and says so."""
    await page.goto(served.root)
    for name in ("mnist", "mnist-2"):
        await page.get_by_role("checkbox", name=text(f"Choose {name}$")).check()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator("p.line code")).to_have_text(text("^tfyard delete mnist(-2)? mnist(-2)? -n "))
    await page.get_by_role("button", name="Delete 2 jobs").click()
    await expect(page.get_by_role("row", name=text("mnist"))).to_have_count(0)
    for name in ("mnist", "mnist-2"):
        with pytest.raises(NotFound):
            yard.client.send(requests.get(TFJOBS.path(yard.namespace, name)))
    answer = await page.goto(f"{served.root}job/{yard.namespace}/mnist/")
    assert answer
    assert answer.status == 410
    await expect(page.locator("#head")).to_contain_text(text("deleted .* ago; this is what was known of it"))


async def cluster_is_examined(page: Page, served: Served) -> None:
    await page.goto(f"{served.root}cluster/")
    await expect(page.get_by_role("row", name=text("server"))).to_contain_text("is Kubernetes v1.")
    await expect(page.get_by_role("row", name=text("no operator works"))).to_contain_text("tfyard install")


async def test_a_user_who_may_only_read_is_told_which_permission_is_missing_and_sees_nothing_of_others(
    yard: Yard, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    yard.status(yard.job("mnist"), **running())
    yard.may_read("jane")
    yard.client.send(requests.create(requests.EVENTS.path(yard.namespace), removed_by_ttl(yard)))
    config = configured(yard.plane, yard.namespace, tmp_path, "jane")
    with served(tmp_path, KUBECONFIG=config) as page:
        async with browser(pytestconfig) as program, seen(program, page) as watched:
            await watched.page.get_by_role("link", name="mnist").click()
            stop = watched.page.get_by_role("button", name="Stop")
            await expect(stop).to_be_disabled()
            await expect(watched.page.locator("#no-stop")).to_contain_text("you may not patch tfjobs")
            await expect(watched.page.locator("#no-stop code")).to_contain_text("kubectl create rolebinding")
            await watched.page.goto(f"{page.root}job/{yard.namespace}/mnist/do/delete")
            await expect(watched.page.locator(".preview .problem")).to_contain_text(
                "you may not delete mnist"
            )
            await expect(watched.page.get_by_role("button", name="Delete")).to_be_disabled()
    config = configured(yard.plane, yard.namespace, tmp_path)
    with served(tmp_path, KUBECONFIG=config) as page:
        async with browser(pytestconfig) as program, seen(program, page, 410) as watched:
            answer = await watched.page.goto(f"{page.root}job/{yard.namespace}/old/")
            assert answer
            assert answer.status == 410
            await expect(watched.page.get_by_role("main")).to_contain_text("its TTL has expired")


async def test_who_has_submitted_a_job_which_queue_holds_it_and_its_three_forms_are_there_for_everybody(
    yard: Yard, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    program = {"name": "tensorflow", "image": "example/mnist:1", "command": ["python", "train.py"]}
    roles = {"Worker": {"template": {"spec": {"containers": [program]}}}}
    policy = {"suspend": True}
    queued = yard.job("queued", {QUEUE_NAME: "team"}, runPolicy=policy, tfReplicaSpecs=roles)
    suspended = {"type": "Suspended", "status": "True", "reason": "TFJobSuspended", "message": "it waits"}
    yard.status(queued, phase="Suspended", conditions=[{**suspended, "lastTransitionTime": AT}])
    origin = Origin(submitter="anna@lab <b>", at=datetime.now(UTC))
    job_records.write(yard.client, queued, origin, "", pytest.fail)
    yard.status(yard.job("free"), **running())
    config = configured(yard.plane, yard.namespace, tmp_path)
    with served(tmp_path, KUBECONFIG=config) as page:
        async with browser(pytestconfig) as opened, seen(opened, page) as watched:
            await columns_are_chosen_by_the_address(watched.page, page)
            await watched.page.get_by_role("link", name="queued").click()
            await expect(watched.page.locator(".facts")).to_contain_text("anna@lab <b>")
            await expect(watched.page.locator("#why .cause")).to_contain_text("it waits for queue team")
            await forms_are_shown(watched.page)
            cookies, address = await watched.context.storage_state(), watched.page.url
            for scheme, width in (("light", 1280), ("dark", 400)):
                view = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
                async with window(opened, storage_state=cookies, **view) as other:
                    for path in (address, f"{address}do/scale", f"{page.root}cluster/", page.root):
                        await other.page.goto(path)
                        await expect(other.page.get_by_role("heading", level=1)).to_be_visible()
                        assert await other.broken_rules() == []
                        assert not await other.is_too_wide()


async def columns_are_chosen_by_the_address(page: Page, served: Served) -> None:
    row = page.get_by_role("row", name=text("queued"))
    await expect(row.locator(".queue")).to_have_text("team")
    await expect(row.locator(".owner")).to_have_text("anna@lab <b>")
    await page.goto(f"{served.root}?sort=queue&hide=owner")
    await expect(page.get_by_role("columnheader", name="Queue")).to_have_attribute("aria-sort", "ascending")
    await expect(page.get_by_role("row").nth(1)).to_contain_text("queued")
    await expect(page.get_by_role("columnheader", name="Owner")).to_have_count(0)
    await page.get_by_text("Columns").click()
    await page.get_by_role("link", name="Show Owner").click()
    await expect(page.get_by_role("columnheader", name="Owner")).to_be_visible()


async def forms_are_shown(page: Page) -> None:
    """What was sent, the objects that it stands for, and what the server has."""
    applied, rendered = page.locator("#spec-applied"), page.locator("#spec-rendered")
    await applied.locator("summary").click()
    await expect(applied.locator("pre")).to_contain_text("suspend: true")
    await expect(applied.locator("pre")).to_contain_text("replicas: 1")  # a default of the server
    await rendered.locator("summary").click()
    await expect(rendered.locator("pre")).to_contain_text("completionMode: Indexed")


def removed_by_ttl(yard: Yard) -> Manifest:
    about = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "old", "namespace": yard.namespace}
    message = "Deleted job: its TTL has expired"
    return {
        "metadata": {"name": "old.1"},
        "involvedObject": about,
        "reason": DELETED_BY_TTL,
        "message": message,
        "type": "Normal",
    }


async def test_a_lost_apiserver_is_told_with_the_time_until_it_is_back(
    yard: Yard, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    mnist = yard.job("mnist")
    config = configured(yard.plane, yard.namespace, tmp_path)
    with served(tmp_path, KUBECONFIG=config) as page:
        async with browser(pytestconfig) as program, seen(program, page) as watched:
            await expect(watched.page.locator("#fresh")).to_contain_text("live")
            yard.plane.stop("kube-apiserver")
            lost = text(r"as of \d\d:\d\d:\d\d; the watch was lost \d+s ago")
            await expect(watched.page.locator("#fresh")).to_contain_text(lost)
            await expect(watched.page.get_by_role("row", name=text("mnist"))).to_be_visible()
            yard.plane.restart("kube-apiserver")
            await expect(watched.page.locator("#fresh .lost")).to_have_count(0)
            yard.client.close()
            yard.status(mnist, **running())
            await expect(watched.page.get_by_role("row", name=text("mnist"))).to_contain_text("Running")
