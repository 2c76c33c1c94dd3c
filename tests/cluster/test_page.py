"""The page for people, as the chart installs it: everybody signs in with a token, and sees what that may see."""

import asyncio
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.async_api import expect

from tests.cluster.clusters import Cluster, until
from tests.cluster.jobs import Jobs
from tests.cluster.test_installation import box, has_succeeded, job, release
from tests.dashboard.browser import browser, more_than, text, window
from tests.dashboard.many import Reader
from tests.dashboard.served import served
from tests.helm import CHART, Helm

__all__ = ["box"]
pytestmark = [pytest.mark.cluster, pytest.mark.long]
PAGE = "tf-job-operator-page"
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


@contextmanager
def forwarded(cluster: Cluster, service: str) -> Iterator[str]:
    """Host and port of this machine, as docs/dashboard.md says it."""
    words = cluster.kubectl_command("-n", "tfyard", "port-forward", f"service/{service}", ":8080")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            found = re.match(r"Forwarding from (127\.0\.0\.1:\d+)", line)
            assert found, line
            yield found[1]
        finally:
            process.terminate()


def token_of(cluster: Cluster, namespace: str, role: str) -> str:
    """A token of a new ServiceAccount with this role of Kubernetes in its namespace."""
    words, name = ("-n", namespace), f"{role}er"
    cluster.kubectl("create", "serviceaccount", name, *words)
    account = f"--serviceaccount={namespace}:{name}"
    cluster.kubectl("create", "rolebinding", name, f"--clusterrole={role}", account, *words)
    return cluster.kubectl("create", "token", name, *words).strip()


def test_people_see_and_do_on_the_installed_page_what_their_token_may_and_its_pod_may_do_nothing(
    helm: Helm, box: Cluster
) -> None:
    release(helm, box, "install", str(CHART), "--set=page.enabled=true", "--timeout=5m")
    for team in ("team-a", "team-b"):
        box.kubectl("apply", "-n", team, "-f", "-", stdin=job(f"echo words of {team}; sleep 2"))
    views, edits = token_of(box, "team-a", "view"), token_of(box, "team-b", "edit")
    until(lambda: has_succeeded(box, "team-a") and has_succeeded(box, "team-b"))
    with forwarded(box, PAGE) as host:
        assert Reader(host).get().status == 401
        viewer, editor = Reader(host), Reader(host)
        assert viewer.sign_in(views, "team-a, team-b").status == 303
        assert editor.sign_in(edits).status == 303
        seen_by_a_viewer(viewer)
        done_by_an_editor(editor, box)
    (pod,) = box.get("pods", "-n", "tfyard", "-l", "app.kubernetes.io/component=page")["items"]
    name = pod["metadata"]["name"]
    account = f"--as=system:serviceaccount:tfyard:{pod['spec']['serviceAccountName']}"
    assert box.kubectl("auth", "can-i", "--list", account, "-n", "team-a").count("tfjobs") == 0
    mounted = box.kubectl("exec", "-n", "tfyard", name, "--", "ls", TOKENS)
    assert mounted.split() == ["ca.crt"]
    assert not re.search(re.escape(views) + "|" + re.escape(edits), box.kubectl("logs", "-n", "tfyard", name))
    release(helm, box, "uninstall")
    until(lambda: box.get("pods", "-n", "tfyard")["items"] == [])


def seen_by_a_viewer(reader: Reader) -> None:
    """The jobs and logs of their namespace; of another, why not."""
    listed = reader.until_shown("", "job/team-a/train/", "Succeeded", "cannot list resource")
    assert "job/team-b/train/" not in listed
    page = reader.until_shown("job/team-a/train/", "words of team-a", "you may not delete tfjobs")
    assert 'href="do/delete"' not in page
    assert reader.get("job/team-b/train/").status == 403
    reader.ask("POST", "job/team-a/train/do/delete")
    assert reader.get("job/team-a/train/").status == 200


def done_by_an_editor(reader: Reader, cluster: Cluster) -> None:
    reader.until_shown("", "job/team-b/train/", "Succeeded")
    assert "tfyard delete train -n team-b" in reader.get("job/team-b/train/do/delete").text
    assert reader.ask("POST", "job/team-b/train/do/delete").status == 303
    until(lambda: not cluster.get("-n", "team-b", "tfjobs")["items"])
    assert len(cluster.get("-n", "team-a", "tfjobs")["items"]) == 1


COUNTS = """
name: counts
image: example/mnist:1
run: "i=0; while sleep 0.3; do i=$((i + 1)); echo turn $i loss 0.$i; done"
worker: 2
cpu: 50m
"""


async def test_an_open_page_follows_its_job_through_a_stop_and_a_resume_elsewhere_until_it_is_deleted(
    jobs: Jobs, pytestconfig: pytest.Config
) -> None:
    """By live logs, what tasks use, events and attempts of real pods; each line once."""
    jobs.submit(COUNTS)
    with served(jobs.folder, "-n", jobs.namespace, KUBECONFIG=str(jobs.cluster.kubeconfig)) as page:
        async with browser(pytestconfig) as program, window(program) as watched:
            await watched.page.goto(page.address)
            await watched.page.get_by_role("link", name="counts").click()
            lines = watched.page.locator("#lines li")
            for task in ("worker-0", "worker-1"):
                await more_than(lines.filter(has_text=task), 3)
            await expect(watched.page.locator("#timeline .name")).to_have_text(["worker-0", "worker-1"])
            await expect(watched.page.locator("#events")).to_contain_text("Created pod")
            if jobs.cluster.has_metrics:
                await expect(watched.page.locator("#uses")).to_contain_text(
                    text(r"\d+ [KM]B"), timeout=90_000
                )
            for command, state in (("stop", "Suspended"), ("resume", "Running")):
                done = await asyncio.to_thread(jobs.tfyard, command, "counts")
                assert done.code == 0, done.err
                await expect(watched.page.locator("#head .pill")).to_have_text(state, timeout=90_000)
            begins = lines.filter(has_text="worker-0").filter(has_text=text(r"turn 1 "))
            await expect(begins).to_have_count(2, timeout=90_000)
            await more_than(lines.filter(has_text="worker-1"), 3)
            ids = await watched.page.locator("#lines li[id]").evaluate_all("all => all.map(each => each.id)")
            assert len(ids) == len(set(ids))
            done = await asyncio.to_thread(jobs.tfyard, "delete", "counts", "--yes")
            assert done.code == 0, done.err
            await expect(watched.page.locator("#head")).to_contain_text("this is what was known of it then")
