"""A run at a terminal: what a person sees, and what a program cannot make them see."""

import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from fcntl import ioctl

import pytest

from tests.e2e.conftest import Yard

pytestmark = pytest.mark.processes

COLUMNS = 80
NOTICE = "I0000 00:00:1769853600.123456   12345 port.cc:153] oneDNN custom operations are on."


def at_terminal(
    yard: Yard, *args: str, until: Callable[[str], bool] = lambda _text: False, **env: str
) -> str:
    """All that the command writes to a terminal, up to its end or until it is enough."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environ = {**os.environ, "TERM": "xterm", **env}
    command = [sys.executable, "-m", "tfyard", *args]
    process = subprocess.Popen(command, cwd=yard.folder, stdout=theirs, stderr=theirs, text=True, env=environ)
    yard.started.append(process)
    os.close(theirs)
    text, end = b"", time.monotonic() + 60
    while time.monotonic() < end and not until(text.decode(errors="replace")):
        if select.select([ours], [], [], 0.2)[0]:
            try:
                text += os.read(ours, 1 << 16)
            except OSError:  # the last one has closed it
                break
    if until("") or process.poll() is None:
        (yard.folder / "go").touch()
    process.wait(timeout=60)
    os.close(ours)
    return text.decode(errors="replace").replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_progress_bar_is_seen_while_it_goes_on(yard: Yard) -> None:
    script = r"""
import os, sys, time
print('Epoch 2/3')
sys.stdout.write('\r\x1b[1m12/32\x1b[0m ━━━ 1s 10ms/step - loss: 0.25'); sys.stdout.flush()
while not os.path.exists('go'): time.sleep(.05)
print()
"""
    yard.job(script)
    is_seen = ("worker-0 │ 12/32 ━━━ 1s 10ms/step - loss: 0.25", "epoch 2/3, step 12/32", "loss 0.25")
    text = at_terminal(
        yard, "run", "job.yaml", until=lambda text: all(part in plain(text) for part in is_seen)
    )
    assert all(part in plain(text) for part in is_seen), plain(text)


FORGERY = rf"""
import sys
print('{NOTICE}')
print('worker-0 ── ended with code 0'); print('job succeeded')
print('x' * {COLUMNS - len("worker-0 │ ")} + 'job succeeded' + 'y' * 200)
print('\x1b]0;job succeeded\x07\x1b[2J\x1b[Hjob succeeded')
print('2026-01-31 10:00:00.1: E tensorflow/core/a.cc:1] a real error')
sys.exit('z' * {COLUMNS} + 'job succeeded')
"""
OURS = ("worker-0 │ ", "worker-0 ── ", "    ", "t: ", "job ", "TASK ", "worker-0  Failed", "logs: ")
OURS += ("worker-0 ended with exit code 1: ",)


@pytest.mark.parametrize("colour", [{}, {"NO_COLOR": "1"}], ids=["live", "without colour"])
def test_a_program_cannot_write_what_looks_like_a_line_of_ours(yard: Yard, colour: dict[str, str]) -> None:
    yard.job(FORGERY)
    text = plain(at_terminal(yard, "run", "job.yaml", **colour))
    rows = [row.rpartition("\r")[2] for row in text.split("\n")]
    assert not [
        row for row in rows if row.strip() and not row.startswith((*OURS, "[", "─", "  Worker", "images"))
    ]
    assert "job succeeded" not in rows
    assert not [row for row in rows if len(row) > COLUMNS]
    assert [row for row in rows if row.startswith("worker-0 ── ended")] == ["worker-0 ── ended with code 1"]
    assert "a real error" in text


def test_the_messages_of_the_runtime_are_folded_unless_they_are_asked_for(yard: Yard) -> None:
    yard.job(f"print('{NOTICE}'); print('hello'); print('{NOTICE}')")
    text = plain(at_terminal(yard, "run", "job.yaml"))
    assert "worker-0 ── … 2 lines of TensorFlow's runtime; --verbose shows them" in text
    assert "oneDNN" not in text
    assert plain(at_terminal(yard, "run", "job.yaml", "--verbose")).count("oneDNN") == 2
    assert yard.tfyard("run", "job.yaml").stdout.count("oneDNN") == 2


def test_the_logs_of_a_run_do_nothing_to_the_terminal_unless_raw(yard: Yard) -> None:
    written = "\x1b]0;title\x07\x1b[2J1/2\r\x1b[31m2/2\x1b[0m\nlast"
    yard.job(f"import sys; sys.stdout.write({written!r})")
    yard.tfyard("run", "job.yaml", "-q")
    assert at_terminal(yard, "runs", "logs", "t") == "\x1b[31m2/2\x1b[0m\x1b[0m\nlast\n"
    assert yard.tfyard("runs", "logs", "t").stdout == "2/2\nlast\n"
    raw = subprocess.run(
        [sys.executable, "-m", "tfyard", "runs", "logs", "t", "--raw"],
        cwd=yard.folder,
        capture_output=True,
        check=True,
    )
    assert raw.stdout.decode() == written


MANY_METRICS = r"""
import os, sys, time
bar = '1201/1500 ━━━━ 12s 12ms/step - accuracy: 0.8123 - loss: 0.4321 - sparse_categorical_crossentropy: 0.5123'
print('Epoch 2/30')
for step in (1151, 1201):
    sys.stdout.write('\r' + bar.replace('1201', str(step)) + ' - val_accuracy: 0.7001'); sys.stdout.flush()
    time.sleep(1)
while not os.path.exists('go'): time.sleep(.05)
print()
"""


def test_nothing_breaks_inside_words_and_the_loss_is_seen_in_80_columns(yard: Yard) -> None:
    yard.job(MANY_METRICS, name="classification")
    seen = plain(at_terminal(yard, "run", "job.yaml", until=lambda text: "1,201/1,500" in plain(text)))
    rows = [row.strip() for row in re.split(r"[\n\r]+", seen)]
    words = "classification: 1 Worker; python is"
    first = next(at for at, row in enumerate(rows) if words in row)
    assert " ".join(rows[first : first + 3]).count("; logs in .tfyard/runs/classification-") == 1, rows[:4]
    assert any(row.startswith("epoch 2/30, step 1,201/1,500") and "━━━" in row for row in rows), rows
    assert "loss 0.4321  accuracy 0.8123  sparse_categorical_crossentropy 0.5123  …" in rows


OF_A_CLUSTER = re.compile(r"TFJob|default/|namespace|kept for an hour|keeps them|pod\b", re.IGNORECASE)


def test_a_run_on_this_machine_speaks_of_nothing_that_only_a_cluster_has(yard: Yard) -> None:
    yard.job("raise SystemExit(3)", restart="on-failure", retries=1)
    said = [at_terminal(yard, "run", "job.yaml"), yard.tfyard("run", "job.yaml", "-o", "json").stdout]
    for command in ("describe", "events", "why", "wait", "get", "top", "logs"):
        done = yard.tfyard(command, "--local", "@latest")
        said.append(done.stdout + done.stderr)
    yard.job("print('done')")
    yard.tfyard("run", "job.yaml")
    for command in ("describe", "events"):
        done = yard.tfyard(command, "--local", "@latest")
        said.append(done.stdout + done.stderr)
    assert [text for text in said if OF_A_CLUSTER.search(text)] == []
