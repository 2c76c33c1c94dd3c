"""`tfyard cp`, as a process of its own."""

from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tfyard.cli.cp import InJob, in_job

JOB = """\
name: volumes
image: example/train:1
run: mkdir -p /out/model && echo trained > /out/model/weights && ln -sf weights /out/model/latest
worker: 1
volumes: {out: {claim: results, at: /out}}
"""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("mnist:/out/model", InJob("mnist", "/out/model")),
        ("mnist:worker-1:/tmp/x", InJob("mnist", "/tmp/x", "worker-1")),
        ("mnist:/out/a:b", InJob("mnist", "/out/a:b")),
        ("@latest:code", InJob("@latest", "code")),
        ("./a:b", None),
        ("/a:b", None),
        ("model", None),
        (":x", None),
    ],
)
def test_a_path_in_a_job_is_distinguished_from_a_path_on_this_machine(text: str, meant: InJob | None) -> None:
    assert in_job(text) == meant


def test_a_command_line_that_is_wrong_says_what_to_write() -> None:
    for words, text in ((("a", "b"), "none is"), (("a:/b", "c:/d"), "both are")):
        done = tfyard("cp", *words)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "one of SOURCE and DESTINATION must be in a job" in done.err
        assert text in done.err


@pytest.mark.processes
def test_the_same_words_copy_from_a_run_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    assert tfyard("run", "job.yaml", cwd=tmp_path).code == 0
    done = tfyard("cp", "volumes:/out/model", ".", "--local", cwd=tmp_path)
    assert (done.code, done.err) == (0, "tfyard: model: copied 1 file, 8 B\n")
    assert (tmp_path / "model" / "latest").read_text() == "trained\n"
    done = tfyard("cp", "volumes:/out/model/", "model", "--local", cwd=tmp_path)
    assert done.err == "tfyard: model: copied 0 files, 0 B; 1 there already\n"
    done = tfyard("cp", "volumes:/out/model/weights", "-", "--local", cwd=tmp_path)
    assert (done.code, done.out) == (0, "trained\n")
    done = tfyard("cp", "volumes:/out/model", "-", "--local", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "/out/model is a folder; only a file can be written to standard output" in done.err
    done = tfyard("cp", "model/weights", "volumes:/out/", "--local", cwd=tmp_path)
    assert (done.code, (tmp_path / done.err.split()[1][:-1]).read_text()) == (0, "trained\n")
    for words, text in (
        (("volumes:/elsewhere/x", "."), "/elsewhere/x is not on a volume that is kept; /out is"),
        (("volumes:/out/model", "job.yaml"), "job.yaml is a file, and would become a folder"),
    ):
        done = tfyard("cp", *words, "--local", cwd=tmp_path)
        assert (done.code != 0, text in done.err, done.err.count("\n")) == (True, True, 1), done.err
