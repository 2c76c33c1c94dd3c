import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import DATA, ROOT, tfyard
from tests.formats.samples import EVERY
from tfyard import formats

VALID = b"name: mnist\nimage: a\nworker: 2\n"
BROKEN = b"name: mnist\nimage: a\nwroker: 2\nps: -1\n"
OTHER = b"apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"

HOSTILE: dict[str, bytes] = {
    "an alias bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (n + 1, n + 1, b",".join([b"*%c" % n] * 9)) for n in range(97, 106)),
    "a hundred thousand brackets": b"[" * 100_000,
    "a hundred thousand dashes": b"- " * 100_000,
    "a tag of Python's": b"!!python/object/apply:os.system [id]",
    "a key twice": b"name: a\nname: b\nimage: c\n",
    "bytes that are no text": bytes(range(128, 256)),
    "UTF-16": "name: a\n".encode("utf-16"),
    "a zero byte": b"name: a\x00b\n",
    "an escape to the terminal": b'kind: "\\e[2J"\n',
    "an integer without end": b"name: a\nworker: " + b"9" * 100_000,
    "a scalar without end": b"name: " + b"a" * (1 << 20),
    "an open quote": b'name: "a\n',
    "a tab": b"name:\n\tfirst: a\n",
    "half a surrogate": b'{"name": "\\ud800"}',
    "numbers that are none": b"name: a\nimage: b\nworker: .nan\ncpu: .inf\n",
    "a thousand documents": b"---\nname: A\n" * 1000,
}


def test_a_version_that_clusters_do_not_serve_by_default_is_told_and_valid() -> None:
    done = tfyard("validate", DATA / "seeds/004-example-tfjob.yaml")
    assert done.code == 0
    assert (
        "note: tensorflow.org/v1alpha1 is not served by default; `tfyard crds --versions all` serves it"
        in done.err
    )
    assert "`tfyard convert` writes v1" in done.err
    assert tfyard("validate", DATA / "manifests/v1-dist-mnist.yaml").err == ""


def test_a_valid_file_is_said_to_be_valid() -> None:
    done = tfyard("validate", DATA / "manifests/v1-dist-mnist.yaml")
    assert done.code == 0
    assert done.out.endswith("dist-mnist-for-e2e-test is valid: 1 Chief, 2 Worker, 1 PS\n")
    assert done.err == ""


def test_every_sample_is_valid_in_one_call() -> None:
    done = tfyard("validate", *EVERY)
    assert (done.code, done.out.count(" is valid: ")) == (0, len(EVERY))


def test_all_problems_are_shown_with_their_lines_as_a_compiler_does(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(BROKEN)
    done = tfyard("validate", "job.yaml", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "job.yaml:3:1: error: wroker: unknown field 'wroker'\n"
        "    wroker: 2\n"
        "    ^\n"
        "  fix: did you mean worker?\n"
        "job.yaml:4:5: error: ps: must be a number from 0 to 100000\n"
        "    ps: -1\n"
        "        ^\n"
    )


def test_a_file_is_read_from_standard_input() -> None:
    done = tfyard("validate", "-", stdin=BROKEN)
    assert (done.code, done.err.count("<stdin>:")) == (1, 2)
    assert tfyard("validate", "-", stdin=VALID).out == "<stdin>: mnist is valid: 2 Worker\n"


def test_one_invalid_file_makes_the_command_fail_and_all_files_are_reported(tmp_path: Path) -> None:
    for name, text in {"a.yaml": VALID, "b.yaml": BROKEN, "c.yaml": VALID}.items():
        (tmp_path / name).write_bytes(text)
    done = tfyard("validate", "a.yaml", "b.yaml", "c.yaml", cwd=tmp_path)
    assert done.code == 1
    assert done.out.splitlines() == ["a.yaml: mnist is valid: 2 Worker", "c.yaml: mnist is valid: 2 Worker"]


def test_warnings_alone_are_valid() -> None:
    done = tfyard("validate", "-", stdin=b"name: a\nimage: b\nps: 1\n")
    assert done.code == 0
    assert "warning: the job has only parameter servers" in done.err


def test_other_kinds_are_passed_over_also_inside_a_list() -> None:
    done = tfyard("validate", "-", stdin=OTHER + b"---\n" + VALID)
    passed_over = "<stdin>: passed over: this Service is not part of the job; keep it if you need it"
    assert (done.code, done.out.splitlines()[0]) == (0, passed_over)
    done = tfyard("validate", DATA / "manifests/list.yaml")
    assert (done.code, done.out.count("is valid"), done.out.count("passed over")) == (1, 1, 1)
    assert ":28:19: error: spec.tfReplicaSpecs[Worker].replicas" in done.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"just some words\n", 'this is text, not a job: a job file is a mapping such as "name: mnist"'),
        (b"- a\n", 'this is a list, not a job: a job file is a mapping such as "name: mnist"'),
        (b"5\n", 'this is a whole number, not a job: a job file is a mapping such as "name: mnist"'),
        (b"kind: PyTorchJob\n", "PyTorchJob is not a kind that tfyard reads; TFJob is"),
        (b"apiVersion: v1\n", "it has no kind; that of a job is TFJob"),
    ],
)
def test_documents_that_are_passed_over_are_reported_with_the_reason(text: bytes, words: str) -> None:
    assert tfyard("validate", "-", stdin=text).out == f"<stdin>: passed over: {words}\n"


