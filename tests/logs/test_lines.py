"""Which tasks words select, which lines match a pattern, and how times and waits are shown."""

import re
from datetime import UTC, datetime

import pytest

from tfyard.errors import Usage
from tfyard.logs import remarks
from tfyard.logs.lines import Grep, Start, attempt_of, chosen, clock, relative
from tfyard.model import Condition, Ending, Status

TASKS = ["chief-0", "ps-0", *(f"worker-{index}" for index in range(12))]


def test_words_mean_tasks_roles_and_ranges() -> None:
    assert chosen([], TASKS) == tuple(TASKS)
    assert chosen(["Worker-9..10", "ps"], TASKS) == ("ps-0", "worker-9", "worker-10")
    with pytest.raises(Usage, match=r"no task or role 'wroker'; did you mean worker\?"):
        chosen(["wroker"], TASKS)


def test_starts_are_named_by_attempt_and_restart() -> None:
    assert [Start("a-0", 1).name, Start("a-0", 2).name, Start("a-0", 1, 3).name] == [
        "a-0",
        "a-0#2",
        "a-0#1.3",
    ]
    assert [attempt_of(""), attempt_of("2"), attempt_of("2.1")] == [(None, None), (2, None), (2, 1)]
    with pytest.raises(Usage):
        attempt_of("0")


def test_a_traceback_is_found_or_left_out_as_a_whole() -> None:
    first = [
        b"Traceback (most recent call last):",
        b'  File "train.py", line 3, in <module>',
        b"    load()",
        b"KeyError: 'x'",
        b"",
        b"During handling of the above exception, another exception occurred:",
        b"",
        b"Traceback (most recent call last):",
        b'  File "train.py", line 5, in <module>',
        b"ValueError: no shard",
    ]
    other = [b"Traceback (most recent call last):", b'  File "a.py", line 1', b"TypeError: other"]
    log = [b"step 1", *first, b"step 2 shard", *other, b"step 3"]
    for size in (1, 4, len(log)):
        grep, found = Grep(re.compile(rb"shard")), list[bytes]()
        for at in range(0, len(log), size):
            found += [text for text, _ in grep.take(log[at : at + size])]
        found += [text for text, _ in grep.close()]
        assert found == [*first, b"step 2 shard"]


def test_times_are_shown_to_the_millisecond_or_since_the_beginning() -> None:
    stamp = b"2026-11-16T05:12:31.123456789+01:00"
    assert clock(stamp) == "2026-11-16T05:12:31.123+01:00"
    assert relative(stamp, datetime(2026, 11, 16, 4, 0, tzinfo=UTC)) == "+00:12:31"
    assert relative(stamp, datetime(2026, 11, 16, 4, 12, 41, tzinfo=UTC)) == "-00:00:10"


def test_the_reason_of_a_wait_comes_from_the_conditions_else_from_a_pod() -> None:
    waiting = Condition("Waiting", "True", "ImagePull", "worker-1: not found")
    unstarted = {"worker-0": "", "worker-1": "Unschedulable: 0/3 nodes"}
    assert remarks.waiting(Status(), {}, 3) == ""
    assert remarks.waiting(Status(), unstarted, 3) == (
        "waiting for 2 of 3 tasks: worker-1: Unschedulable: 0/3 nodes"
    )
    assert remarks.waiting(Status(conditions=(waiting,)), unstarted, 2) == "waiting: worker-1: not found"


def test_a_restart_is_reported_with_its_reason() -> None:
    killed = Ending(task="worker-1", attempt=1, exit_code=137, reason="OOMKilled")
    assert remarks.restarted(Start("worker-1", 2), killed).text == "restarted: OOMKilled, exit code 137"
    assert remarks.restarted(Start("worker-1", 2), None).text == "restarted"
