import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfyard.formats import shell
from tfyard.model.expansion import expand


@pytest.mark.parametrize(
    "line",
    [
        "python train.py", "python train.py --steps 3000 --out /out", "./train --a=b", "sh run.sh",
        "python train.py > /out/log 2>&1", "python train.py \\\n  --steps 3", "python train.py\n",
        """python -c 'import time; time.sleep(1)'""", "python train.py --name $NAME",
    ],
)  # fmt: skip
def test_the_shell_makes_way_for_a_single_program(line: str) -> None:
    assert shell.command(line) == ["/bin/sh", "-c", f"exec {line}"]


def test_variables_before_the_program_stay_before_it() -> None:
    line = """A=1 B="two words" C='$x' python train.py"""
    assert shell.command(line)[2] == """A=1 B="two words" C='$x' exec python train.py"""


@pytest.mark.parametrize(
    "line",
    [
        "cd /code && python train.py", "a; b", "a | tee log", "a &", "a\nb", "(a)", "! a", "{ a; }", "exec a",
        "export A=1", "if a; then b; fi", "for i in 1 2; do a; done", "f() { a; }", "A=1", "", " ", "$PROGRAM x",
        "'unclosed", "echo hello", "A=`b` c", "A=$(b) c", "python $(ls)", "python a#b;c",
    ],
)  # fmt: skip
def test_any_other_line_runs_as_it_stands(line: str) -> None:
    assert shell.with_exec(line) == line


@pytest.mark.parametrize("line", ["echo $$", "kill -9 $$; echo $(date) $((1 + 2))", "python a.py $(A) $$(A)"])
def test_the_kubelet_hands_the_line_to_the_shell_as_it_is_written(line: str) -> None:
    command, arguments, text = shell.command(line)
    assert (command, arguments, expand(text, {"A": "1"})) == ("/bin/sh", "-c", shell.with_exec(line))
    assert shell.line_of(shell.command(line)) == line


@pytest.mark.parametrize(
    "line",
    ["/bin/echo a # x \\\n/bin/echo b", "/bin/echo a\\\\\n/bin/echo b", "/bin/echo a \\\n  '#' b"],
)
def test_a_backslash_joins_lines_neither_in_a_comment_nor_behind_another(line: str) -> None:
    assert shell.command(line) == ["/bin/sh", "-c", line]


def test_a_line_after_a_comment_is_run() -> None:
    command = shell.command("/bin/echo a # x \\\n/bin/echo b")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "a\nb\n"


@given(st.text(alphabet="ab =;&|<>()'\"\\\n$#!exc.-", max_size=12))
def test_a_line_is_found_again_from_its_command(line: str) -> None:
    found = shell.line_of(shell.command(line))
    assert found is not None
    assert shell.command(found) == shell.command(line)


@pytest.mark.parametrize(
    "command",
    [
        ["/bin/sh", "-c", "python a.py"],
        ["/bin/sh", "-c", "echo $(A)"],
        ["/bin/sh", "-c", "exec", "a"],
        ["python"],
        ["bash", "-c", "exec a"],
    ],
)
def test_a_command_that_no_line_becomes_has_none(command: list[str]) -> None:
    assert shell.line_of(command) is None


def test_a_single_program_hears_that_it_is_to_stop(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "print(os.environ['A'], flush=True)\n"
        "while True: signal.pause()\n"
    )
    command = shell.command("A='x y' python train.py 2>&1")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, env=os.environ) as task:
        try:
            assert task.stdout is not None
            assert task.stdout.readline() == b"x y\n"
            task.send_signal(signal.SIGTERM)
            assert task.wait(30) == 7
        finally:
            task.kill()
