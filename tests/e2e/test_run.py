"""`tfyard run` with real processes: the semantics that the cluster has, on this machine."""

import json
import os
import re
import shutil
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.e2e.conftest import Event, Outcome, Yard, read_until, survivors
from tfyard.local.ports import FIRST, LAST

pytestmark = pytest.mark.processes

# Each start of a task appends to a file; `TRY` is how many there were before.
COUNT = """
import os, sys, time, signal, json
log = open(os.environ["TASK_NAME"] + ".starts", "a+"); log.write("x"); log.flush(); log.seek(0)
TRY = len(log.read()) - 1
"""
NAMED = {"ROLE": "$(JOB_NAME)", "TASK_NAME": "$(JOB_NAME)-$(TASK_INDEX)"}


def outcome_of(out: str, task: str) -> str:
    """As the table at the end of a run has it."""
    return next(line.split()[1] for line in out.splitlines() if re.match(rf"{task} +[A-Z]", line))


def test_a_job_whose_only_task_succeeds_exits_with_0(yard: Yard) -> None:
    yard.job("print('hello')")
    outcome = yard.run()
    assert outcome.code == 0
    assert outcome.lines("worker-0") == ["hello"]
    assert [c["type"] for c in outcome.status["conditions"]] == ["Created", "Running", "Succeeded"]


def test_every_task_learns_its_place_from_tf_config(yard: Yard) -> None:
    yard.job(
        "import os, json; c = json.loads(os.environ['TF_CONFIG']); print(json.dumps(c))",
        chief=1,
        worker=2,
        ps={"count": 1, "restart": "never"},
        success="chief",
    )
    outcome = yard.run()
    assert outcome.code == 0
    config = json.loads(outcome.lines("chief-0")[0])
    assert config["task"] == {"type": "chief", "index": 0}
    assert {role: len(hosts) for role, hosts in config["cluster"].items()} == {
        "chief": 1,
        "ps": 1,
        "worker": 2,
    }
    addresses = [address for hosts in config["cluster"].values() for address in hosts]
    assert len(set(addresses)) == 4
    assert all(address.startswith("127.0.0.1:") for address in addresses)


def test_a_lone_task_has_no_tf_config(yard: Yard) -> None:
    yard.job("import os; print(os.environ.get('TF_CONFIG', 'none'))")
    assert yard.run(TF_CONFIG="{}").lines("worker-0") == ["none"]


@pytest.mark.parametrize(
    ("restart", "code", "starts", "exit_code"),
    [
        pytest.param("never", 3, 1, 3, id="never fails the job with the task's own code"),
        pytest.param("never", 137, 1, 137, id="never does not restart a killed task either"),
        pytest.param("on-failure", 3, 2, 0, id="on-failure runs it again"),
        pytest.param("exit-code", 3, 1, 3, id="exit-code gives up on a code below 128"),
        pytest.param("exit-code", 130, 2, 0, id="exit-code runs it again after a code of 128 and more"),
    ],
)
def test_restart_policies(yard: Yard, restart: str, code: int, starts: int, exit_code: int) -> None:
    yard.job(f"{COUNT}\nsys.exit({code} if TRY == 0 else 0)", restart=restart, env=NAMED)
    outcome = yard.run()
    assert outcome.starts("worker-0") == starts
    assert outcome.code == exit_code


def test_death_by_a_signal_is_a_code_of_128_and_more(yard: Yard) -> None:
    script = f"{COUNT}\nif TRY == 0: os.kill(os.getpid(), signal.SIGSEGV)"
    yard.job(script, restart="exit-code", env=NAMED)
    outcome = yard.run()
    assert [event["code"] for event in outcome.of("ended")] == [139, 0]
    assert outcome.status["tasks"]["Worker"]["attempts"] == {"0": 1}


def test_always_runs_a_task_again_even_after_success_until_the_chief_is_done(yard: Yard) -> None:
    script = f"""{COUNT}
if os.environ["ROLE"] == "chief":
    while not os.path.exists('again'): time.sleep(.05)
elif TRY: open('again', 'w')
"""
    yard.job(script, chief=1, worker={"restart": "always"}, env=NAMED)
    outcome = yard.run()
    assert outcome.code == 0
    assert outcome.starts("worker-0") >= 2


