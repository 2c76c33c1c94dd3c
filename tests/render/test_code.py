"""How the job's code gets into pods."""

import base64
import gzip
import http.server
import io
import os
import platform
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

from tests.job_input.repository import commit, git, repository
from tfyard.overview.job_record import told_commit, told_software
from tfyard.render import CodeFile
from tfyard.render.code import pack

from .calling import JOBS, Manifest, named, tfyard

SCRIPTS = Path("src/tfyard/render/scripts").resolve()
JOB = "name: a\nimage: x\nrun: python train.py\ncode: {source}\n"


def folder(tmp_path: Path, files: dict[str, bytes]) -> Path:
    (tmp_path / "job.yaml").write_text(JOB.format(source="program"))
    for name, data in files.items():
        path = tmp_path / "program" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "job.yaml"


def pod(objects: list[Manifest]) -> Manifest:
    spec: Manifest = named(objects, "TFJob", "a")["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    return spec


def test_a_few_plain_files_can_be_read_in_the_manifest_and_are_mounted_as_they_are(tmp_path: Path) -> None:
    objects = tfyard("render", folder(tmp_path, {"train.py": b"print(1)\n", "rates.csv": b"a,1\n"})).objects
    assert named(objects, "ConfigMap", "a-code")["data"] == {"rates.csv": "a,1\n", "train.py": "print(1)\n"}
    (container,) = pod(objects)["containers"]
    assert container["volumeMounts"] == [{"name": "tfyard-code", "mountPath": "/code"}]
    assert container["workingDir"] == "/code"
    assert "initContainers" not in pod(objects)


@pytest.mark.parametrize("form", ["tfjob", "plain", "legacy"])
def test_a_claim_for_the_code_is_left_to_submit_and_that_is_reported(tmp_path: Path, form: str) -> None:
    file = folder(tmp_path, {"train.py": b"print(1)\n"})
    file.write_text(JOB.format(source="{from: program, claim: data}"))
    done = tfyard("render", file, "--as", form)
    messages = [line for line in done.err.splitlines() if "code.claim" in line]
    assert messages == [
        f"tfyard: not in {form} objects: code.claim: manifests cannot put files on the claim data, so they have"
        " the code in a ConfigMap; `tfyard submit` puts it there"
    ]
    assert named(done.objects, "ConfigMap", "a-code")["data"] == {"train.py": "print(1)\n"}


@pytest.mark.parametrize("name", ["inner/model.py", "a file.py", "picture.png"])
def test_folders_odd_names_and_binary_files_are_packed(tmp_path: Path, name: str) -> None:
    data = b"\x89PNG\r\n" if name.endswith("png") else b"x = 1\n"
    objects = tfyard("render", folder(tmp_path, {"train.py": b"print(1)\n", name: data})).objects
    packed = named(objects, "ConfigMap", "a-code")["binaryData"]["code.tar.gz"]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as archive:
        assert archive.getnames() == sorted([name, "train.py"])
    (step,) = pod(objects)["initContainers"]
    assert step["image"] == "x"


@pytest.mark.processes
def test_the_init_container_unpacks_what_was_packed(tmp_path: Path) -> None:
    files = [CodeFile("inner/run.sh", b"echo hi\n", executable=True), CodeFile("train.py", b"print(1)\n")]
    (tmp_path / "code.tar.gz").write_bytes(pack(files))
    command = [
        sys.executable,
        "-W",
        "ignore",
        SCRIPTS / "unpack.py",
        tmp_path / "code.tar.gz",
        tmp_path / "out",
    ]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "out" / "train.py").read_bytes() == b"print(1)\n"
    assert (tmp_path / "out" / "inner" / "run.sh").stat().st_mode & 0o777 == 0o755


def test_a_packed_folder_is_the_same_bytes_at_any_time_and_for_any_user() -> None:
    packed = pack([CodeFile("train.py", b"print(1)\n")])
    assert packed == pack([CodeFile("train.py", b"print(1)\n")])
    assert packed[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
        (entry,) = archive.getmembers()
    assert (entry.mtime, entry.uid, entry.gid, entry.uname) == (315_619_200, 0, 0, "")


def test_ignored_files_and_the_output_itself_are_not_packed(tmp_path: Path) -> None:
    file = folder(tmp_path, {"train.py": b"1\n", ".git/config": b"x", "__pycache__/a.pyc": b"\0"})
    out = tmp_path / "program" / "out.yaml"
    for _ in range(2):
        assert tfyard("render", file, "-o", out).code == 0
    assert "a-code" in out.read_text()
    assert "out.yaml" not in out.read_text()
    assert "pycache" not in out.read_text()
    assert ".git" not in out.read_text()


def test_links_that_lead_out_of_the_folder_are_refused_and_named(tmp_path: Path) -> None:
    file = folder(tmp_path, {"train.py": b"1\n", "lib/a.py": b"2\n"})
    (tmp_path / "secret").write_text("hunter2")
    (tmp_path / "program/inside.py").symlink_to("lib/a.py")
    assert tfyard("render", file).code == 0
    (tmp_path / "program/lib/key").symlink_to("../../secret")
    (tmp_path / "program/passwords").symlink_to(tmp_path / "secret")
    done = tfyard("render", file)
    assert (done.code, done.out) == (1, "")
    for name in ("lib/key", "passwords"):
        text = f"error: code: the link {name} leads out of the folder, to {tmp_path}/secret"
        assert f"{file}:4:1: {text}" in done.err
    assert (
        done.err.count("  fix: copy what it leads to into the folder, remove the link, or name it in ") == 2
    )


def test_linked_folders_are_in_the_manifest_and_what_git_ignores_is_not(tmp_path: Path) -> None:
    file = folder(tmp_path, {"train.py": b"1\n", "lib/a.py": b"2\n", "out/x": b"3\n", ".gitignore": b"out\n"})
    (tmp_path / "program/linked").symlink_to("lib")
    packed = named(tfyard("render", file).objects, "ConfigMap", "a-code")["binaryData"]["code.tar.gz"]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as archive:
        assert archive.getnames() == [".gitignore", "lib/a.py", "linked/a.py", "train.py"]


def test_a_folder_that_is_too_large_is_refused_with_its_largest_files_and_the_fix(tmp_path: Path) -> None:
    import random

    noise = random.Random(1).randbytes(1_200_000)
    out = tmp_path / "out.yaml"
    done = tfyard("render", folder(tmp_path, {"train.py": b"1\n", "weights.bin": noise}), "-o", out)
    assert done.code == 1
    assert "job.yaml:4:1: error: code: the folder has 1,20" in done.err
    assert "weights.bin (1,200,000 bytes)" in done.err
    assert "git or http(s) address" in done.err
    assert not out.exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.format(source="nowhere"))
    done = tfyard("render", tmp_path / "job.yaml")
    assert (done.code, done.out) == (1, "")
    assert "job.yaml:4:7: error: code: " in done.err
    assert "nowhere is not a folder" in done.err


