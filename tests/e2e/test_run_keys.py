"""A run in the hands of a person: Ctrl-C, Ctrl-Z, and what they type, as under `python`."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Yard, read_until, wait_until

pytestmark = pytest.mark.processes


class Terminal:
    """A command at a terminal of its own, which controls it."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
            os.execve(sys.executable, [sys.executable, "-m", "tfyard", *args], environ)
        self.text = ""

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def until(self, text: str, seconds: float = 60) -> str:
        """All that it has written, colours left out, once this text is there."""
        end = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < end, f"{text!r} is missing: {self.text}"
            if not self._read():
                assert text in self.text, f"it ended without {text!r}: {self.text}"
        return self.text

    def end(self) -> int:
        """Its exit code, after all output."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        if select.select([self.descriptor], [], [], 0.2)[0]:
            try:
                part = os.read(self.descriptor, 1 << 16).decode(errors="replace")
            except OSError:  # nobody has it open any more
                return False
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part).replace("\r\n", "\n")
        return True


@pytest.fixture
def terminals(yard: Yard) -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for each in opened:
        try:
            os.kill(each.pid, signal.SIGKILL)
            os.waitpid(each.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            continue  # `end` has waited for it


def at_terminal(yard: Yard, terminals: list[Terminal], *args: str) -> Terminal:
    terminals.append(Terminal(yard.folder, *args))
    return terminals[-1]


INTERRUPTED = """
import json, os, signal, sys, time
index = json.loads(os.environ['TF_CONFIG'])['task']['index']
def term(*_):
    print('SIGTERM', flush=True)
    if index == 1: sys.exit(3)
if index in (1, 2): signal.signal(signal.SIGTERM, term)
print('began', flush=True)
try:
    while True: time.sleep(.1)
except KeyboardInterrupt:
    print('SIGINT', flush=True)
finally:
    time.sleep(.3)
    open(f'saved-{index}', 'w').close()
"""
BEHIND_A_SHELL = """case $TF_CONFIG in
*'"index": 3'* | *'"index":3'*) python task.py; touch next;;
*) exec python task.py;;
esac"""


def test_ctrl_c_lets_programs_save_as_under_python(yard: Yard) -> None:
    """worker-1 and 2 catch SIGTERM, and 2 goes on after it; worker-3 is behind a shell that catches nothing."""
    yard.job(INTERRUPTED, worker=4, run=BEHIND_A_SHELL)
    process = yard.start("run", "job.yaml")
    for _ in range(4):
        read_until(process, "began")
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert {path.name for path in yard.folder.glob("saved-*")} == {f"saved-{index}" for index in range(4)}
    assert not (yard.folder / "next").exists(), "the shell went on to its next command"
    said = {index: [w for w in ("SIGTERM", "SIGINT") if f"worker-{index} │ {w}" in out] for index in range(4)}
    assert said == {0: ["SIGINT"], 1: ["SIGTERM"], 2: ["SIGTERM", "SIGINT"], 3: ["SIGINT"]}
    assert time.monotonic() - before < 20, "no program waited for SIGKILL"


def test_stop_asks_by_sigterm_alone(yard: Yard) -> None:
    yard.job(INTERRUPTED, worker=2)
    process = yard.start("run", "job.yaml")
    for _ in range(2):
        read_until(process, "began")
    yard.tfyard("stop", "t", "--local")
    out, _ = process.communicate(timeout=60)
    assert ("SIGINT" in out, "worker-1 │ SIGTERM" in out) == (False, True)
    assert [path.name for path in yard.folder.glob("saved-*")] == ["saved-1"]


STEPS = """
import os, time
print('began', os.getpid(), flush=True)
while not os.path.exists('go'):
    open('steps', 'a').write('x'); time.sleep(.05)
