"""The package as it would be published: what is in it, and that it runs where only it is installed."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tfyard import __version__

pytestmark = pytest.mark.processes
NAME = f"tfyard-{__version__}"
WHEEL, SDIST = f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz"


def build(source: Path, to: Path, *targets: str) -> None:
    chosen = [word for target in targets for word in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(to), *chosen]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "sdist", "wheel")
    return folder


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def committed(folder: str) -> set[str]:
    """Files of the checkout below a folder, with those that are not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {name for name in listed.splitlines() if (ROOT / name).exists()}


def test_the_wheel_has_every_file_of_the_package_and_no_other(dist: Path) -> None:
    found = {name for name in contents(dist / WHEEL) if ".dist-info/" not in name}
    assert found == {name.removeprefix("src/") for name in committed("src")}
    kinds = {Path(name).suffix for name in found}
    assert {".json", ".mod", ".sum", ".sh", ".jinja", ".typed"} <= kinds


def test_the_sdist_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(dist / SDIST) as archive:
        archive.extractall(tmp_path, filter="data")
    build(tmp_path / NAME, tmp_path, "wheel")
    assert contents(tmp_path / WHEEL) == contents(dist / WHEEL)


def clean_environment(folder: Path) -> Path:
    """Its Python. It has no tfyard, and for lack of a network, the packages of the tests' own environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "python"


@pytest.mark.parametrize("artefact", [WHEEL, pytest.param(SDIST, marks=pytest.mark.long)])
def test_it_runs_a_job_from_a_clean_environment(dist: Path, tmp_path: Path, artefact: str) -> None:
    python = clean_environment(tmp_path / "venv")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", *offline, str(dist / artefact)]
    subprocess.run(pip, check=True)
    (tmp_path / "train.py").write_text("import os; print('trained', os.environ['TF_CONFIG'])")

    def tfyard(*args: str) -> str:
        command = [str(python.with_name("tfyard")), *args]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    imported = [str(python), "-c", "import tfyard; print(tfyard.__file__)"]
    where = subprocess.run(imported, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert where.startswith(str(tmp_path)), "not the checkout's"
    assert "Usage: tfyard" in tfyard("--help")
    assert tfyard("version").startswith(f"tfyard {__version__} (Python "), "no commit: this is no checkout"
    assert "trained" in tfyard("run", "train.py", "--set", "worker=2")
