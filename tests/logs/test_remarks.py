"""Remarks between the lines of programs."""

from tfyard.logs.lines import Lines, Remark, Start
from tfyard.logs.remarks import unless_removed
from tfyard.model import Ending

START = Start("worker-0", 1, 1)
ENDING = Ending(task="worker-0", attempt=1, restart=1, exit_code=1, message="ValueError: no data")
REMOVED = Remark(kind="kubelet", text="unable to retrieve container logs for containerd://x", start=START)


def test_a_log_that_the_kubelet_has_removed_is_replaced_by_how_it_ended() -> None:
    (said,) = unless_removed(iter([REMOVED]), START, ENDING)
    assert isinstance(said, Remark)
    assert said.kind == "ending"
    assert said.text.splitlines() == ["its log is gone; it ended: exit code 1", "ValueError: no data"]


def test_what_the_kubelet_says_stays_after_lines_and_if_nothing_is_remembered() -> None:
    lines = Lines(START, [b"step 1"], [b""])
    assert list(unless_removed(iter([lines, REMOVED]), START, ENDING)) == [lines, REMOVED]
    assert list(unless_removed(iter([REMOVED]), START, None)) == [REMOVED]
