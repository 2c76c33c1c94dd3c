"""Lines and metrics as events, from a log as a program writes it."""

from pathlib import Path

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local.logs import LogReader
from tfyard.model.run_events import Log, Metric, RunEvent
from tfyard.node.node import ContainerStarted


def events(folder: Path, *pieces: str) -> list[RunEvent]:
    found: list[RunEvent] = []
    reader = LogReader(RunDirectory(folder), found.append, None, for_screen=False)
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
