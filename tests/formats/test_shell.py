import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfyard.formats import shell
from tfyard.model.expansion import expand


@pytest.mark.parametrize(
    "line",
    [
        "python train.py", "python train.py --steps 3000 --out /out", "./train --a=b", "sh run.sh",
        "python train.py > /out/log 2>&1", "python train.py \\\n  --steps 3", "python train.py\n",
        """python -c 'import time; time.sleep(1)'""", "python train.py --name $NAME",
        "python train.py\\\n  --steps 3", "/bin/echo a \\\n  '#' b", "python a.py ${A:-b}  # why",
    ],
)  # fmt: skip
def test_a_single_program_replaces_the_shell(line: str) -> None:
    assert shell.command(line) == ["/bin/sh", "-c", f"exec {line}"]


def test_variables_before_the_program_stay_before_it() -> None:
    line = """A=1 B="two words" C='$x' python train.py"""
    assert shell.command(line)[2] == """A=1 B="two words" C='$x' exec python train.py"""


@pytest.mark.parametrize(
    "script",
    [
        "cd /code && §python train.py", "a; §b", "a\n§b ;\n", "a || §b", "a &&\n§b", "a | b; A=1 §c > log 2>&1",
        "cp -r /nfs/x ./; cd x; §python x.py --a=$A 1>log 2>errlog", ". bin/activate && §python a.py",
        "# a comment; with 'this\ncd /x  # why\n§python b.py", "python a#b;§c", "echo 'a; b\nc' && §b",
        '§python "$(date)"',
        "/bin/echo a # x \\\n§/bin/echo b", "/bin/echo a\\\\\n§/bin/echo b",
    ],
)  # fmt: skip
def test_the_program_with_which_a_script_ends_replaces_the_shell(script: str) -> None:
    """The `§` marks where the program starts."""
    line = script.replace("§", "")
    assert shell.with_exec(line) == script.replace("§", "exec ")
    assert shell.line_of(shell.command(line)) == line


@pytest.mark.parametrize(
    "line",
    [
        "a | tee log", "a &", "(a)", "! a", "{ a; }", "exec a",
        "export A=1", "if a; then b; fi", "for i in 1 2; do a; done", "f() { a; }", "A=1", "", " ", "$PROGRAM x",
        "'unclosed", "echo hello", "A=`b` c", "A=$(b) c", "python $(ls)",
        "trap x EXIT; a", "a & b", "cat <<X\na\nX", "if a; then b; fi; c", "a; cd b", "alias a=b\na", "! a\nb",
        'python "$(a "b; c d" e)"', "a ${X:-a; b c}", "a; 'b", "b\\\nc", "a; 2> b cd c", "f() { a; }; f",
        "case a in a) b;; esac",
    ],
)  # fmt: skip
def test_any_other_line_runs_unchanged(line: str) -> None:
    assert shell.with_exec(line) == line


@pytest.mark.parametrize("line", ["echo $$", "kill -9 $$; echo $(date) $((1 + 2))", "python a.py $(A) $$(A)"])
def test_the_kubelet_hands_the_line_to_the_shell_as_it_is_written(line: str) -> None:
    command, arguments, text = shell.command(line)
    assert (command, arguments, expand(text, {"A": "1"})) == ("/bin/sh", "-c", shell.with_exec(line))
    assert shell.line_of(shell.command(line)) == line


def test_a_line_after_a_comment_is_run() -> None:
    command = shell.command("/bin/echo a # x \\\n/bin/echo b")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "a\nb\n"


WORDS = [
    "/bin/echo", "a", "true", "false", "X=1", "$X", "'a b'", '"$X;"', "{", "}", "(", ")", "&&", "||", ";", "|",
    "# x", "if", "then", "fi", "!", "cd", "/", "2>/dev/null", "\\", "'", '"', "\n", "\\\n",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=9))
def test_a_script_means_the_same_with_exec(words: list[str]) -> None:
    script = " ".join(words)
    done = [
        subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=False)
        for text in {script, shell.with_exec(script)}
    ]
    assert len({(run.returncode, run.stdout) for run in done}) == 1


@given(st.text(alphabet="ab =;&|<>()'\"\\\n$#!exc.-", max_size=12))
def test_a_line_is_found_again_from_its_command(line: str) -> None:
    original = shell.line_of(shell.command(line))
    assert original is not None
    assert shell.command(original) == shell.command(line)


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


def test_a_single_program_gets_the_signal_to_stop(tmp_path: Path) -> None:
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