def test_git_and_http_are_fetched_by_an_init_container_with_nothing_for_a_shell_to_misread() -> None:
    objects = tfyard("render", JOBS / "alone.yaml").objects
    spec = named(objects, "TFJob", "alone")["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    (step,) = spec["initContainers"]
    assert step["image"].startswith("alpine/git:")
    assert ' clone --quiet -- "$1"' in step["command"][2]
    assert ' checkout --quiet "$3" --;' in step["command"][2]
    assert step["command"][4:] == ["https://git.example/program.git", "/code", "v2"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """No log lines in the output of the tests."""


@pytest.mark.processes
def test_an_archive_with_one_folder_in_it_arrives_without_that_folder(
    tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with zipfile.ZipFile(tmp_path / "master.zip", "w") as archive:
        archive.writestr("program-master/distributed/train.py", "print(1)")
    (tmp_path / "out").mkdir()
    command = [sys.executable, SCRIPTS / "fetch.py", f"{site}/master.zip", tmp_path / "out"]
    for limits in (("7", "9"), ("9", "0")):
        refused = subprocess.run([*command, *limits], check=False, capture_output=True, text=True, timeout=60)
        assert refused.stderr.startswith("the archive has more than ")
        assert (refused.returncode, [*(tmp_path / "out").iterdir()]) == (1, [])
    subprocess.run([*command, "8", "1"], check=True, capture_output=True, timeout=60)
    assert (tmp_path / "out" / "distributed" / "train.py").read_text() == "print(1)"


def step_of(file: Path, at: str, name: str = "tfyard-code") -> list[str]:
    """The command of an init container, with the code at a folder of this machine."""
    (step,) = [each for each in pod(tfyard("render", file).objects)["initContainers"] if each["name"] == name]
    return [at if word == "/code" else word for word in step["command"]]


def out(command: list[str], **env: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **env})
    return done.stdout


@pytest.mark.processes
def test_the_step_that_unpacks_the_code_tells_the_packages_of_its_interpreter(tmp_path: Path) -> None:
    (tmp_path / "code.tar.gz").write_bytes(pack([CodeFile("train.py", b"print(1)\n")]))
    site = tmp_path / "site"
    for name in ("My_Pkg-1.2.dist-info", "old-3.1-py3.6.egg-info", "msgspec-0.0.1.dist-info", "no-info"):
        (site / name).mkdir(parents=True)
    command = step_of(folder(tmp_path, {"inner/train.py": b"1\n"}), str(tmp_path / "out"))
    command[command.index("/tfyard-code/code.tar.gz")] = str(tmp_path / "code.tar.gz")
    told = told_software(
        out(command, PYTHONPATH=str(site), PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin")
    )
    assert told is not None
    assert told.python == platform.python_version()
    assert {"my-pkg": "1.2", "old": "3.1", "msgspec": "0.0.1"}.items() <= told.packages.items(), (
        "the first of the path is the one that is imported"
    )
    assert told.packages["pytest"] == metadata.version("pytest")
    assert "no" not in told.packages


@pytest.mark.processes
def test_packages_that_are_too_many_for_a_line_of_a_log_are_counted(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"package_with_a_long_name_{number}-1.0.dist-info").mkdir()
    line = out([sys.executable, str(SCRIPTS / "packages.py")], PYTHONPATH=str(tmp_path))
    assert len(line) <= 1 << 16
    told = told_software(line)
    assert told is not None
    assert told.problem.startswith("there are too many: 2")


@pytest.mark.processes
def test_the_step_that_clones_the_code_tells_its_commit(tmp_path: Path) -> None:
    code = repository(tmp_path / "origin", {"train.py": "1\n"})
    first = commit(code, "first")
    last = commit(code, "last")
    (tmp_path / "job.yaml").write_text(JOB.format(source="https://git.example/program.git"))
    for ref, expected in (("", last), (first, first)):
        at = tmp_path / f"at-{ref}"
        command = step_of(tmp_path / "job.yaml", str(at))
        command[4], command[6] = str(code), ref
        assert told_commit(out(command)) == expected
        assert git(at, "rev-parse", "HEAD") == expected
