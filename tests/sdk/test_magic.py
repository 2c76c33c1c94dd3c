"""The first line of a `%%tfyard` cell."""

from pathlib import Path

import pytest

import tfyard
from tfyard.sdk import magic


def test_it_has_a_file_words_variables_and_arguments() -> None:
    cell = magic.read(
        "train.py worker=2 memory=4Gi --env LR=0.1 --env A='b c' --background -- --steps 100 x=1"
    )
    assert (cell.file, cell.is_background) == ("train.py", True)
    assert cell.words == {
        "worker": 2,
        "memory": "4Gi",
        "env": {"LR": "0.1", "A": "b c"},
        "args": ["--steps", "100", "x=1"],
    }
    assert magic.read("") == magic.Cell(file="", words={})


def test_it_takes_the_options_of_run() -> None:
    cell = magic.read(
        "--worker 2 train.py --set ps=1 --restart on-failure --retries=3 --tf1 --share-gpus --kill worker-1@3s"
        " --mount out=/tmp --metric '(?P<loss>x)' --tensorboard -- --tf1"
    )
    assert cell.words == {
        "worker": 2,
        "ps": 1,
        "restart": "on-failure",
        "retries": 3,
        "tf1": True,
        "args": ["--tf1"],
    }
    assert (cell.file, cell.settings) == (
        "train.py",
        {
            "share_gpus": True,
            "kill": ["worker-1@3s"],
            "mount": {"out": "/tmp"},
            "metric": "(?P<loss>x)",
            "tensorboard": True,
        },
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("workers=2", "unknown word; did you mean worker?"),
        ("--wait", "unrecognized arguments: --wait"),
        ("--worker two", "argument --worker: invalid int value: 'two'"),
        ("--set wroker=2", "did you mean worker"),
        ("--env LR", "must be NAME=VALUE"),
    ],
)
def test_what_it_does_not_understand_is_refused(line: str, message: str) -> None:
    with pytest.raises(tfyard.Usage, match=message):
        magic.read(line)


def test_a_file_that_no_cell_wrote_is_not_overwritten(tmp_path: Path) -> None:
    own = tmp_path / "train.py"
    own.write_text("print('mine')")
    with pytest.raises(tfyard.Usage, match="exists, and was not written by a cell"):
        magic._write(own, f"{magic.HEADER}\nprint()")
    assert own.read_text() == "print('mine')"
    magic._write(tmp_path / "cell.py", f"{magic.HEADER} worker=2\nprint()")
    magic._write(tmp_path / "cell.py", f"{magic.HEADER}\nprint(2)")
