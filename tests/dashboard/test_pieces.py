"""What pages are made of: addresses, pictures, lines of logs. Everything that others wrote stays text."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest

from tfyard.dashboard import (
    charts,
    commands,
    drawing,
    feed,
    jobs_page,
    live,
    log_lines,
    parallel,
    trial_table,
)
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.feed import Feed, LogLine
from tfyard.dashboard.jobs_page import KINDS, JobsQuery
from tfyard.errors import NoSuchJob
from tfyard.logs.lines import Lines, LogEvent, LogSelection, Start
from tfyard.model.run_events import Metric
from tfyard.model.sweep import Choice, Objective, Parameter, Range, SweepSpec, SweepState, Trial, Values
from tfyard.overview.attempts import Attempt
from tfyard.overview.comparison import ComparedJob, Comparison, compare
from tfyard.overview.job_record import JobRecord
from tfyard.overview.metrics import Point
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


def compared(**losses: list[tuple[int, float]]) -> Comparison:
    """Jobs by their labels, each with its steps and losses."""
    record = JobRecord(name="x", job="x", place="machine")
    jobs = [
        ComparedJob(
            label=label,
            record=record,
            points=tuple(Point(at=0, task="worker-0", values={"loss": y}, step=x) for x, y in points),
        )
        for label, points in losses.items()
    ]
    return compare(jobs, NOW)


def test_the_pointer_shows_the_points_of_all_curves_that_are_near_and_none_where_a_curve_has_ended() -> None:
    longer = [(step, 1.0 / step) for step in range(1, 101)]
    restarted = [(1, 9.0), (2, 8.0), (3, 7.0), (2, 6.0), (3, 5.0)]
    (chart,) = charts.compared(compared(a=longer, b=restarted))
    marks = [re.findall(r"<text[^>]*>([^<]*)", mark) for mark in str(chart.svg).split('class="mark"')[1:]]
    assert marks[0] == ["a 1: 1", "b 1: 9"]
    assert any("b 3: 5" in mark for mark in marks), "of a restarted task, the last value at a step"
    assert not any("b 3: 7" in mark for mark in marks)
    assert all(len(mark) == 1 for mark in marks[5:])
    assert marks[-1] == ["a 100: 0.01"]


def test_many_curves_answer_to_the_pointer_in_a_picture_of_bounded_size() -> None:
    jobs = {f"{EVIL}{turn}": [(step, float(step + turn)) for step in range(2000)] for turn in range(20)}
    (chart,) = charts.compared(compared(**jobs))
    ElementTree.fromstring(chart.svg)
    assert "<script" not in chart.svg
    assert len(chart.svg) < 500_000


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


def test_clocks_that_disagree_make_no_bar_that_ends_before_it_begins() -> None:
    ahead = Attempt(task="worker-0", state="Running", created=NOW, started=NOW + timedelta(hours=1))
    behind = Attempt(task="worker-1", started=NOW, finished=NOW - timedelta(hours=1))
    svg = charts.timeline([ahead, behind], NOW)
    ElementTree.fromstring(svg)
    assert [
        float(width) for width in re.findall(r'width="(-?[\d.]+)" height="15"', svg) if float(width) < 2
    ] == []
    assert "ran 0s" in svg
    assert 'class="running"' in svg


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

    async def follow(self, _: LogSelection) -> AsyncIterator[LogEvent | WaitResult | None]:
        for batch in range(self._batches):
            texts = [b"line %d" % (batch * self._size + at) for at in range(self._size)]
            yield Lines(Start("worker-0"), texts, [b"2026-01-01T00:00:00Z"] * self._size)
        yield WaitResult(0, "over")


def line(task: str, text: str, stamp: str = "", remark: str = "") -> LogLine:
    return LogLine(Start(task), text, stamp, remark)


def test_lines_of_all_tasks_stand_by_their_times_and_remarks_behind_what_they_are_about() -> None:
    read = [
        line("chief-0", "a", "2026-01-01T00:00:01Z"),
        line("chief-0", "d", "2026-01-01T00:00:04Z"),
        line("chief-0", "ended", remark="ended"),
        line("worker-0", "b", "2026-01-01T00:00:02Z"),
        line("worker-0", "c", "2026-01-01T00:00:03Z"),
        line("worker-0", "ended too", remark="ended"),
        line("ps-0", "its log is gone", remark="gone"),
    ]
    ordered = [each.text for each in feed.by_time(read)]
    assert ordered == ["a", "b", "c", "ended too", "d", "ended", "its log is gone"]


class LongLines:
    """A place that writes lines as long as a page shows at most."""

    async def follow(self, _: LogSelection) -> AsyncIterator[LogEvent | WaitResult | None]:
        for _batch in range(10):
            yield Lines(Start("worker-0"), [b"x" * feed.LONGEST] * 1000)
        yield WaitResult(0, "over")


async def test_long_lines_cost_bounded_memory_and_many_tabs_are_told_the_same_that_is_drawn_once() -> None:
    flood = Feed(LongLines(), ["worker-0"])  # type: ignore[arg-type]
    while not flood.end:
        await asyncio.sleep(0.01)
    kept = flood.newest(lambda _: True, 1 << 30).lines
    assert sum(len(each.text) for each in kept) == feed.MOST_CHARACTERS
    tabs = [live.LogView(flood, log_lines.LogChoice(), lambda _: True, ["worker-0"]) for _ in range(100)]
    told = [tab.update() for tab in tabs]
    assert len({id(each.html) for each in told if each}) == 1
    assert {each.skipped for each in told if each} == {10_000 - log_lines.SHOWN}
    await asyncio.to_thread(flood.close)


@pytest.mark.parametrize(
    "over",
    [
        {"lr": Range(0.0, 0.0, is_log=True)},
        {"lr": Range(1.0, -1.0, is_log=True)},
        {"lr": Choice(())},
        {EVIL: Choice((EVIL, "javascript:alert(1)"))},
        {},
    ],
    ids=str,
)
def test_a_sweep_whose_stored_state_makes_no_sense_is_drawn_or_left_out(over: dict[str, Parameter]) -> None:
    spec = SweepSpec(name="s", over=over, objective=Objective(EVIL, is_max=True), trials=3)
    values: list[Values] = [{"lr": -1.0}, {"lr": "x", EVIL: EVIL}, {}]
    trials = tuple(
        Trial(number=at, values=each, state="Succeeded", objective=10.0**308 * (1 - at))
        for at, each in enumerate(values)
    )
    state = SweepState(spec=spec, created=NOW, phase="Succeeded", trials=trials)
    svg = str(parallel.drawn(state))
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert svg.count("<polyline") == 3
    assert len(trial_table.table(state, "", NOW).rows) == 3


def test_a_name_that_no_job_can_have_leads_nowhere_and_into_no_header() -> None:
    for name in ("../../etc", "/tmp/x", "a/b", ".", "@latest", 'a";x="', "a\nb", "", "ü", "x" * 300):
        with pytest.raises(NoSuchJob, match="cannot have this name"):
            Address("", name).require_name()
    Address("", "train-20260101-120000-2").require_name()
    odd = Address("", 'a"; x=\r\nSet-Cookie: y').file(".log")
    assert odd == {"Content-Disposition": 'attachment; filename="a_x_Set-Cookie_y.log"'}


async def test_a_flood_costs_bounded_memory_and_what_a_tab_cannot_show_is_counted() -> None:
    flood = Feed(Flood(100, 1000), ["worker-0"])  # type: ignore[arg-type]
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


def test_no_state_is_counted_in_two_tabs() -> None:
    states = [state for among in KINDS.values() for state in among]
    assert len(states) == len(set(states))
