"""Who is let in, and what is refused: by plain requests, which can say what no browser would."""

import html
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import jsonschema
import pytest
from msgspec import Struct

from tests.cli.running import tfyard
from tests.dashboard.served import Served, served

pytestmark = pytest.mark.processes


class Answer(Struct):
    status: int
    headers: http.client.HTTPMessage
    text: str


class Client:
    """A browser by hand, with the cookie of the user."""

    def __init__(self, page: Served) -> None:
        self.page = page
        self.entered = self.ask("GET", page.address.removeprefix(f"http://{page.host}"), cookie="")
        self.cookie = self.entered.headers["Set-Cookie"].partition(";")[0]

    def ask(self, method: str, path: str, *, cookie: str | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(self.page.host, timeout=60)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            known = self.cookie if cookie is None else cookie
            connection.request(method, path, headers={**given, **({"Cookie": known} if known else {})})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "train.py").write_text("print('Step: 1, loss: 0.5')")
    assert tfyard("run", "train.py", "-q", cwd=folder).code == 0
    with served(folder, "--local") as page:
        yield Client(page)


def test_the_token_of_the_address_becomes_a_cookie_that_no_script_no_other_site_and_no_other_path_gets(
    client: Client,
) -> None:
    entered = client.entered
    assert (entered.status, entered.headers["Location"]) == (303, "./")
    attributes = entered.headers["Set-Cookie"].split("; ")[1:]
    assert sorted(attributes) == ["HttpOnly", "SameSite=Strict"]  # without Path: that of the random address
    assert client.ask("GET", f"{client.page.base}/").status == 200
    again = client.ask("GET", client.page.address.removeprefix(f"http://{client.page.host}"), cookie="")
    assert again.status == 401


@pytest.mark.parametrize("path", ["/", "/live", "/cluster/", "/run/x/", "/run/x/log", "/do/stop", "/nothing"])
def test_nothing_is_answered_without_the_cookie(client: Client, path: str) -> None:
    for cookie in ("", "tfyard-dashboard=guessed"):
        assert client.ask("GET", client.page.base + path, cookie=cookie).status == 401
    assert client.ask("GET", "/", cookie="").status == 401


def test_other_names_of_this_machine_are_refused_so_no_foreign_page_can_pretend_to_be_it(
    client: Client,
) -> None:
    refused = client.ask("GET", f"{client.page.base}/", Host="evil.example")
    assert (refused.status, "--allow-host" in refused.text) == (403, True)
    port = client.page.host.partition(":")[2]
    assert client.ask("GET", f"{client.page.base}/", Host=f"localhost:{port}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_changes_are_accepted_from_the_page_itself_only(
    client: Client, method: str, headers: dict[str, str]
) -> None:
    refused = client.ask(method, f"{client.page.base}/do/delete", **headers)
    assert (refused.status, "only from the pages of this server" in refused.text) == (403, True)


def test_every_answer_forbids_to_load_anything_from_elsewhere(client: Client) -> None:
    for path in ("/", "/static/page.js", "/cluster/", "/nothing"):
        headers = client.ask("GET", client.page.base + path).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_all_addresses_in_a_page_are_relative(client: Client) -> None:
    (name,) = re.findall(r'href="run/([^"/]+)/"', client.ask("GET", f"{client.page.base}/").text)
    for path in ("/", f"/run/{name}/", f"/run/{name}/do/rerun", "/cluster/"):
        text = client.ask("GET", client.page.base + path).text
        found = re.findall(r'(?:href|src|action|formaction|data-live)="([^"]*)"', text)
        assert found
        assert [each for each in found if each.startswith(("/", "http"))] == []


def test_a_job_that_does_not_exist_and_an_action_that_is_not_possible_are_told_in_words(
    client: Client,
) -> None:
    missing = client.ask("GET", f"{client.page.base}/run/nope/")
    assert (missing.status, "nope" in missing.text) == (404, True)
    unknown = client.ask("GET", f"{client.page.base}/do/explode?job=/x")
    assert (unknown.status, "there is no action" in unknown.text) == (409, True)
    for method in ("GET", "POST"):
        own = {"Origin": f"http://{client.page.host}"} if method == "POST" else {}
        two = client.ask(method, f"{client.page.base}/do/tensorboard?job=/x&job=/y", **own)
        assert (two.status, "Traceback" in two.text) == (409, False), two.text
    asked = client.ask("GET", f"{client.page.base}/run/x/do/tensorboard")
    assert (asked.status, asked.headers["Location"]) == (303, "../../../run/x/")
    none = client.ask("GET", f"{client.page.base}/do/stop")
    assert (none.status, "no job is chosen" in none.text) == (409, True)


def test_programs_that_ask_for_json_are_told_in_json_what_is_wrong(client: Client) -> None:
    missing = client.ask("GET", f"{client.page.base}/run/nope/job.json")
    assert (missing.status, missing.headers["Content-Type"]) == (404, "application/json; charset=utf-8")
    assert "run 'nope' not found" in json.loads(missing.text)["error"]


def test_no_address_leads_out_of_the_folder_of_the_runs(client: Client, tmp_path: Path) -> None:
    """To the terminal, a path is a run, too."""
    (name,) = re.findall(r'href="run/([^"/]+)/"', client.ask("GET", f"{client.page.base}/").text)
    for path in (tmp_path, tmp_path / "..", Path(".tfyard/runs") / name, Path("..")):
        address = f"{client.page.base}/run/{quote(str(path), safe='')}/"
        for each in ("", "log", "file", "do/delete"):
            answer = client.ask("GET", address + each)
            assert "a job cannot have this name" in html.unescape(answer.text), address + each


def test_the_page_is_at_loopback_only_and_a_port_that_is_taken_is_told(
    client: Client, tmp_path: Path
) -> None:
    port = client.page.host.partition(":")[2]
    done = tfyard("dashboard", "--local", "--port", port, cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert f"port {port} of this machine cannot be used" in done.err


def test_the_json_that_programs_and_the_page_read_is_as_its_description_says(client: Client) -> None:
    described = json.loads(client.ask("GET", f"{client.page.base}/openapi.json").text)
    (run,) = json.loads(client.ask("GET", f"{client.page.base}/jobs.json").text)["jobs"]
    assert (run["state"], run["isOver"]) == ("Succeeded", True)
    for path, words in described["paths"].items():
        if "namespace" in path:
            continue
        text = client.ask("GET", client.page.base + path.format(name=run["name"]) + "?poll=1").text
        content = words["get"]["responses"]["200"]["content"]["application/json"]
        jsonschema.validate(json.loads(text), {**content["schema"], "components": described["components"]})


def test_a_job_can_be_saved_as_one_file_that_needs_nothing_else(client: Client) -> None:
    (run,) = json.loads(client.ask("GET", f"{client.page.base}/jobs.json").text)["jobs"]
    saved = client.ask("GET", f"{client.page.base}/run/{run['name']}/file")
    assert "attachment" in saved.headers["Content-Disposition"]
    assert "Step: 1, loss: 0.5" in saved.text
    assert len(saved.text) < 10_000_000
    assert re.findall(r'(?:href|src)="[^?#"]', saved.text) == []
    assert "<script" not in saved.text
    log = client.ask("GET", f"{client.page.base}/run/{run['name']}/log")
    assert re.fullmatch(r"\d{4}-\S+Z worker-0 │ Step: 1, loss: 0.5\n", log.text)
