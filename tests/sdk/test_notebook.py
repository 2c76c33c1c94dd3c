"""In a notebook: a real kernel runs the cells."""

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
TRAIN = "print('Step: 1, loss: 0.5')\nprint('<b>bold & brave</b>')\n"
SLOW = (
    "import time\nfor step in range(20):\n    print(f'Step: {step}, loss: 0.5', flush=True); time.sleep(.1)\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def executed(*cells: str, errors: bool = False) -> list[Any]:
    """What each cell has put out."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=errors)
    client.execute()
    return [cell["outputs"] for cell in notebook["cells"]]


def streamed(outputs: Any) -> str:
    return "".join(each["text"] for each in outputs if each["output_type"] == "stream")


def html(outputs: Any) -> str:
    return "".join(each["data"]["text/html"] for each in outputs if "text/html" in each.get("data", {}))


def test_a_cell_runs_and_its_value_is_the_run_which_keeps_the_cell(folder: Path) -> None:
    first, second, third = executed(
        "%load_ext tfyard", f"%%tfyard worker=2 --env LR=0.1\n{TRAIN}", "print(_.name, _.exit_code)"
    )
    assert first == []
    lines = streamed(second).splitlines()
    assert "worker-0 │ Step: 1, loss: 0.5" in lines
    assert "Succeeded" in html(second)
    (kept,) = folder.glob(".tfyard/runs/cell-*/source/cell.py")
    assert kept.read_text().splitlines()[1:] == TRAIN.splitlines()
    assert not (folder / "cell.py").exists()
    assert streamed(third).startswith("cell-")


FIRST = """%%tfyard train.py restart=on-failure --background -- --name 'a b'
import os, pathlib, sys, time
import beside
begun = pathlib.Path('begun')
print('first cell', beside.WORD, sys.argv[1:], flush=True)
if not begun.exists():
    begun.touch()
    while not os.path.exists('second'): time.sleep(.05)
    sys.exit(1)
"""
SECOND = "%%tfyard train.py\nimport pathlib; pathlib.Path('second').touch(); print('second cell')"
AGAIN = "again = first.rerun(); again.wait(); print([line.text for line in again.logs()])"


def test_a_run_never_gets_the_program_of_another_cell(folder: Path) -> None:
    """Not even if both write the same file, and the first run restarts its task later, or is run again."""
    (folder / "beside.py").write_text("WORD = 'finds modules of the folder'")
    outputs = executed(
        "%load_ext tfyard",
        FIRST,
        "first = _",
        "import os, time\nwhile not os.path.exists('begun'): time.sleep(.05)",
        SECOND,
        "first.wait(); print([line.text for line in first.logs(attempt='all')])",
        AGAIN,
    )
    said = "first cell finds modules of the folder ['--name', 'a b']"
    assert streamed(outputs[4]) == "worker-0 │ second cell\n"
    assert streamed(outputs[5]) == f"{[said, said]}\n"
    assert streamed(outputs[6]) == f"{[said]}\n"
    assert "second cell" in (folder / "train.py").read_text()


@pytest.mark.long
def test_a_card_follows_its_run(folder: Path) -> None:
    (folder / "train.py").write_text(SLOW)
    show, wait = executed(
        "import tfyard; run = tfyard.run('train.py'); run",
        "run.wait(); import time; time.sleep(1.5)",
    )
    assert "Succeeded" in html(show), "the card of the first cell was updated while the second ran"
    assert wait == []


@pytest.mark.long
def test_a_failed_cell_fails_the_notebook_and_says_why(folder: Path) -> None:
    _, failed = executed(
        "%load_ext tfyard", "%%tfyard\nraise ValueError('<script>alert(1)</script>')", errors=True
    )
    (error,) = [each for each in failed if each["output_type"] == "error"]
    assert error["ename"] == "JobFailed"
    assert "alert(1)" in "".join(error["traceback"])
    assert "sdk/run.py" not in "".join(error["traceback"]), "the traceback of tfyard's own code helps nobody"


@pytest.mark.long
def test_interrupting_a_cell_stops_its_run(folder: Path) -> None:
    """As a notebook's button does: by SIGINT to the kernel."""
    interrupt = "import os, threading; threading.Timer(3, os.kill, (os.getpid(), 2)).start()"
    _, _, cell, after = executed(
        "%load_ext tfyard\nimport tfyard",
        interrupt,
        "%%tfyard\nimport time; print('began', flush=True); time.sleep(600)",
        "print(tfyard.find('cell').status)",
        errors=True,
    )
    assert [each["ename"] for each in cell if each["output_type"] == "error"] == ["KeyboardInterrupt"]
    assert "worker-0 │ began" in streamed(cell)
    assert streamed(after) == "Stopped\n"
