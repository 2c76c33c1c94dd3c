"""The answer of `why` as lines: cause, fix, evidence with its age, and other causes."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.overview.situations import (
    NOW,
    ago,
    condition,
    ended,
    job,
    local,
    pod,
    running,
    status,
    warning,
    why,
)
from tfyard.model import Ending
from tfyard.overview.evidence import Evidence, Unreadable
from tfyard.overview.why import Answer
from tfyard.overview.why_text import lines


def text(evidence: Evidence) -> list[str]:
    return list(lines(why(evidence), NOW))


def test_the_cause_comes_first_then_the_fix_then_the_evidence() -> None:
    event = warning("FailedMount", 'MountVolume.SetUp failed for volume "t" : secret "token" not found')
    assert text(job(pod(), events=(event,), nodes=Unreadable("you may not list nodes"))) == [
        "worker-0 cannot start: there is no Secret token in namespace ml",
        "fix: kubectl -n ml create secret generic token --from-literal=KEY=VALUE",
        'event, 1m00s ago: MountVolume.SetUp failed for volume "t" : secret "token" not found',
        "could not be read: nodes: you may not list nodes",
    ]


def test_ends_of_earlier_attempts_are_shown_for_a_job_that_runs() -> None:
    memory = (Ending(task="worker-0", attempt=1, exit_code=1, message="KeyError: 1", finished=ago(hours=2)),)
    pods = (pod("worker-0", running()), pod("worker-1", running()))
    assert text(job(*pods, status=status(condition("Running"), endings=memory))) == [
        "train has run for 5m00s with all 2 tasks; nothing blocks it",
        "earlier, 2h00m ago: worker-0 failed with KeyError: 1",
    ]


def test_an_unknown_cause_lists_what_was_looked_at() -> None:
    assert text(job(status=status(condition("Failed"))))[1:] == [
        "looked at: the TFJob and its status, pods, events"
    ]


def test_output_of_a_program_cannot_move_the_cursor() -> None:
    coloured = job(
        pod(status=ended(1, "ValueError: \x1b[31mred\x1b[0m \x1b[2Jgone\x07")),
        status=status(condition("Failed")),
    )
    assert all(line.isprintable() for line in text(coloured))
    assert text(coloured)[0] == "worker-0 failed with ValueError: red [2Jgone"


@given(st.text(max_size=300))
def test_any_last_words_make_an_answer_of_printable_lines(words: str) -> None:
    printed = text(local(words))
    assert printed
    assert all(line.isprintable() for line in printed)


def test_an_answer_survives_json() -> None:
    answer = why(local("KeyError: 1"))
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Answer) == answer
