"""The operator's image, without Docker."""

import ctypes
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.dockerfile import build, environment, instructions
from tfyard.model.restricted import USER
from tfyard.node import linux_namespaces


@pytest.mark.parametrize("dockerfile", ["Dockerfile", "examples/Dockerfile"])
def test_a_dockerfile_copies_what_exists_and_pins_its_base(dockerfile: str) -> None:
    path = ROOT / dockerfile
    for word, arguments in instructions(path):
        if word == "COPY" and not arguments.startswith("--from"):
            assert (path.parent / arguments.split()[0]).exists(), arguments
        if word == "FROM":
            assert "@${" in arguments, "a digest is an argument, and must be given"
        if word == "USER":
            assert arguments == f"{USER}:{USER}"


def test_the_context_of_the_image_is_what_it_copies() -> None:
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [arguments.split()[0] for word, arguments in instructions() if word == "COPY"]
    assert sent == [each for each in copied if not each.startswith("--from")]


def test_the_lock_has_every_direct_dependency_of_the_operator_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    dependencies = [
        *project["dependencies"],
        *extras["operator"],
        *extras["kubernetes"],
        *extras["dashboard"],
        *extras["sweep"],
    ]
    names = {re.match(r"[\w-]+", each)[0] for each in dependencies} - {"tfyard"}
    lock = (ROOT / "requirements" / "operator.txt").read_text()
    assert names <= set(re.findall(r"^([\w-]+)==", lock, re.MULTILINE))


@pytest.mark.parametrize("lock", sorted((ROOT / "requirements").iterdir()), ids=lambda path: path.stem)
def test_each_locked_package_has_hashes(lock: Path) -> None:
    packages = re.split(r"\n(?=[\w-]+==)", lock.read_text())[1:]
    assert packages
    assert all("--hash=sha256:" in package for package in packages)


def become_nobody() -> None:
    """Becomes uid 65532 without capabilities. In a user namespace, Python can still be read from root's home."""
    uid, gid = os.getuid(), os.getgid()
    assert ctypes.CDLL(None).unshare(linux_namespaces.CLONE_NEWUSER) == 0
    for name, text in (("setgroups", "deny"), ("uid_map", f"{USER} {uid} 1"), ("gid_map", f"{USER} {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text)


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.skipif(not linux_namespaces.is_allowed(), reason="needs user namespaces")
def test_the_image_runs_the_operator_as_an_unprivileged_user_without_a_home_on_a_read_only_disk(
    tmp_path: Path,
) -> None:
    image = tmp_path / "image"
    build(image)
    subprocess.run(["chmod", "-R", "a-w", str(image)], check=True)
    try:
        code = (
            "import os, runpy; assert os.getuid() == 65532; runpy.run_module('tfyard', run_name='__main__')"
        )
        done = subprocess.run(
            [sys.executable, "-S", "-c", code, "operator", "--kubeconfig", "/nowhere"],
            env={"PATH": os.environ["PATH"], **environment(), "PYTHONPATH": str(image / "opt")},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            preexec_fn=become_nobody,
        )
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(image)], check=True)
    assert (done.returncode, done.stderr) == (1, "tfyard: /nowhere: no such file\n")