def test_a_parameter_server_that_never_ends_is_stopped_when_the_chief_is_done(yard: Yard) -> None:
    script = "import os, time\nif os.environ['ME'] != 'chief': time.sleep(1000)"
    yard.job(script, chief={"env": {"ME": "chief"}}, worker=1, ps=2, env={"ME": "other"})
    outcome = yard.run()
    assert outcome.code == 0
    assert {event["task"]: event["code"] for event in outcome.of("ended")} == {
        "chief-0": 0,
        "worker-0": 143,
        "ps-0": 143,
        "ps-1": 143,
    }
    record = json.loads((outcome.directory / "run.json").read_text())
    assert {task["name"]: task["outcome"] for task in record["tasks"]} == {
        "chief-0": "Succeeded",
        "worker-0": "Stopped",
        "ps-0": "Stopped",
        "ps-1": "Stopped",
    }


def test_all_workers_waits_for_the_last_one(yard: Yard) -> None:
    yard.job(
        "import time, os; time.sleep(.3 * int(os.environ['I']))",
        worker=2,
        success="all-workers",
        env={"I": "$(TASK_INDEX)"},
    )
    assert [event["code"] for event in yard.run().of("ended")] == [0, 0]


def test_a_failed_worker_fails_the_job_and_its_traceback_is_in_the_message(yard: Yard) -> None:
    script = (
        "import os, time\nif os.environ['I'] == '1': raise ValueError('bad learning rate')\ntime.sleep(1000)"
    )
    yard.job(script, worker=2, env={"I": "$(TASK_INDEX)"})
    outcome = yard.run()
    assert outcome.code == 1
    assert "worker-1 exited with code 1" in outcome.message
    assert outcome.message.endswith("ValueError: bad learning rate")


def test_a_missed_deadline_exits_with_124(yard: Yard) -> None:
    yard.job("import time; time.sleep(1000)", deadline="1s")
    outcome = yard.run()
    assert outcome.code == 124
    assert outcome.status["failure"]["cause"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("restart", "code", "retries", "told"),
    [
        ("on-failure", 7, 0, "(0 restarts allowed): worker-0 exited with code 7"),
        ("on-failure", 7, 1, "(1 restart allowed): worker-0 exited with code 7 after 1 restart"),
        ("on-failure", 7, 2, "(2 restarts allowed): worker-0 exited with code 7 after 2 restarts"),
        ("always", 7, 1, "(1 restart allowed): worker-0 exited with code 7 after 1 restart"),
        ("exit-code", 200, 2, "(2 restarts allowed): worker-0 exited with code 200"),
    ],
)
def test_retries_is_how_often_tasks_are_restarted_in_place_or_replaced(
    yard: Yard, restart: str, code: int, retries: int, told: str
) -> None:
    yard.job(f"import sys; sys.exit({code})", restart=restart, retries=retries)
    outcome = yard.run()
    assert (outcome.code, outcome.starts("worker-0")) == (code, retries + 1)
    assert outcome.status["failure"]["cause"] == "BackoffLimitExceeded"
    assert outcome.message.endswith(told)
    (task,) = json.loads((outcome.directory / "run.json").read_text())["tasks"]
    assert (task["outcome"], task["exit_code"], task["starts"]) == ("Failed", code, retries + 1)
    counts = outcome.status["replicaStatuses"]["Worker"]
    assert (counts["failed"], counts.get("active", 0)) == (1, 0)
    last = outcome.status["endings"][-1]
    assert (last["task"], last["exitCode"], last["reason"]) == ("worker-0", code, "Error")
    assert last["attempt"] - 1 + last.get("restart", 0) == retries
    assert last["started"] <= last["finished"]


def test_a_limit_is_for_all_tasks_together(yard: Yard) -> None:
    script = "import os, sys, time\nif os.environ['TASK_NAME'] == 'worker-0': sys.exit(7)\ntime.sleep(1000)"
    yard.job(script, restart="on-failure", retries=1, worker=2, env=NAMED)
    outcome = yard.run()
    assert (outcome.starts("worker-0"), outcome.starts("worker-1")) == (2, 1)


def test_a_job_with_no_time_to_live_leaves_no_run_behind(yard: Yard) -> None:
    yard.job("print('x')", keepFor="0s")
    done = yard.tfyard("run", "job.yaml")
    assert done.returncode == 0
    assert list((yard.folder / ".tfyard" / "runs").iterdir()) == []


