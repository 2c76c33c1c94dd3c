"""Lines and metrics as events, from a log as a program writes it; and the logs of a run, with their times."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.node.test_log_times import T, write
from tfyard.backends.local.node import ContainerStarted
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import logs
from tfyard.local.logs import RunLogReader
from tfyard.logs.lines import Lines, LogSelection, Remark, Start
from tfyard.model import Ending, Status
from tfyard.model.run_events import Log, Metric, RunEvent
from tfyard.model.run_record import RunRecord, TaskRecord
from tfyard.node.log_times import SECOND, TimeIndex, rfc3339

BEGAN = datetime.fromtimestamp(T // SECOND, UTC)


def events(folder: Path, *pieces: str) -> list[RunEvent]:
    found: list[RunEvent] = []
    reader = RunLogReader(RunDirectory(folder), found.append, None, for_screen=False)
    started = ContainerStarted("uid", "tensorflow", "worker-0", 1, folder / "log")
    reader.open(started)
    for piece in pieces:
        with started.log.open("a", newline="") as file:
            file.write(piece)
        reader.read()
    reader.close(started)
    return found


def positions(found: list[RunEvent]) -> list[tuple[int | None, int | None, int | None, bool]]:
    return [(e.epoch, e.step, e.total, e.unfinished) for e in found if isinstance(e, Metric) and e.step]


def test_a_bar_is_of_the_epoch_that_was_named_before_it(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        "Epoch 1/2\n",
        "\r 3/Unknown 1ms/step - loss: 3",
        "\r10/10 1ms/step - loss: 2\n\r10/10 1ms/step - loss: 2 - val_loss: 1\n",
        "Epoch 2/2\n\r 4/10 1ms/step - loss: 1",
        "\r10/10 1ms/step - loss: 0.5\n",
    )
    assert positions(found) == [
        (1, 3, None, True),
        (1, 10, 10, False),
        (1, 10, 10, False),
        (2, 4, 10, True),
        (2, 10, 10, False),
    ]


def test_a_bar_that_starts_again_or_is_of_another_length_is_an_evaluation(tmp_path: Path) -> None:
    training = "Epoch 1/1\n\r10/10 1ms/step - loss: 2\n"
    again = events(tmp_path, training, "\r 1/10 1ms/step - loss: 3", "\r10/10 1ms/step - loss: 3\n")
    assert positions(again)[1:] == [(None, 1, 10, True), (None, 10, 10, False)]
    (tmp_path / "log").unlink()
    other = events(tmp_path, training, "63/63 - 0s - 1ms/step - loss: 3\n")
    assert positions(other)[1:] == [(None, 63, 63, False)]


def test_lines_come_in_blocks(tmp_path: Path) -> None:
    assert events(tmp_path, "one\ntwo\nthree")[0] == Log("worker-0", "one\ntwo")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that has ended. Its worker-0 wrote two lines, was restarted after 30 s, and wrote another one and a
    half; worker-1 wrote one line at the beginning, and one 40 s later."""
    made = RunDirectory(tmp_path / "j-1")
    (made.path / "logs").mkdir(parents=True)
    tasks = tuple(TaskRecord(name=f"worker-{n}", outcome="Succeeded") for n in range(2))
    made.record(RunRecord(name="j-1", job="j", started=BEGAN, ended=BEGAN, phase="Succeeded", tasks=tasks))
    log(made, "worker-0.1", (0, b"one\n"), (10, b"two\n"))
    log(made, "worker-0.2", (30, b""), (31, b"three\nfo"), (50, b"ur"))
    log(made, "worker-1.1", (0, b"first\n"), (40, b"later\n"))
    return made


