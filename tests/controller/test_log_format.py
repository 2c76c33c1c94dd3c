"""Log lines: one object each, about a job, whatever happens."""

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tfyard.controller import log_format

log = logging.getLogger("tfyard.controller.test")


@pytest.fixture
def root() -> Iterator[None]:
    """The process's own logging, as it was before."""
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:], logger.level = handlers, level
    logging.getLogger().setLevel(level)


@pytest.fixture
def stream(root: None, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    made = io.StringIO()
    monkeypatch.setattr(sys, "stderr", made)
    log_format.configure("json")
    return made


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_object_with_time_level_message_job_and_extra_fields(stream: io.StringIO) -> None:
    with log_format.for_job("team-a", "mnist"):
        log.warning("created %s", "pods", extra={"count": 64, "names": ("a", "b")})
    (line,) = lines(stream)
    moment = datetime.fromisoformat(line.pop("time"))
    assert moment.utcoffset() is not None
    assert line == {
        "level": "warning",
        "message": "created pods",
        "logger": "tfyard.controller.test",
        "job": "team-a/mnist",
        "count": 64,
        "names": ["a", "b"],
    }


def test_a_line_about_no_job_names_none(stream: io.StringIO) -> None:
    with log_format.for_job("team-a", "mnist"):
        pass
    log.info("ready")
    assert "job" not in lines(stream)[0]


async def test_tasks_side_by_side_each_keep_their_own_job(stream: io.StringIO) -> None:
    async def work(name: str) -> None:
        with log_format.for_job("ns", name):
            await asyncio.sleep(0)
            log.info(name)

    await asyncio.gather(*(work(f"job-{number}") for number in range(5)))
    assert all(line["job"] == f"ns/{line['message']}" for line in lines(stream))


def test_line_ends_and_tracebacks_stay_inside_their_object(stream: io.StringIO) -> None:
    try:
        raise RuntimeError("two\nlines")
    except RuntimeError:
        log.exception("failed\nbadly")
    (line,) = lines(stream)
    assert line["message"] == "failed\nbadly"
    assert line["error"].endswith("RuntimeError: two\nlines")


def test_what_json_does_not_know_is_written_as_text(stream: io.StringIO) -> None:
    log.info("odd", extra={"thing": object(), "half": "\ud800", "level": "mine", "big": 2**80})
    (line,) = lines(stream)
    assert line["thing"].startswith("<object object")
    assert (line["half"], line["level"], line["level_"]) == ("?", "info", "mine")
    assert line["big"] == str(2**80)


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    log.debug("quiet")
    log.error("loud")
    assert [line["message"] for line in lines(stream)] == ["loud"]


def test_the_text_format_is_for_people(root: None, capsys: pytest.CaptureFixture[str]) -> None:
    log_format.configure("text")
    with log_format.for_job("ns", "mnist"):
        log.info("created pods", extra={"count": 64})
    _, _, rest = capsys.readouterr().err.partition(" ")
    assert rest == "INFO    created pods job=ns/mnist count=64\n"


def test_lines_go_to_stderr_by_default(root: None, capsys: pytest.CaptureFixture[str]) -> None:
    log_format.configure()
    log.info("here")
    out, err = capsys.readouterr()
    assert (out, json.loads(err)["message"]) == ("", "here")