def test_a_kind_in_wrong_letters_is_not_passed_over() -> None:
    done = tfyard("validate", "-", stdin=b"apiVersion: kubeflow.org/v1\nkind: TFjob\n")
    assert (done.code, "did you mean TFJob?" in done.err) == (1, True)


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only a comment\n", b"---\n---\n"])
def test_an_empty_file_is_an_error(text: bytes) -> None:
    done = tfyard("validate", "-", stdin=text)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "<stdin>: error: the file is empty\n  fix: `tfyard init` writes a job file to start from\n"
    )
    (row,) = json.loads(tfyard("validate", "-o", "json", "-", stdin=text).out)
    assert (row["file"], row["message"]) == ("<stdin>", "the file is empty")


def test_what_run_reads_from_the_same_file_is_not_called_passed_over() -> None:
    objects = b"".join(
        b"apiVersion: v1\nkind: %s\nmetadata: {name: a}\n---\n" % kind for kind in (b"Secret", b"ConfigMap")
    )
    assert tfyard("validate", "-", stdin=objects + VALID).out.splitlines() == [
        "<stdin>: Secret a: not checked; `tfyard run` uses it",
        "<stdin>: ConfigMap a: not checked; `tfyard run` uses it",
        "<stdin>: mnist is valid: 2 Worker",
    ]
    assert tfyard("validate", "-", stdin=b"kind: Secret\nmetadata: 5\n").code == 0


def test_code_in_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/job.yaml").write_bytes(VALID + b"code: program\n")
    done = tfyard("validate", "jobs/job.yaml", cwd=tmp_path)
    assert done.code == 1
    assert done.err.startswith("jobs/job.yaml:4:7: error: code: jobs/program is not a folder\n")
    (tmp_path / "jobs/program").mkdir()
    assert tfyard("validate", "jobs/job.yaml", cwd=tmp_path).code == 0


@pytest.mark.parametrize("command", ["validate", "run"])
@pytest.mark.parametrize("name", ["/dev/zero", "-", "huge.yaml"])
def test_endless_input_is_refused_in_little_memory(command: str, name: str, tmp_path: Path) -> None:
    """512 MiB of addresses are enough for Python, and not for the input."""
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(4 << 30)
    endless = Path("/dev/zero").open("rb")  # noqa: SIM115
    with endless:
        done = subprocess.run(
            ["sh", "-c", 'ulimit -v 524288; exec "$@"', "sh", sys.executable, "-m", "tfyard", command, name],
            cwd=tmp_path,
            stdin=endless,
            capture_output=True,
            text=True,
            check=False,
        )
    shown = "<stdin>" if name == "-" else name
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{shown}: error: the input has ")
    assert done.stderr.endswith(" bytes; at most 16,777,216 are allowed\n  fix: split the file\n")


HARMFUL = b"""\
name: mnist
image: a
code: {git: "--upload-pack=touch taken"}
workdir: src
volumes:
  a: {claim: ../../root, at: /a}
  b: {hostPath: /tmp, at: /a, subPath: ../etc}
"""
HARMFUL_TFJOB = b"""\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: tensorflow
            image: a
            command: [cat, /a/shadow]
            volumeMounts: [{name: a, mountPath: /a, subPath: ../../etc}]
          volumes: [{name: a, persistentVolumeClaim: {claimName: ../../root}}]
"""