def test_a_run_is_removed_once_its_time_to_live_is_over(yard: Yard) -> None:
    yard.job("print('x')", keepFor="1s")
    yard.tfyard("run", "job.yaml")
    runs = yard.folder / ".tfyard" / "runs"
    assert len(list(runs.iterdir())) == 1
    (run,) = runs.iterdir()
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "expires": record["started"]}))
    assert "no runs yet" in yard.tfyard("runs").stdout
    assert list(runs.iterdir()) == []


UP = """
import os, signal, sys, time
me = os.environ["TFYARD_CONTAINER"].partition("/")[0].removeprefix("t-")  # the name of its pod
began = f".tfyard/{{me}}.began"
if os.path.exists(began): sys.exit(0)
open(began, "w").close()
{}
print("up", flush=True)
time.sleep(30)
"""
"""Says that it is up, and waits for its end; its second attempt succeeds."""


def rehearsed(
    yard: Yard, kill: str, tasks: int = 1, seen: Callable[[Event], None] = lambda _event: None
) -> Outcome:
    """A run with `--kill`, so many seconds after its start that this many tasks were up by then."""
    for seconds in (1, 4, 16):
        outcome = yard.watch(seen, "--kill", kill.format(f"{seconds}s"))
        told = [event.get("text", "") for event in outcome.events]
        sent = next((at for at, text in enumerate(told) if text.startswith("--kill: SIG")), 0)
        if told[:sent].count("up") == tasks:
            return outcome
        shutil.rmtree(yard.folder / ".tfyard")  # the machine is busy
        for made in ("gone", "shown"):
            (yard.folder / made).unlink(missing_ok=True)
    raise AssertionError("the tasks are not up")


def test_a_rehearsed_preemption_replaces_the_task_and_costs_no_retry(yard: Yard) -> None:
    yard.job(UP.format(""), retries=0)
    outcome = rehearsed(yard, "worker-0@{}")
    assert outcome.code == 0
    assert outcome.starts("worker-0") == 2
    assert outcome.status["replicaStatuses"]["Worker"].get("restarts", 0) == 0


STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


def kills(outcome: Outcome) -> list[str]:
    notes = [event["text"] for event in outcome.of("note")]
    return [text.removeprefix("--kill: ") for text in notes if text.startswith("--kill: ")]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (
            "{}",
            ["SIGTERM to worker-0, 1 s grace", "worker-0 did not end within 1 s of SIGTERM and was killed"],
        ),
        ("{}:now", ["SIGKILL to worker-0"]),
    ],
    ids=["SIGTERM", "SIGKILL"],
)
def test_a_rehearsal_says_which_signal_it_sends_and_what_became_of_the_task(
    yard: Yard, when: str, expected: list[str]
) -> None:
    overlay = {"spec": {"terminationGracePeriodSeconds": 1}}
    yard.job(UP.format(STUBBORN), overlay=overlay)
    outcome = rehearsed(yard, f"worker-0@{when}")
    assert outcome.code == 0
    assert [event["code"] for event in outcome.of("ended")] == [137, 0]
    assert [text.removesuffix(" (SIGKILL)") for text in kills(outcome)] == expected


def test_a_task_that_ends_in_its_grace_period_is_reported_with_its_code(yard: Yard) -> None:
    yard.job(UP.format(""))
    sent, ended = kills(rehearsed(yard, "worker-0@{}"))
    assert sent == "SIGTERM to worker-0, 30 s grace"
    assert re.fullmatch(r"worker-0 ended with code 143, \d+\.\d s after SIGTERM", ended)


WAIT_FOR = """
def wait_for(name):
    for _ in range(600):
        if os.path.exists(name): return
        time.sleep(.05)
"""
SAVES = f"""{WAIT_FOR}
signal.signal(signal.SIGTERM, lambda *_: open("gone", "w").close())
print("up", flush=True)
wait_for("gone")
os._exit(42)  # while Python ends in the ordinary way, SIGTERM would kill it
"""


@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
def test_tasks_that_save_and_end_when_one_is_evicted_all_start_again_at_no_retry(
    yard: Yard, together: bool
) -> None:
    """As with PreemptionCheckpointHandler: all workers end with 42, and the job goes on."""
    yard.job(UP.format(SAVES), worker=2, success="all-workers", retries=0, together=together)
    outcome = rehearsed(yard, "worker-1@{}", 2)
    assert outcome.code == 0
    codes = [event["code"] for event in outcome.of("ended")]
    assert (codes.count(42), codes.count(0)) == (2, 2), "a replacement may have started before its peer ended"
    assert outcome.status.get("restarts", 0) == 0
    assert outcome.status["disruption"]["tasks"] == ["worker-1"]
    assert outcome.status["disruption"]["restarted"]
    assert kills(outcome)[-1].endswith("as TensorFlow does after it has saved a checkpoint")