print('gone on', flush=True)
"""


def test_ctrl_z_stops_the_tasks_too_and_fg_lets_them_go_on(yard: Yard, terminals: list[Terminal]) -> None:
    yard.job(STEPS, worker=2)
    terminal = at_terminal(yard, terminals, "run", "job.yaml")
    terminal.until("worker-0 │ began")
    terminal.until("worker-1 │ began")
    terminal.type("\x1a")
    stopped, status = os.waitpid(terminal.pid, os.WUNTRACED)
    assert (stopped, os.WIFSTOPPED(status)) == (terminal.pid, True)
    steps = yard.folder / "steps"
    wait_until(lambda: not grows(steps), "the tasks are stopped")
    os.kill(terminal.pid, signal.SIGCONT)
    wait_until(lambda: grows(steps), "the tasks go on")
    (yard.folder / "go").touch()
    assert terminal.end() == 0
    assert terminal.text.count("│ gone on") == 2


def grows(path: Path) -> bool:
    before = path.stat().st_size
    time.sleep(0.5)
    return path.stat().st_size > before


ASKS = """
import getpass
name = input('Name? ')
word = getpass.getpass('Word: ')
print(f'hello {name}, {word[::-1]}')
breakpoint()
print('after')
"""


@pytest.mark.parametrize("colour", [{}, {"NO_COLOR": "1"}], ids=["live", "without colour"])
def test_the_only_task_reads_what_is_typed(
    yard: Yard, terminals: list[Terminal], colour: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in colour.items():
        monkeypatch.setenv(variable, value)
    yard.write("ask.py", ASKS)
    terminal = at_terminal(yard, terminals, "run", "ask.py")
    terminal.until("worker-0 │ Name? ")
    terminal.type("Bob\n")
    terminal.until("Word: ")
    wait_until(lambda: not echoes(terminal), "getpass turns the echo off")
    terminal.type("secret\n")
    terminal.until("hello Bob, terces")
    terminal.until("(Pdb) ")
    terminal.type("p name * 2\n")
    terminal.until("'BobBob'")
    terminal.type("c\n")
    assert terminal.end() == 0
    assert "worker-0 │ Name? Bob\n" in terminal.text, "what is typed stands behind the question"
    assert "secret" not in terminal.text
    assert echoes(terminal)


def echoes(terminal: Terminal) -> bool:
    return bool(termios.tcgetattr(terminal.descriptor)[3] & termios.ECHO)


def test_ctrl_c_at_a_password_leaves_a_terminal_that_echoes(yard: Yard, terminals: list[Terminal]) -> None:
    yard.write(
        "ask.py", "import getpass, signal; signal.signal(2, signal.SIG_IGN); getpass.getpass('Word: ')"
    )
    terminal = at_terminal(yard, terminals, "run", "ask.py")
    terminal.until("Word: ")
    wait_until(lambda: not echoes(terminal), "getpass turns the echo off")
    terminal.type("\x03")
    terminal.until("press Ctrl-C again")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert echoes(terminal)


def piped(yard: Yard, *args: str, stdin: str = "one\ntwo\n") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tfyard", *args]
    return subprocess.run(
        command, cwd=yard.folder, input=stdin, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_only_task_reads_what_is_piped_and_continues_it_after_a_restart(yard: Yard) -> None:
    first = "os.path.exists('again') or open('again', 'w') and sys.exit(1)"
    yard.write("count.py", f"import os, sys\nprint('read', os.read(0, 4))\n{first}\n")
    done = piped(yard, "run", "count.py", "--restart", "on-failure")
    lines = [line for line in done.stdout.splitlines() if "│ read" in line]
    assert lines == ["worker-0 │ read b'one\\n'", "worker-0 │ read b'two\\n'"]
    assert "standard input" not in done.stdout
    (yard.folder / "lines").write_text("x\n" * 3)
    yard.write("count.py", "import sys; print(len(sys.stdin.readlines()), 'lines')")
    line = (
        f"read first; {sys.executable} -m tfyard run count.py"  # the file is read on, where the shell stopped
    )
    shell = subprocess.run(
        ["bash", "-c", f"{{ {line}; }} < lines"], cwd=yard.folder, capture_output=True, text=True
    )
    assert "worker-0 │ 2 lines" in shell.stdout
    closed = subprocess.run(["bash", "-c", f"{line} <&-"], cwd=yard.folder, capture_output=True, text=True)
    assert ("worker-0 │ 0 lines" in closed.stdout, closed.returncode) == (True, 0), closed


def test_what_no_task_can_read_is_told_in_one_line_with_attach(yard: Yard) -> None:
    text = "standard input is for runs with a single task, and ask has 2; --attach worker-0 lets you start"
    yard.write("ask.py", "print('fine')")
    assert piped(yard, "run", "ask.py", "--worker", "2").stdout.count(text) == 1
    assert piped(yard, "run", "ask.py", "--worker", "2", stdin="").stdout.count(text) == 0
    yard.write("ask.py", "breakpoint()")
    assert piped(yard, "run", "ask.py", "--worker", "2", stdin="").stdout.count(text) == 1
    yard.write("ask.py", "input()")
    assert piped(yard, "run", "ask.py", "--worker", "2", stdin="").stdout.count(text) == 1
    assert piped(yard, "run", "ask.py", "--worker", "2").stdout.count(text) == 1, (
        "and not once for each reason"
    )
    assert piped(yard, "run", "ask.py", stdin="").stdout.count(text) == 0