@pytest.mark.parametrize("command", ["validate", "run", "render"])
@pytest.mark.parametrize(
    ("text", "positions"),
    [
        (HARMFUL, ["3:13", "4:10", "6:14", "7:27", "7:40"]),
        (HARMFUL_TFJOB, ["13:62", "14:66"]),
        (b'name: a\nimage: b\nrun: x\ncode: "http://127.0.0.1/a b.zip"\n', ["4:7"]),
    ],
    ids=["job file", "TFJob", "a blank in an address"],
)
def test_harmful_input_is_refused_at_once_by_every_command(
    command: str, text: bytes, positions: list[str], tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_bytes(text)
    done = tfyard(command, "job.yaml", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    found = [line for line in done.err.splitlines() if ": error: " in line]
    assert [line.removeprefix("job.yaml:").partition(": ")[0] for line in found] == positions
    assert done.err.count("  fix: ") == len(positions)
    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"]


def test_closed_input_is_a_usage_error() -> None:
    command = ["sh", "-c", '"$@" <&-', "sh", sys.executable, "-m", "tfyard", "validate", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "tfyard: -: standard input is closed\n")


@pytest.mark.parametrize("missing", ["no-such.yaml", "."])
def test_a_file_that_cannot_be_read_is_a_usage_error(missing: str, tmp_path: Path) -> None:
    done = tfyard("validate", missing, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tfyard: ")
    assert tfyard("validate").code == 2


def test_the_report_as_json_is_all_there_is_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(BROKEN + b"---\n" + OTHER)
    done = tfyard("validate", "-o", "json", "job.yaml", cwd=tmp_path)
    assert (done.code, done.err) == (1, "")
    first, second = json.loads(done.out)
    assert first == {
        "file": "job.yaml",
        "line": 3,
        "column": 1,
        "path": "wroker",
        "severity": "error",
        "message": "unknown field 'wroker'",
        "fix": "did you mean worker?",
    }
    assert second["value"] == -1
    assert json.loads(tfyard("validate", "-o", "json", "-", stdin=VALID).out) == []


def strict(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_input_is_answered_without_a_traceback(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(text)
    done = tfyard("validate", "bad.yaml", "-o", "json", cwd=tmp_path)
    rows = json.loads(done.out, parse_constant=strict)
    assert (done.code, bool(rows)) == ((0, False) if b"[2J" in text else (1, True))
    done = tfyard("validate", "bad.yaml", cwd=tmp_path)
    assert "\x1b" not in done.out + done.err
    assert len(done.err) < 1_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are text")
def test_a_file_name_that_is_no_text_can_be_named(tmp_path: Path) -> None:
    name = b"job\xff.yaml"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(VALID)
    done = tfyard("validate", name, cwd=tmp_path)
    assert (done.code, "mnist is valid" in done.out) == (0, True)


def test_the_pre_commit_hook_names_this_command_and_matches_job_files() -> None:
    import re

    (document,) = formats.read((ROOT / ".pre-commit-hooks.yaml").read_bytes())
    (hook,) = document.data
    assert (hook["entry"], hook["language"], hook["types"]) == ("tfyard validate", "python", ["yaml"])
    matched = ["job.yaml", "jobs/mnist-job.yml", "k8s/tfjob.yaml", "TF/my.tfyard.yaml"]
    passed = ["docker-compose.yml", ".github/workflows/ci.yml", "jobs/values.yaml", "job.json"]
    assert [name for name in matched + passed if re.search(hook["files"], name)] == matched


WORKER = b"""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: mnist-worker-0}
spec:
  template:
    spec:
      containers:
      - {name: tensorflow, image: a, command: [python, t.py, --ps_hosts=mnist-ps-0:2222, --job_name=worker]}
"""
SERVER = WORKER.replace(b"mnist-worker-0", b"mnist-ps-0").replace(b"=worker", b"=ps")


def test_the_workloads_of_all_files_are_one_cluster(tmp_path: Path) -> None:
    (tmp_path / "worker.yaml").write_bytes(WORKER)
    (tmp_path / "ps.yaml").write_bytes(SERVER + b"---\n" + OTHER)
    done = tfyard("validate", "worker.yaml", "ps.yaml", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert (
        done.out
        == "worker.yaml, ps.yaml: mnist is valid: 1 Worker, 1 PS; `tfyard convert` makes it a TFJob\n"
    )
    done = tfyard("validate", "worker.yaml", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "worker.yaml:7:7: error: " in done.err
    assert "not in the input: ps 0 (mnist-ps-0:2222)" in done.err
    (row,) = json.loads(tfyard("validate", "-o", "json", "worker.yaml", cwd=tmp_path).out)
    assert (row["file"], row["line"], row["severity"]) == ("worker.yaml", 7, "error")


def test_a_workload_beside_a_job_is_not_taken_for_one() -> None:
    done = tfyard("validate", "-", stdin=VALID + b"---\n" + WORKER)
    assert done.code == 0
    assert "this Deployment is not part of the job" in done.out


def test_a_config_with_resources_is_named_with_the_command_that_reads_it() -> None:
    done = tfyard("validate", ROOT / "compat/templates/config.yaml")
    assert (done.code, done.err) == (0, "")
    assert "passed over: it is a config with resources; `tfyard render`" in done.out


PLACEHOLDER = (
    b"name: a\nimage: <DOCKER_USERNAME>/tf-mnist:gpu\nrun: 'true'\ntensorboard: {logs: /l, image: A}\n"
)


def test_an_image_that_no_node_accepts_is_an_error_and_at_home_a_warning(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(PLACEHOLDER)
    for command in ("validate", "convert", "render"):
        done = tfyard(command, "job.yaml", cwd=tmp_path)
        assert (done.code, done.out) == (1, "")
        assert "job.yaml:2:8: error: image: is not the name of an image" in done.err
        assert "fix: replace <DOCKER_USERNAME> with a name of your own" in done.err
        assert "job.yaml:4:32: error: tensorboard.image: is not the name of an image" in done.err
    done = tfyard("run", "--dry-run", "job.yaml", cwd=tmp_path)
    assert (done.code, "job.yaml:2:8: warning: image: is not the name" in done.err) == (0, True)


@pytest.mark.parametrize("command", ["validate", "convert", "render"])
def test_a_restart_policy_that_is_overruled_is_told_by_every_command(command: str) -> None:
    done = tfyard(command, DATA / "seeds/001-module6-ex1-gpu.yaml")
    assert done.code == 0
    assert "template.spec.restartPolicy: has no effect: the role's own restartPolicy is used" in done.err
