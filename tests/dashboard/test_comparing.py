"""The page Compare, by plain requests: it says what `tfyard compare` says, and loses nobody in bad addresses."""

import csv
import html
import io
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from msgspec import Struct

from tests.cli.running import tfyard
from tests.dashboard.served import served
from tests.dashboard.test_entering import Client
from tests.dashboard.test_jobs_in_a_browser import configured
from tests.remote.acting.test_actions import Yard, yard

__all__ = ["yard"]
pytestmark = pytest.mark.processes

HOSTILE = "<script>alert(1)</script>"
TRAIN = """
import sys
rate = float(sys.argv[2])
for step in range(1, 30):
    print(f"step {step} loss {1 / (1 + rate * step):.4f}")
"""


class Compared(Struct):
    folder: Path
    client: Client
    names: list[str]
    """Runs of one program: rates 0.1, 0.3 and 0.5."""

    def show(self, *names: str) -> str:
        answer = self.client.ask("GET", f"{self.client.page.base}/compare{query(names)}")
        assert answer.status == 200, answer.text
        return answer.text


def query(names: tuple[str, ...]) -> str:
    return f"?{urlencode([('job', f'/{name}') for name in names])}"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compared]:
    folder = tmp_path_factory.mktemp("compared")
    (folder / "train.py").write_text(TRAIN)
    for rate in ("0.1", "0.3", "0.5"):
        words = ("--rate", rate, "--note", HOSTILE) if rate == "0.5" else ("--rate", rate)
        assert tfyard("run", "train.py", "-q", "--", *words, cwd=folder).code == 0
    with served(folder, "--local") as page:
        yield Compared(
            folder, Client(page), sorted(each.name for each in (folder / ".tfyard/runs").iterdir())
        )


def cells(page: str, row: str) -> list[str]:
    (found,) = re.findall(rf'<th scope="row">{re.escape(row)}</th>(.*?)</tr>', page)
    texts = (re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", found))
    return [html.unescape(text) for text in texts]


def test_what_differs_is_first_then_metrics_then_curves_and_all_of_it_as_the_terminal_says_it(
    three: Compared,
) -> None:
    page = three.show(*three.names)
    places = [page.index(words) for words in (">Parameters<", ">Metrics<", ">Job<", ">Curves<")]
    assert places == sorted(places)
    told = tfyard("compare", *(f"run/{name}" for name in three.names), "-o", "csv", cwd=three.folder).out
    header, *rows = list(csv.reader(io.StringIO(told)))
    assert header[2:] == three.names
    assert {row[0] for row in rows} == {"job", "parameters", "metrics"}
    steps = {row[1].removesuffix(" at step"): row[2:] for row in rows if row[1].endswith(" at step")}
    assert steps
    for section, name, *values in rows:
        if name.endswith(" at step"):
            continue  # on the page, beside the value
        at = [f" at step {step}" for step in steps[name]] if section == "metrics" else [""] * len(values)
        assert cells(page, name) == [f"{value}{step}" for value, step in zip(values, at, strict=True)], name
    answer = three.client.ask("GET", f"{three.client.page.base}/compare.csv{query(tuple(three.names))}")
    assert (answer.text, "attachment" in answer.headers["Content-Disposition"]) == (told, True)
    line = re.search(r'<p class="line"><code>(tfyard compare .*?)</code>', page)
    assert line
    assert tfyard(*line[1].split()[1:], "-o", "csv", cwd=three.folder).out == told


def test_any_job_can_be_made_the_baseline_or_left_out_by_an_address(three: Compared) -> None:
    first, second, third = three.names
    page = three.show(first, second, third)
    pins = re.findall(r'href="(\?[^"]*)">Make it the baseline<span class="hidden">: (\S+)</span>', page)
    assert [name for _, name in pins] == [second, third]
    assert html.unescape(pins[1][0]) == query((third, first, second))
    assert page.count('class="c0 baseline"') >= 1
    assert 'class="c1 baseline"' not in page
    assert cells(three.show(third, first), "rate") == ["0.5", "0.1"]
    assert ">Leave out<" not in three.show(first, second)
    left_out = re.findall(r'href="([^"]*)">Leave out<span class="hidden">: (\S+)</span>', page)
    assert html.unescape({name: to for to, name in left_out}[second]) == query((first, third))


def test_the_page_of_a_job_leads_to_its_comparison_with_the_one_before_it(three: Compared) -> None:
    _, second, third = three.names
    job = three.client.ask("GET", f"{three.client.page.base}/run/{third}/").text
    (to,) = re.findall(r'href="\.\./\.\./(compare\?[^"]*)"', job)
    page = three.client.ask("GET", f"{three.client.page.base}/{html.unescape(to)}").text
    assert cells(page, "rate") == ["0.3", "0.5"]
    assert re.findall(r'<a href="\./run/([^"]*)/">', page) == [second, third]


def test_values_that_others_wrote_are_text(three: Compared) -> None:
    page = three.show(*three.names)
    assert cells(page, "note") == ["", "", HOSTILE]
    assert HOSTILE not in page


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("", 409, "no job is chosen"),
        ("?job=mnist", 400, "'mnist' is no job: NAMESPACE/NAME is a TFJob"),
        ("?job=/", 400, "is no job"),
        ("?job=/nope&job=/..%2f..%2f&job=/none", 404, "run 'none' not found"),
        (f"?{'&'.join(f'job=/r{turn}' for turn in range(21))}", 400, "21 jobs: at most 20"),
    ],
)
def test_a_comparison_that_is_not_possible_says_why(
    three: Compared, query: str, status: int, words: str
) -> None:
    for page in ("compare", "compare.csv"):
        answer = three.client.ask("GET", f"{three.client.page.base}/{page}{query}")
        assert (answer.status, words in html.unescape(answer.text)) == (status, True), answer.text


def test_the_first_of_a_name_has_none_before_it(three: Compared) -> None:
    answer = three.client.ask("GET", f"{three.client.page.base}/compare{query((three.names[0],))}")
    assert (answer.status, "there is no job before it to compare it with" in answer.text) == (400, True)


@pytest.mark.cluster
def test_a_job_of_a_cluster_is_compared_with_a_run_here(yard: Yard, three: Compared, tmp_path: Path) -> None:
    yard.finished("mnist")
    config = configured(yard.plane, yard.namespace, tmp_path)
    with served(three.folder, KUBECONFIG=config) as page:
        client = Client(page)
        job = urlencode({"job": f"{yard.namespace}/mnist"})
        text = client.ask("GET", f"{page.base}/compare{query((three.names[0],))}&{job}").text
    assert cells(text, "place") == ["this machine", f"the namespace {yard.namespace}"]
    assert cells(text, "rate") == ["0.1", ""]
    assert f'<a href="./job/{yard.namespace}/mnist/">mnist</a>' in text
    assert "its code is unknown: there is no ConfigMap mnist-record" in text
    assert f"tfyard compare run/{three.names[0]} mnist -n {yard.namespace}" in text