def test_the_wait_for_a_task_that_does_not_stop_is_shown(yard: Yard) -> None:
    stays = """
if me == "worker-1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("gone", "w").close()
    wait_for("shown")
    sys.exit(0)
wait_for("gone")
sys.exit("connection reset by peer")
"""

    def is_shown(event: Event) -> None:
        if str(event.get("text")).startswith("waiting for"):
            yard.write("shown", "")

    yard.job(UP.format(WAIT_FOR + stays), worker=2, success="all-workers")
    outcome = yard.watch(is_shown)
    assert outcome.code == 1
    (shown,) = [e["text"] for e in outcome.of("note") if e["text"].startswith("waiting for")]
    assert re.fullmatch(r"waiting for worker-1 to stop; SIGKILL follows in [12]\d s", shown)


def test_a_job_ends_with_its_program_although_a_sidecar_never_would(yard: Yard) -> None:
    """The sidecar that fails, and is restarted, counts against no limit either."""
    sidecars = [
        {"name": "proxy", "image": "none", "command": ["sleep", "1000"]},
        {"name": "broken", "image": "none", "command": ["false"]},
    ]
    overlay = {"spec": {"containers": sidecars}}
    yard.job("import time; time.sleep(.5)", restart="on-failure", retries=1, overlay=overlay)
    outcome = yard.run()
    assert outcome.code == 0
    assert [event["stopped"] for event in outcome.of("ended", "worker-0.proxy")] == ["the job has ended"]


def test_an_evaluator_may_go_on_for_its_grace(yard: Yard) -> None:
    script = "import os, time\nif os.environ['ME'] == 'evaluator': time.sleep(1); print('judged')"
    yard.job(script, worker=1, evaluator={"grace": "30s"}, env={"ME": "$(JOB_NAME)"})
    outcome = yard.run()
    assert outcome.code == 0
    assert outcome.lines("evaluator-0") == ["judged"]


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        pytest.param("sys.exit(0)", "Succeeded", id="with code 0: it succeeded"),
        pytest.param("sys.exit(1)", "Failed", id="with code 1: it failed"),
    ],
)
def test_who_ends_by_itself_is_not_called_stopped_although_the_job_is_over(
    yard: Yard, end: str, outcome: str
) -> None:
    script = f"import os, sys, time\nif os.environ['ME'] == 'evaluator': time.sleep(1); {end}"
    yard.job(script, worker=1, evaluator={"grace": "30s"}, env={"ME": "$(JOB_NAME)"})
    done = yard.tfyard("run", "job.yaml")
    assert done.returncode == 0
    assert outcome_of(done.stdout, "evaluator-0") == outcome


def test_who_is_stopped_since_the_job_is_over_is_told_so(yard: Yard) -> None:
    script = "import os, sys, time, signal\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    script += "if os.environ['I'] == '0':\n    while not os.path.exists('up'): time.sleep(.05)\n"
    script += "else: open('up', 'w'); time.sleep(1000)"
    yard.job(script, worker=2, env={"I": "$(TASK_INDEX)"})
    done = yard.tfyard("run", "job.yaml")
    assert done.returncode == 0
    assert "worker-1 ── stopped: the job has ended\n" in done.stdout
    assert "worker-0 ── ended with code 0\n" in done.stdout
    assert [outcome_of(done.stdout, f"worker-{i}") for i in (0, 1)] == ["Succeeded", "Stopped"]


def test_who_has_ended_before_ctrl_c_keeps_its_outcome(yard: Yard) -> None:
    script = "import os, sys, time\nif os.environ['I'] == '1': sys.exit(0)\ntime.sleep(1000)"
    yard.job(script, worker=2, env={"I": "$(TASK_INDEX)"})
    process = yard.start("run", "job.yaml")
    read_until(process, "worker-1 ── ended with code 0")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert [outcome_of(out, f"worker-{i}") for i in (0, 1)] == ["Stopped", "Succeeded"]


