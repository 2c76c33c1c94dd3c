"""Nobody is left behind, whoever is killed: in a PID namespace, and where the system allows none."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Yard, read_until, supervisor_of, survivors, wait_until

pytestmark = pytest.mark.processes

FORBID = 'for kind in $0; do echo 0 > /proc/sys/user/max_"$kind"_namespaces || exit 1; done; exec "$@"'
AS_ROOT = ("unshare", "--user", "--map-root-user")
ENCLOSED = {
    "as oneself": (),
    "unprivileged": ("unshare", "--user", "--map-user=1000", "--map-group=1000"),
}
OPEN = {
    "PID namespaces forbidden": (*AS_ROOT, "sh", "-c", FORBID, "pid"),
    "all namespaces forbidden": (*AS_ROOT, "sh", "-c", FORBID, "pid mnt user"),
}


@pytest.fixture(params=ENCLOSED)
def enclosed(yard: Yard, request: pytest.FixtureRequest) -> Yard:
    """Where tasks get a PID namespace of their own."""
    yard.through = list(ENCLOSED[request.param])
    _try(*yard.through, *AS_ROOT, "--pid", "--fork", "--mount-proc", "true")
    return yard


@pytest.fixture(params=[*ENCLOSED, *OPEN])
def anywhere(yard: Yard, request: pytest.FixtureRequest) -> Yard:
    yard.through = list({**ENCLOSED, **OPEN}[request.param])
    _try(*yard.through, "true")
    return yard


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A word by which a test knows its processes; should they survive, the test is the last whom they trouble."""
    word = f"{tmp_path.name}-{os.getpid()}"
    yield word
    for pid in survivors(word):
        os.kill(pid, signal.SIGKILL)


def _try(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"{' '.join(command)}: {getattr(error, 'stderr', error)}")


FAMILY = """
import os, subprocess, sys, time
if len(sys.argv) > 2: time.sleep(300)
subprocess.Popen([sys.executable, __file__, sys.argv[1], "child"])
subprocess.Popen([sys.executable, __file__, sys.argv[1], "daemon"], start_new_session=True)
print("up", flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("victim", ["tfyard", "supervisor"])
def test_nobody_survives_when_a_process_of_ours_is_killed(anywhere: Yard, mark: str, victim: str) -> None:
    anywhere.job(FAMILY, worker=2, run=["python", "task.py", mark])
    process = anywhere.start("run", "job.yaml")
    wait_until(lambda: len(survivors(mark)) == 6, "all six processes of the family are up")
    pid = process.pid if victim == "tfyard" else supervisor_of(process.pid)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not survivors(mark), "everybody is gone")
    process.communicate(timeout=30)


@pytest.mark.parametrize("restart", ["never", "on-failure", "exit-code"])
def test_a_run_ends_with_its_supervisor_whatever_its_restart_policy(
    yard: Yard, mark: str, restart: str
) -> None:
    yard.job(FAMILY, worker=1, run=["python", "task.py", mark], restart=restart)
    process = yard.start("run", "job.yaml")
    wait_until(lambda: len(survivors(mark)) == 3, "the family is up")
    os.kill(supervisor_of(process.pid), signal.SIGKILL)
    said, problem = process.communicate(timeout=30)
    assert process.returncode not in (0, None)
    assert "Traceback" not in said + problem
    assert restart == "never" or "the supervisor of this run was killed" in problem
    assert not survivors(mark)


def test_nobody_survives_a_killed_supervisor_while_a_large_task_takes_its_time_to_die(
    anywhere: Yard, mark: str
) -> None:
    anywhere.job(
        FAMILY.replace("print", "large = b'x' * 500_000_000; print"), run=["python", "task.py", mark]
    )
    process = anywhere.start("run", "job.yaml")
    read_until(process, " │ up")
    supervisor = supervisor_of(process.pid)
    os.kill(process.pid, signal.SIGSTOP)  # until the task is dying, and its children are still its own
    os.kill(supervisor, signal.SIGKILL)
    while len(survivors(mark)) == 3:
        pass
    os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=30)
    assert not survivors(mark)


def test_a_daemon_that_a_task_leaves_behind_ends_with_its_task(anywhere: Yard, mark: str) -> None:
    anywhere.job(FAMILY.rsplit("time.sleep", 1)[0], run=["python", "task.py", mark])
    assert anywhere.run().code == 0
    assert not survivors(mark)


# The daemon of worker 0 is an orphan at once. That of worker 1 is one only after its parent was killed.
DAEMONS = """
import os, subprocess, sys, time
def start(what, **how): return subprocess.Popen([sys.executable, __file__, *sys.argv[1:2], what], **how)
def wait_for(file):
    while not os.path.exists(file): time.sleep(.05)
