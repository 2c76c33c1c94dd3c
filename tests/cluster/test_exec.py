"""`tfyard exec` in tasks of a job: streams, exit codes, all tasks at once, and a terminal."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Iterator

import pytest

from tests.cluster.clusters import Cluster
from tests.cluster.jobs import Jobs

pytestmark = pytest.mark.cluster
JOB = """
name: first
image: example/train:1
run: case $HOSTNAME in *-2) exit 0;; esac; sleep 600
worker: 3
"""
OVER = "tfyard: worker-2 is not running: it ended with code 0"


@pytest.fixture(scope="module")
def first(_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """All of its tasks but the last run."""
    with Jobs.own(_cluster, tmp_path_factory.mktemp("first")) as jobs:
        jobs.submit(JOB)
        jobs.until_phase("first", "Running")
        for index in (0, 1):
            jobs.kubectl("wait", "--for=condition=Ready", f"pod/first-worker-{index}", "--timeout=60s")
        phase = "--for=jsonpath={.status.phase}=Succeeded"
        jobs.kubectl("wait", phase, "pod/first-worker-2", "--timeout=60s")
        yield jobs


def test_a_command_in_a_task_has_its_streams_and_gives_its_code(first: Jobs) -> None:
    run = first.tfyard
    done = run("exec", "first", "worker-0", "--", "sh", "-c", "cat; echo bad >&2; exit 3", stdin=b"in")
    assert (done.code, done.out, done.err) == (3, "in", "bad\n")
    dashes = run("exec", "first", "worker-0", "--", "printf", "%s,", "--all", "-c", "--", "x")
    assert dashes.out == "--all,-c,--,x,"
    over = run("exec", "first", "worker-2", "--", "true")
    assert (over.code, over.err) == (1, f"{OVER}\n")
    assert "did you mean worker-0?" in run("exec", "first", "wroker-0", "--", "true").err
    assert (
        "worker means 3 tasks: name one of worker-0, worker-1, worker-2"
        in run("exec", "first", "worker", "--", "true").err
    )
    many = run("exec", "first", "worker-0", "-c", "istio", "--", "true")
    assert (many.code, many.err) == (2, "tfyard: worker-0 has no container istio; it has tensorflow\n")
    missing = run("exec", "first", "worker-0")
    assert (missing.code, "tfyard exec first worker-0 -- COMMAND" in missing.err) == (2, True)
    wrong = run("exec", "first", "worker-0", "--", "no-such-program")
    assert (wrong.code != 0, "no-such-program" in wrong.err) == (True, True)


def test_a_command_in_all_tasks_has_the_task_before_each_line(first: Jobs) -> None:
    script = "echo one; echo two; printf 'no end' >&2; exit 4"
    done = first.tfyard("exec", "--all", "first", "worker", "--", "sh", "-c", script)
    assert done.code == 4
    assert sorted(done.out.splitlines()) == [
        f"worker-{index} │ {word}" for index in (0, 1) for word in ("one", "two")
    ]
    said = done.err.splitlines()
    assert said[0] == OVER
    assert sorted(said[1:]) == sorted(
        f"worker-{index} {text}" for index in (0, 1) for text in ("│ no end", "── exit code 4")
    )
    refused = first.tfyard("exec", "--all", "-i", "first", "--", "true")
    assert (refused.code, "leave out -i and -t" in refused.err) == (2, True)
    bare = first.tfyard_without("aiohttp", "exec", "first", "worker-0", "--", "true")
    assert bare.stderr == 'tfyard: tfyard exec needs aiohttp: pip install "tfyard[kubernetes]"\n'


SIZES_AND_A_KEY = """
stty raw
for size in '33 101' '40 90'; do until stty size | grep "$size"; do sleep .05; done; done
head -c 1 | od -An -tx1
exit 7
"""


def read_until(terminal: int, text: bytes) -> None:
    shown = b""
    while text not in shown:
        assert select.select([terminal], [], [], 60)[0], shown
        shown += os.read(terminal, 1 << 16)


def test_a_terminal_has_its_size_its_keys_and_is_as_before_afterwards(first: Jobs) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    before = termios.tcgetattr(slave)
    words = ("exec", "-it", "first", "worker-0", "--", "sh", "-c", SIZES_AND_A_KEY)
    with first.start(*words, stdin=slave, stdout=slave, stderr=slave) as process:
        try:
            read_until(master, b"33 101")
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 90, 0, 0))
            process.send_signal(signal.SIGWINCH)
            read_until(master, b"40 90")
            os.write(master, b"\x03")  # Ctrl-C is the command's, not tfyard's
            read_until(master, b" 03")
            assert process.wait(60) == 7
            assert termios.tcgetattr(slave) == before
        finally:
            process.kill()
            os.close(slave)
            os.close(master)
