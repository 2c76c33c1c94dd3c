"""What pages are made of: addresses, pictures, lines of logs. Everything that others wrote stays text."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest

from tfyard.dashboard import charts, commands, drawing, feed, jobs_page, log_lines
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.feed import Feed, LogLine
from tfyard.dashboard.jobs_page import JobsQuery
from tfyard.logs.lines import Lines, LogEvent, Start, Wanted
from tfyard.model.run_events import Metric
from tfyard.overview.attempts import Attempt
from tfyard.overview.progress import Progress
from tfyard.overview.waiting import WaitResult

EVIL = "<script>alert('&\"')</script>"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def progress(*values: float, task: str = "worker-0", name: str = "loss") -> Progress:
    made = Progress()
    for step, value in enumerate(values):
        made.note(Metric(task=task, values={name: value}, step=step), float(step))
    return made


def test_hostile_names_of_tasks_and_metrics_are_text_in_every_picture() -> None:
    made = progress(1, 0.5, task=EVIL, name=EVIL)
    (chart,) = charts.charts(made)
    attempt = Attempt(task=EVIL, state="Failed", started=NOW, finished=NOW, reason=EVIL)
    for svg in (charts.sparkline(made), chart.svg, charts.timeline([attempt], NOW)):
        assert "<script" not in svg
        ElementTree.fromstring(svg)


def test_a_curve_with_nan_infinity_and_ten_thousand_points_is_drawn_small() -> None:
    values = [1.0, float("nan"), float("inf"), *(1 / (step + 1) for step in range(10_000))]
    made = progress(*values)
    (chart,) = charts.charts(made)
    assert chart.svg.count('class="mark"') <= charts.MOST_POINTS + 1
    assert "nan" not in chart.svg
    assert "inf" not in chart.svg
    assert charts.sparkline(progress(float("nan"), float("nan"))) == ""
    assert charts.sparkline(None) == ""


def test_the_bar_of_an_attempt_has_its_phases_and_the_reason_of_its_end() -> None:
    begin = NOW - timedelta(minutes=10)
    attempt = Attempt(
        task="worker-0",
        state="Failed",
        created=begin,
        scheduled=begin + timedelta(minutes=1),
        started=begin + timedelta(minutes=2),
        finished=begin + timedelta(minutes=5),
        exit_code=137,
        reason="OOMKilled",
    )
    svg = charts.timeline([attempt], NOW)
    assert [kind in svg for kind in ('class="waits"', 'class="prepares"', 'class="failed"')] == [True] * 3
    assert "worker-0, attempt 1: Failed; ran 3m00s; exit code 137; OOMKilled" in svg


@pytest.mark.parametrize(
    "address",
    ["", "state=failed&find=mnist&sort=gpu&down=1&hide=gpu,cpu&page=3", "sort=name", "where=-&find=%3Cb%3E"],
)
def test_the_address_of_a_list_restores_it(address: str) -> None:
    query = jobs_page.read(dict(parse_qsl(address)))
    again = jobs_page.read(dict(parse_qsl(query.to(page=query.page).removeprefix("?"))))
    assert again == query


def test_words_of_an_address_that_mean_nothing_are_as_usual() -> None:
    odd = {"state": "x", "sort": "__class__", "page": "-1", "hide": "name,'", "down": "yes"}
    assert jobs_page.read(odd) == JobsQuery()


def test_a_line_of_a_log_is_text_has_an_address_and_keeps_it() -> None:
    line = LogLine(Start("worker-1", 2), EVIL, "2026-01-01T00:00:00.123456789Z")
    html = log_lines.html([line], ["worker-0", "worker-1"])
    assert "<script" not in html
    assert 'class="t1"' in html
    assert line.id == LogLine(Start("worker-1", 2), EVIL, "2026-01-01T00:00:00.123456789Z").id
    assert line.id != LogLine(Start("worker-1", 2), "other", line.stamp).id
    assert f'id="{line.id}"' in html


def test_a_word_that_means_no_task_is_told_and_hides_nothing() -> None:
    choice, fits = log_lines.checked(log_lines.read({"task": "wroker", "find": "A"}), ["worker-0"])
    assert "did you mean worker" in choice.problem
    assert fits(LogLine(Start("worker-0"), "a line"))


def test_the_command_of_an_action_is_quoted_as_a_shell_needs_it() -> None:
    odd = Address("n s", "a;b")
    assert commands.line("stop", [odd]) == "tfyard stop 'a;b' -n 'n s'"
    jobs = [Address("x", "a"), Address("y", "b"), Address("x", "c"), Address("", "r")]
    assert commands.lines("delete", jobs, (), " --context lab") == [
        "tfyard delete a c -n x --context lab",
        "tfyard delete b -n y --context lab",
        "tfyard delete run/r",
    ]


def test_what_stands_between_backticks_is_code_and_nothing_else_is_markup() -> None:
    assert drawing.quoted("`tfyard stop <x>` stops it") == "<code>tfyard stop &lt;x&gt;</code> stops it"
    assert drawing.quoted("an odd ` <b>") == "an odd ` &lt;b&gt;"
    assert drawing.fix("gpu: 4") == "<code>gpu: 4</code>"


class Flood:
    """A place whose tasks write more than anybody reads."""

    def __init__(self, batches: int, size: int) -> None:
        self._batches, self._size = batches, size

    async def follow(self, _: Wanted) -> AsyncIterator[LogEvent | WaitResult | None]:
        for batch in range(self._batches):
            texts = [b"line %d" % (batch * self._size + at) for at in range(self._size)]
            yield Lines(Start("worker-0"), texts, [b"2026-01-01T00:00:00Z"] * self._size)
        yield WaitResult(0, "over")


async def test_a_flood_costs_bounded_memory_and_what_a_tab_cannot_show_is_counted() -> None:
    flood = Feed(Flood(100, 1000), ["worker-0"], lambda: None)  # type: ignore[arg-type]
    while not flood.end:
        await asyncio.sleep(0.01)
    batch = flood.after(0, lambda _: True, 500)
    assert (len(batch.lines), batch.lines[-1].text, batch.next) == (500, "line 99999", 100_000)
    assert batch.skipped == 99_500
    assert len(flood.newest(lambda _: True, 1 << 30).lines) == feed.KEPT
    assert flood.after(batch.next, lambda _: True, 500).lines == []
    only = flood.after(0, lambda line: line.text.endswith("999"), 500)
    assert [line.text for line in only.lines] == ["line 96999", "line 97999", "line 98999", "line 99999"]
    assert only.skipped == 100_000 - feed.KEPT
    await asyncio.to_thread(flood.close)