def log(run: RunDirectory, name: str, *pieces: tuple[int, bytes]) -> None:
    """Each piece so many seconds after the beginning."""
    path = run.path / "logs" / f"{name}.log"
    times = TimeIndex(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time_ns", lambda: T + pieces[0][0] * SECOND)
        times.begin()
    for after, data in pieces:
        write(path, data, T + after * SECOND)
        times.notice()


def read(run: RunDirectory, wanted: LogSelection) -> list[tuple[str, str, int]]:
    """(start, line, seconds after the beginning)."""
    stamps = {rfc3339(T + after * SECOND).encode(): after for after in range(60)}
    return [
        (event.start.name, text.decode(), stamps[stamp])
        for event in logs.read(run, wanted)
        if isinstance(event, Lines)
        for text, stamp in zip(event.texts, event.stamps, strict=True)
    ]


BOTH = ("worker-0", "worker-1")
ONE, TWO = ("worker-0", "one", 0), ("worker-0", "two", 10)
THREE, FOUR = ("worker-0#2", "three", 31), ("worker-0#2", "four", 50)
FIRST, LATER = ("worker-1", "first", 0), ("worker-1", "later", 40)


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        (LogSelection(tasks=BOTH), [THREE, FOUR, FIRST, LATER]),
        (LogSelection(tasks=BOTH, all_attempts=True), [ONE, TWO, THREE, FOUR, FIRST, LATER]),
        (LogSelection(tasks=BOTH, since=BEGAN + timedelta(seconds=35)), [FOUR, LATER]),
        (LogSelection(tasks=BOTH, since=BEGAN + timedelta(seconds=35), all_attempts=True), [FOUR, LATER]),
        (
            LogSelection(tasks=BOTH, since=BEGAN + timedelta(seconds=10), all_attempts=True),
            [TWO, THREE, FOUR, LATER],
        ),
        (LogSelection(tasks=BOTH, since_restart=True), [THREE, FOUR, LATER]),
        (LogSelection(tasks=("worker-1",), since_restart=True), [FIRST, LATER]),
        (LogSelection(tasks=BOTH, tail=1), [FOUR, LATER]),
        (LogSelection(tasks=BOTH, tail=0), []),
        (LogSelection(tasks=BOTH, tail=5, since=BEGAN + timedelta(seconds=45)), [FOUR]),
        (LogSelection(tasks=("worker-0",), attempt=1, tail=1), [TWO]),
        (LogSelection(tasks=BOTH, since=BEGAN + timedelta(hours=1)), []),
    ],
)
def test_lines_have_times_by_which_they_can_be_asked_for(
    run: RunDirectory, wanted: LogSelection, lines: list[tuple[str, str, int]]
) -> None:
    assert read(run, wanted) == lines
    followed = [event for event in logs.follow(run, wanted) if isinstance(event, Lines)]
    assert [text.decode() for event in followed for text in event.texts] == [line[1] for line in lines]


@pytest.mark.parametrize(("attempt", "why"), [(2, ": OOMKilled, exit code 137"), (1, "")])
def test_a_restart_is_shown_with_its_reason_while_a_run_is_followed(
    run: RunDirectory, attempt: int, why: str
) -> None:
    """And without it, if the run remembers only an earlier one."""
    over = run.load()
    assert over is not None
    run.record(replace(over, phase="Running", ended=None, pid=os.getpid()))
    events = logs.follow(run, LogSelection(tasks=("worker-0",)))
    while next(events) is not None:
        pass
    end = Ending(task="worker-0", attempt=attempt, exit_code=137, reason="OOMKilled")
    run.write("status.json", msgspec.json.encode(Status(endings=(end,))).decode())
    log(run, "worker-0.3", (55, b"five\n"))
    run.record(over)
    said = [event for event in events if isinstance(event, Remark)]
    assert said == [Remark(kind="restarted", text=f"restarted{why}", start=Start("worker-0", 3))]


def test_a_log_without_times_is_shown_whole_if_it_was_written_to_since_then(run: RunDirectory) -> None:
    for index in run.path.glob("logs/.*.times"):
        index.unlink()
    said, *lines = logs.read(run, LogSelection(tasks=BOTH, since=BEGAN + timedelta(seconds=45)))
    assert isinstance(said, Remark)
    assert said.text.startswith(
        "no times were recorded for the lines of worker-0#2 and worker-1; of a log that"
    )
    assert [text for each in lines if isinstance(each, Lines) for text in each.texts] == [b"three", b"four"]
    assert not any(each.stamps for each in lines if isinstance(each, Lines))
    assert not any(isinstance(each, Remark) for each in logs.read(run, LogSelection(tasks=BOTH)))
    assert any(isinstance(each, Remark) for each in logs.read(run, LogSelection(tasks=BOTH, times=True)))


def test_the_run_records_times_in_few_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most one write for each period, however often the run looks for lines."""
    now = [1000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    reader = RunLogReader(RunDirectory(tmp_path), lambda _event: None, None, for_screen=False)
    started = ContainerStarted("uid", "tensorflow", "worker-0", 1, tmp_path / "worker-0.1.log")
    reader.open(started)
    for turn in range(100):
        write(started.log, b"line\n", T + turn)
        now[0] += logs.PERIOD / 10
        reader.read()
    reader.close(started)
    records = (tmp_path / ".worker-0.1.log.times").stat().st_size // 16
    assert 10 <= records <= 13