STAYS = os.environ["I"] == "0"
match sys.argv[2:]:
    case []:
        sys.argv[1] += "-stays" if STAYS else "-goes"
        child = start("child")
        wait_for(sys.argv[1])
        if STAYS:
            child.wait()
            wait_for("end")
    case ["child"]:
        start("daemon", start_new_session=True)
        wait_for(sys.argv[1])
        if not STAYS: time.sleep(300)
    case ["daemon"]:
        open(sys.argv[1], "w").close()
        time.sleep(300)
"""


def test_a_daemon_goes_with_its_task_while_another_task_keeps_its_own(anywhere: Yard, mark: str) -> None:
    run = ["python", "task.py", mark]
    anywhere.job(DAEMONS, worker=2, run=run, success="all-workers", env={"I": "$(TASK_INDEX)"})
    process = anywhere.start("run", "job.yaml", "-o", "json")
    read_until(process, '"ended"')
    wait_until(lambda: not survivors(f"{mark}-goes"), "the daemon of the task that is over is gone")
    wait_until(lambda: len(survivors(f"{mark}-stays")) == 1, "the daemon of the other one is alone")
    anywhere.write("end", "")
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert not survivors(mark)


# Forked twice, in a session of its own, with nothing in its environment: nobody can tell whose it is.
HIDDEN = """
import os, sys, time
if len(sys.argv) > 2: time.sleep(300)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execve(sys.executable, [sys.executable, __file__, sys.argv[1], "hidden"], {})
    os._exit(0)
os.wait()
time.sleep(300)
"""


def test_nobody_survives_when_all_of_ours_are_killed_in_the_same_instant(enclosed: Yard, mark: str) -> None:
    enclosed.job(HIDDEN, run=["python", "task.py", mark])
    process = enclosed.start("run", "job.yaml")
    wait_until(lambda: survivors(f"{mark}\0hidden"), "the daemon is up")
    supervisor = supervisor_of(process.pid)
    os.kill(supervisor, signal.SIGSTOP)  # it will not even see that tfyard is dead
    for pid in (process.pid, supervisor):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not survivors(mark), "everybody is gone")


LOOK = """
import os
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
print(os.getpid() == int(os.readlink("/proc/self")), os.getpid() in pids, len(pids))
"""


@pytest.mark.parametrize(
    "volumes", [{}, {"out": {"claim": "c", "at": "/tfyard-test-out"}}], ids=["", "mounts"]
)
def test_a_task_finds_itself_in_proc_and_nobody_else(enclosed: Yard, volumes: dict[str, object]) -> None:
    enclosed.job(LOOK, volumes=volumes)
    assert enclosed.run().lines("worker-0") == ["True True 2"]  # the other one is process 1


@pytest.mark.parametrize("through", OPEN.values(), ids=OPEN)
def test_where_it_is_forbidden_tasks_run_among_all_others(yard: Yard, through: tuple[str, ...]) -> None:
    _try(*through, "true")
    yard.through = list(through)
    yard.job("import os; print(os.readlink('/proc/self/ns/pid'))")
    assert yard.run().lines("worker-0") == [str(Path("/proc/self/ns/pid").readlink())]
