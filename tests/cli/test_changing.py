"""`tfyard stop`, `resume`, `restart`, `rerun`, `scale`, `delete` and `diff` as commands."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.local.test_run_directory import make_run
from tests.cli.running import Result, read_terminal, tfyard
from tests.cli.test_get import set_status, tfjob
from tests.cli.test_main import imported
from tests.remote.acting.test_actions import Yard
from tfyard.kube import Access, ClusterEntry, kubeconfig, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane

COMMANDS = (("stop", "x"), ("rerun", "x"))
FOUR = ("stop ", "restart ", "rerun ", "delete ")
JOB_FILE = "name: first\nimage: example/mnist:1\nrun: python train.py\nworker: {count}\n"


@pytest.mark.parametrize("name", ["stop", "restart", "rerun", "delete", "resume"])
def test_the_help_of_each_command_explains_stop_restart_rerun_and_delete(name: str) -> None:
    lines = [line.strip() for line in tfyard(name, "--help").out.splitlines()]
    assert all(any(line.startswith(f"{word.strip():<9}") for line in lines) for word in FOUR)
    assert any(line.startswith(f"tfyard {name}") for line in lines)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_neither_asyncio_nor_aiohttp_is_imported(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(kubeconfig.dump(Access(ClusterEntry(server="http://127.0.0.1:1"))))
    monkeypatch.chdir(tmp_path)
    assert not {"asyncio", "aiohttp", "rich", "jinja2"} & imported(*words, "--kubeconfig", "config")


def test_an_unreachable_cluster_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(kubeconfig.dump(Access(ClusterEntry(server="http://127.0.0.1:1"))))
    done = tfyard("delete", "x", "--kubeconfig", "config", cwd=tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)


@pytest.mark.parametrize(
    "words",
    [
        *(("delete",), ("delete", "x", "-l", "a=b"), ("restart", "x"), ("restart", "x", "worker", "--all")),
        *((verb,) for verb in ("stop", "resume", "wait", "describe", "why")),
    ],
)
def test_a_command_without_a_target_or_with_too_many_says_what_to_name(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = tfyard(*words, cwd=tmp_path)
    assert (done.code, done.err.splitlines()[-1].startswith("Error: Name ")) == (2, True)


def test_a_count_that_is_no_number_is_refused_before_a_cluster_is_asked(tmp_path: Path) -> None:
    done = tfyard("scale", "x", "worker=many", "--kubeconfig", "/nowhere", cwd=tmp_path)
    assert (done.code, done.err) == (
        2,
        "tfyard: scale worker=many: must be a number from 0 to 100000, as in worker=4\n",
    )


PART, WHOLE = "short-2", "short-20261118-072000"
CHANGES = (
    *(
        ("stop", PART),
        ("resume", PART),
        ("rerun", PART),
        ("delete", PART, "--yes"),
        ("scale", PART, "worker=2"),
    ),
    *(("restart", PART, "--all"), ("exec", PART, "worker-0", "--", "true"), ("cp", "here", f"{PART}:/out/")),
)


def test_only_what_reads_takes_the_beginning_of_a_name_and_it_says_which_run_it_is(tmp_path: Path) -> None:
    make_run(tmp_path / ".tfyard", WHOLE, "short")
    needs = f"run '{PART}' not found; the whole name is needed to change a run; did you mean short?"
    for words in (*((verb, "--local", *others) for verb, *others in CHANGES), ("runs", "rm", PART)):
        refused = tfyard(*words, cwd=tmp_path)
        assert (refused.code, refused.err) == (1, f"tfyard: {needs}\n"), words
    for words in (("describe", PART, "--local"), ("runs", "show", PART)):
        shown = tfyard(*words, cwd=tmp_path)
        assert (shown.code, shown.err) == (0, f"tfyard: {PART} is the run {WHOLE}\n")
    assert tfyard("describe", "short", "--local", cwd=tmp_path).err == ""


@pytest.mark.cluster
def test_jobs_are_changed_and_deleted_by_commands(
    control_plane: ControlPlane, crds: None, namespace: str
) -> None:
    def run(*words: str) -> Result:
        return tfyard(*words, "-n", namespace, KUBECONFIG=str(control_plane.kubeconfig))

    with SyncClient(control_plane.admin) as client:
        for name in ("first", "second"):
            client.send(requests.create(TFJOBS.path(namespace), tfjob(name, team=name)))
    stopped = run("stop", "first")
    assert (stopped.code, stopped.out) == (0, "tfjob.kubeflow.org/first stopped\n")
    assert stopped.err.startswith(
        f"stop tfjob.kubeflow.org/first in the namespace {namespace}\n  stays: the job"
    )
    assert run("stop", "first").out == "tfjob.kubeflow.org/first unchanged: it is stopped already\n"
    told = json.loads(run("resume", "first", "-o", "json").out)
    assert (told["name"], told["is_changed"]) == ("first", True)
    assert told["results"] == ["tfjob.kubeflow.org/first resumed"]
    told = json.loads(run("resume", "first", "second", "-o", "json").out)
    assert [(each["name"], each["is_changed"]) for each in told] == [("first", False), ("second", False)]
    scaled = run("scale", "first", "worker=1")
    assert (scaled.out, "goes:  1 task (worker-1)" in scaled.err) == (
        "tfjob.kubeflow.org/first scaled\n",
        True,
    )
    assert json.loads(run("rerun", "first", "-o", "json").out)["created"] == "first-2"
    for verb in ("delete", "stop", "resume"):
        wrong = run(verb, "first", "frist", "x")
        assert (wrong.code, wrong.out, wrong.err.count("not found")) == (1, "", 2)
        assert "did you mean first?" in wrong.err
    assert run("stop", "first", "second").out.splitlines() == [
        "tfjob.kubeflow.org/first stopped",
        "tfjob.kubeflow.org/second stopped",
    ]
    assert run("resume", "-l", "team=second").out == "tfjob.kubeflow.org/second resumed\n"
    assert run("stop", "-l", "team").out.splitlines() == [
        "tfjob.kubeflow.org/first unchanged: it is stopped already",
        "tfjob.kubeflow.org/first-2 stopped",
        "tfjob.kubeflow.org/second stopped",
    ]
    stopped = run("restart", "-l", "team=second", "--all")
    assert (stopped.code, "second is stopped; `tfyard resume second`" in stopped.err) == (1, True)
    assert "Error: Name tasks or roles" in run("restart", "-l", "team=second").err
    assert run("delete", "-l", "team=first", "--wait").out.splitlines() == [
        "tfjob.kubeflow.org/first deleted",
        "tfjob.kubeflow.org/first-2 deleted",
    ]
    assert [line.split()[0] for line in run("get", "--no-headers").out.splitlines()] == ["second"]


@pytest.mark.cluster
def test_diff_ends_with_0_1_or_2(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    def diff(*words: str) -> Result:
        return tfyard("diff", *words, "-n", namespace, cwd=tmp_path, KUBECONFIG=str(control_plane.kubeconfig))

    (tmp_path / "job.yaml").write_text(JOB_FILE.format(count=1))
    new = diff("job.yaml")
    assert (new.code, "+kind: TFJob" in new.out, new.err) == (1, True, "")
    rendered = tfyard("submit", "job.yaml", "-n", namespace, "--dry-run=client", cwd=tmp_path).out
    control_plane.kubectl("apply", "--server-side", "--field-manager=tfyard", "-f", "-", stdin=rendered)
    same = diff("job.yaml")
    assert (same.code, same.out) == (0, "")
    assert diff("job.yaml", "-o", "json").out == "[]\n"
    with SyncClient(control_plane.admin) as client:
        set_status(client, namespace, "first", {"phase": "Running", "cluster": {"dialect": "tf2"}})
    (tmp_path / "job.yaml").write_text(JOB_FILE.format(count=1).replace("mnist:1", "mnist:2"))
    changed = diff("job.yaml")
    assert (changed.code, "\n+" in changed.out) == (1, True)
    (found,) = json.loads(diff("job.yaml", "-o", "json").out)
    assert found["before"]["spec"] != found["after"]["spec"]
    assert "# spec.tfReplicaSpecs.Worker.template cannot change while the job runs" in changed.out


@pytest.mark.parametrize("file", ["gone.yaml", "bad.yaml", "good.yaml"])
def test_a_diff_that_cannot_be_made_ends_with_2(tmp_path: Path, file: str) -> None:
    (tmp_path / "bad.yaml").write_text("name: Bad Name\n")
    (tmp_path / "good.yaml").write_text(JOB_FILE.format(count=1))
    done = tfyard("diff", file, "--kubeconfig", "/nowhere", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err


@pytest.mark.processes
@pytest.mark.parametrize(("answer", "code", "stays"), [("n", 1, True), ("y", 0, False)])
def test_a_person_at_a_terminal_is_asked(tmp_path: Path, answer: str, code: int, stays: bool) -> None:
    (tmp_path / "x.py").write_text("pass")
    assert tfyard("run", "x.py", "-q", cwd=tmp_path).code == 0
    (run,) = (tmp_path / ".tfyard" / "runs").iterdir()
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tfyard", "delete", "x", "--local"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said = read_terminal(ours)
    assert process.wait(60) == code
    assert ("Go on? [y/N]" in said, run.exists()) == (True, stays)
    assert ("nothing was changed" in said) == stays


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("restart", "first", "worker-0"), "first: this ends the wait only; its tasks start again"),
        (("delete", "first", "--wait"), "first: this ends the wait only; the job and its pods are deleted"),
    ],
    ids=["restart", "delete"],
)
def test_ctrl_c_ends_the_wait_and_says_what_goes_on(
    control_plane: ControlPlane, crds: None, namespace: str, words: tuple[str, ...], line: str
) -> None:
    with SyncClient(control_plane.admin) as client:
        yard = Yard(control_plane, client, namespace)
        job = yard.job("first")
        yard.pod(job, "worker", 0)
        client.send(requests.patch(job.path, {"metadata": {"finalizers": ["example.com/held"]}}))
        command = [sys.executable, "-m", "tfyard", *words, "-n", namespace]
        env = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}
        with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert any(said.startswith("tfyard: waiting: ") for said in process.stderr)  # up to that line
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        client.send(requests.patch(job.path, {"metadata": {"finalizers": None}}))
    assert (process.returncode, rest) == (130, f"tfyard: {line}\n")