def test_ctrl_c_stops_the_tasks_and_exits_with_130(yard: Yard) -> None:
    yard.job("import time; print('up', flush=True); time.sleep(1000)", worker=2)
    process = yard.start("run", "job.yaml")
    read_until(process, " │ up")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted" in out
    assert "worker-1 ── stopped: the run was interrupted\n" in out
    assert [outcome_of(out, task) for task in ("worker-0", "worker-1")] == ["Stopped", "Stopped"]
    assert not survivors(str(yard.folder / "task.py"))


def test_a_run_under_nohup_outlives_its_terminal(yard: Yard) -> None:
    yard.job("import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(.02)")
    yard.through = ["nohup"]
    process = yard.start("run", "job.yaml")
    read_until(process, " │ up")
    process.send_signal(signal.SIGHUP)
    yard.write("go", "")
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_the_last_event_tells_how_a_run_ended_be_it_by_ctrl_c(yard: Yard) -> None:
    yard.job("import time; print('up', flush=True); time.sleep(1000)")
    process = yard.start("run", "job.yaml", "-o", "json")
    read_until(process, '"up"')
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    last = json.loads(out.splitlines()[-1])
    assert (last["event"], last["phase"], last["code"]) == ("over", "Interrupted", 130)
    yard.job("raise SystemExit(3)")
    last = yard.run().events[-1]
    assert (last["event"], last["phase"], last["code"]) == ("over", "Failed", 3)
    assert (yard.folder / last["directory"] / "run.json").exists()


def test_a_second_ctrl_c_kills_tasks_that_ignore_the_first(yard: Yard) -> None:
    mark = f"stubborn-{os.getpid()}"
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)"
    script += "\nwhile 1: time.sleep(1)"
    overlay = {"spec": {"terminationGracePeriodSeconds": 600}}
    yard.job(script, run=["python", "task.py", mark], overlay=overlay)
    process = yard.start("run", "job.yaml")
    read_until(process, " │ up")
    process.send_signal(signal.SIGINT)
    read_until(process, "stopping")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not survivors(mark)


def test_ports_that_others_listen_on_are_passed_over(yard: Yard) -> None:
    with ExitStack() as stack:
        taken = {f"127.0.0.1:{stack.enter_context(listener()).getsockname()[1]}" for _ in range(2)}
        yard.job("import os; print(os.environ['TF_CONFIG'])", worker=2)
        config = json.loads(yard.run().lines("worker-0")[0])
    assert not taken & set(config["cluster"]["worker"])


def listener() -> socket.socket:
    """On the first port of those for tasks that nobody has."""
    for port in range(FIRST, LAST):
        found = socket.socket()
        try:
            found.bind(("127.0.0.1", port))
        except OSError:
            found.close()
            continue
        found.listen()
        return found
    raise AssertionError("no port is free")


def test_two_runs_at_once_take_different_ports(yard: Yard) -> None:
    script = "import os, time; print(os.environ['TF_CONFIG'], flush=True)\n"
    yard.job(f"{script}while not os.path.exists('go'): time.sleep(.05)", worker=2)
    runs = [yard.start("run", "job.yaml", "-o", "json") for _ in range(2)]
    lines = [json.loads(read_until(run, '"event":"log"')) for run in runs]
    yard.write("go", "")
    assert [run.wait(60) for run in runs] == [0, 0]
    assert len({host for line in lines for host in json.loads(line["text"])["cluster"]["worker"]}) == 4


def test_64_tasks_all_run(yard: Yard) -> None:
    yard.job("print('here')", worker=64, success="all-workers")
    outcome = yard.run()
    assert outcome.code == 0
    assert len(outcome.of("ended")) == 64
    assert outcome.status["tasks"]["Worker"]["finished"] == "0-63"


def test_a_container_without_a_command_is_refused_with_the_fix(yard: Yard) -> None:
    yard.write("job.yaml", "name: t\nimage: some/image\nworker: 1\n")
    done = yard.tfyard("run", "job.yaml")
    assert done.returncode == 2
    assert "has no command" in done.stderr
    assert "run" in done.stderr
    assert not (yard.folder / ".tfyard").exists()


def test_a_program_that_does_not_exist_fails_as_on_a_cluster(yard: Yard) -> None:
    yard.job("", run=["no-such-program"])
    outcome = yard.run()
    assert outcome.code == 128
    assert "no-such-program" in outcome.message
