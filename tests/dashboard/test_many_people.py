"""The page in the cluster on a real apiserver: people with different permissions, and what must not get from one
to the other, nor into logs, addresses or HTML."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from tests.cli.running import tfyard
from tests.dashboard.many import (
    EDIT,
    FORWARD,
    PODS,
    READ,
    Many,
    Reader,
    account,
    add_job,
    add_namespace,
    many,
)
from tfyard.dashboard import proxies
from tfyard.errors import Usage
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster


class Lab(Struct):
    """Two teams: anna may change the jobs of hers, ben may only look at those of his."""

    plane: ControlPlane
    page: Many
    said: list[str]
    of_anna: str
    of_ben: str
    anna: str
    ben: str

    def signed_in(self, token: str, namespaces: str = "") -> Reader:
        reader = self.page.reader()
        assert reader.sign_in(token, namespaces).status == 303
        return reader


@pytest.fixture(scope="module")
def lab(_control_plane: ControlPlane, crds: None) -> Iterator[Lab]:
    plane, said = _control_plane, list[str]()
    teams = add_namespace(plane), add_namespace(plane)
    for team, job in zip(teams, ("anna-trains", "ben-trains"), strict=True):
        add_job(plane, team, job)
    anna, ben = (
        account(plane, teams[0], "anna", [EDIT, PODS, FORWARD]),
        account(plane, teams[1], "ben", [READ]),
    )
    with many(plane.kubeconfig, said=said) as page:
        yield Lab(plane, page, said, *teams, anna, ben)
    assert not [token for token in (anna, ben) if token in "".join(said)]


def test_each_sees_the_jobs_that_they_may_see_and_buttons_say_which_permission_is_missing(lab: Lab) -> None:
    anna, ben = lab.signed_in(lab.anna), lab.signed_in(lab.ben)
    for reader, own, other in ((anna, "anna-trains", "ben-trains"), (ben, "ben-trains", "anna-trains")):
        assert other not in reader.until_shown("", own)
    theirs = f"job/{lab.of_anna}/anna-trains/"
    assert anna.get(theirs).status == 200
    assert ben.get(theirs).status == 403
    page = ben.until_shown(f"job/{lab.of_ben}/ben-trains/", "you may not")
    assert f"you may not patch tfjobs in the namespace {lab.of_ben}" in page
    assert not re.search(r'href="do/(stop|delete|scale)"', page)
    ben.ask("POST", f"job/{lab.of_ben}/ben-trains/do/delete")
    with SyncClient(lab.plane.admin) as client:
        assert client.send(requests.get(TFJOBS.path(lab.of_ben, "ben-trains")))


def test_a_comparison_needs_the_permission_to_read_each_of_its_jobs(lab: Lab) -> None:
    anna, ben = lab.signed_in(lab.anna), lab.signed_in(lab.ben)
    add_job(lab.plane, lab.of_anna, "second")
    both = f"job={lab.of_anna}/anna-trains&job={lab.of_anna}/second"
    assert ">Compare <small>2 jobs" in anna.get(f"compare?{both}").text
    for path in (f"compare?{both}", f"compare.csv?job={lab.of_ben}/ben-trains&{both}"):
        refused = ben.get(path)
        assert (refused.status, "cannot get resource" in refused.text) == (403, True)
    assert anna.get("compare?job=/a&job=/b").status == 404, "there are no runs of a machine"


def test_what_one_may_do_is_done_with_their_own_token(lab: Lab) -> None:
    add_job(lab.plane, lab.of_anna, "goes")
    anna = lab.signed_in(lab.anna)
    anna.until_shown("", "goes")
    assert anna.ask("POST", f"job/{lab.of_anna}/goes/do/stop").status == 303
    with SyncClient(lab.plane.admin) as client:
        found = client.send(requests.get(TFJOBS.path(lab.of_anna, "goes")))
    assert found["spec"]["runPolicy"]["suspend"] is True


def test_a_namespace_that_one_may_not_read_says_so_and_list_of_namespaces_is_never_needed(lab: Lab) -> None:
    anna = lab.signed_in(lab.anna, f"{lab.of_anna}, {lab.of_ben}")
    page = anna.until_shown("", "anna-trains", "cannot list resource")
    assert f"namespace {lab.of_ben}" in page
    assert "ben-trains" not in page
    assert anna.ask("POST", "namespaces", {"namespaces": lab.of_anna}).status == 303
    assert f"namespace {lab.of_ben}" not in anna.until_shown("", "anna-trains")
    wrong = anna.ask("POST", "namespaces", {"namespaces": "Lab, über"})
    assert (wrong.status, "Lab, über: no name of a namespace" in wrong.text) == (400, True)


def test_headers_that_pretend_to_be_somebody_change_nothing(lab: Lab) -> None:
    ben = lab.signed_in(lab.ben)
    pretends = {
        "Impersonate_User": "system:admin",
        "Impersonate_Group": "system:masters",
        "X_Remote_User": "anna",
    }
    page = ben.get(f"job/{lab.of_anna}/anna-trains/", **pretends)
    assert page.status == 403
    stranger = lab.page.reader(**pretends)
    assert stranger.get().status == 401


def test_a_token_of_a_proxy_needs_no_cookie_and_wins_over_one(lab: Lab) -> None:
    proxied = lab.page.reader(Authorization=f"Bearer {lab.ben}")
    assert "ben-trains" in proxied.until_shown("", "ben-trains")
    assert not proxied.cookies
    proxied.cookies = lab.signed_in(lab.anna).cookies
    assert "anna-trains" not in proxied.until_shown("", "ben-trains")
    refused = lab.page.reader(Authorization="Bearer nonsense").get()
    assert (refused.status, "does not accept the token" in refused.text) == (401, True)


@pytest.mark.parametrize(
    "path", ["", "live", "cluster/", "job/a/b/", "job/a/b/log", "do/stop?job=a/b", "nothing"]
)
def test_nothing_is_told_before_somebody_has_signed_in(lab: Lab, path: str) -> None:
    for cookie in ("", "guessed"):
        reader = lab.page.reader()
        reader.cookies = {"tfyard-dashboard": cookie} if cookie else {}
        answer = reader.get(path)
        assert (answer.status, 'name="token"' in answer.text) == (401, True)


@pytest.mark.parametrize("token", ["", "nonsense", "a b", "x\r\nImpersonate-User: admin", "ü", "x" * 20_000])
def test_a_token_that_the_cluster_does_not_accept_is_refused_in_words(lab: Lab, token: str) -> None:
    reader = lab.page.reader()
    answer = reader.sign_in(token)
    assert (answer.status, "does not accept this token" in answer.text) == (401, True)
    assert not reader.cookies


def test_the_token_is_in_no_page_no_address_and_no_cookie_and_goes_with_signing_out(lab: Lab) -> None:
    anna = lab.signed_in(lab.anna)
    pages = [anna.get(path) for path in ("", "cluster/", f"job/{lab.of_anna}/anna-trains/", "nothing")]
    shown = "".join(f"{each.text}{each.headers}" for each in pages) + "".join(anna.cookies.values())
    assert lab.anna not in shown
    assert lab.anna.split(".")[2] not in shown
    kept = anna.cookies["tfyard-dashboard"]
    answer = lab.page.reader().sign_in(lab.anna)
    cookie = next(each for each in answer.headers.get_all("Set-Cookie", []) if "tfyard-dashboard=" in each)
    assert {"HttpOnly", "SameSite=Strict"} == set(cookie.split("; ")[1:]), (
        "without https, and for its own path"
    )
    assert anna.ask("POST", "sign-out").status == 303
    again = lab.page.reader()
    again.cookies = {"tfyard-dashboard": kept}
    assert again.get().status == 401


def test_changes_from_other_sites_and_other_names_are_refused(lab: Lab) -> None:
    anna = lab.signed_in(lab.anna)
    foreign = anna.ask("POST", f"job/{lab.of_anna}/anna-trains/do/delete", Origin="http://evil.example")
    assert foreign.status == 403
    assert anna.get(Host="evil.example").status == 403
    assert lab.page.reader().ask("POST", "sign-in", Origin="http://evil.example").status == 403


def test_tensorboard_and_notebooks_are_commands_here_and_runs_of_a_machine_do_not_exist(lab: Lab) -> None:
    anna = lab.signed_in(lab.anna)
    lines = [
        f"<code>tfyard {word} anna-trains -n {lab.of_anna}</code>" for word in ("tensorboard", "notebook")
    ]
    page = anna.until_shown(f"job/{lab.of_anna}/anna-trains/", *lines)
    assert 'action="do/tensorboard"' not in page
    answer = anna.ask("POST", f"job/{lab.of_anna}/anna-trains/do/tensorboard")
    assert (answer.status, f"tfyard tensorboard anna-trains -n {lab.of_anna}" in answer.text) == (409, True)
    assert anna.get("run/anything/").status == 404


def test_it_lives_for_probes_without_a_token(lab: Lab) -> None:
    assert lab.page.reader().get("healthz").text == "ok\n"


def test_to_listen_beyond_this_machine_without_signing_in_is_refused(tmp_path: Path) -> None:
    done = tfyard("dashboard", "--bind", "0.0.0.0:0", cwd=tmp_path)
    assert (done.code, "--bind needs --in-cluster: then everybody signs in" in done.err) == (2, True)
    mixed = tfyard("dashboard", "--in-cluster", "--local", "--as", "anna", cwd=tmp_path)
    assert (mixed.code, "--local, --as cannot be used with --in-cluster" in mixed.err) == (2, True)
    with pytest.raises(Usage, match=r"--trust-proxy nginx, 10\.0\.0\.0/99: no address or network"):
        proxies.read(["nginx", "10.0.0.0/8", "10.0.0.0/99"])
