"""The list of commands, and what each of them imports."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import DATA, tfyard
from tfyard import __version__
from tfyard.cli.main import COMMANDS

NEVER = {"rich", "jinja2", "asyncio", "aiohttp", "difflib", "socket", "ssl", "logging", "importlib.metadata"}
NEVER |= {"prometheus_client"}
ALLOWED = {
    "--help": {"tfyard", "tfyard.__main__", "tfyard.cli", "tfyard.cli.main", "tfyard.errors"},
}


def imported(*args: str | Path) -> set[str]:
    code = "import sys, atexit\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    code += "from tfyard.__main__ import main; main()"
    command = [sys.executable, "-c", code, *args]
    return set(
        subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()[-1].split()
    )


def roots(modules: set[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


def test_help_lists_every_command() -> None:
    done = tfyard("--help")
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if line.startswith("  ")][2:] != []
    assert all(f"  {name} " in done.out for name in COMMANDS)
    assert tfyard("-h").out == done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_of_its_own(command: str) -> None:
    done = tfyard(command, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: tfyard {command}")


def test_the_version_is_told_in_both_ways() -> None:
    assert tfyard("version").out.startswith(f"tfyard {__version__} (Python 3.")
    assert tfyard("--version").out == f"tfyard, version {__version__}\n"


def test_a_misspelt_command_gets_the_likely_one() -> None:
    done = tfyard("valdate", "x")
    assert (done.code, "unknown command 'valdate'; did you mean validate?" in done.err) == (2, True)


def test_help_imports_nothing_but_click() -> None:
    modules = imported("--help")
    assert {module for module in modules if module.startswith("tfyard")} == ALLOWED["--help"]
    assert not (NEVER | {"msgspec", "yaml", "typing_extensions", "shutil", "pathlib", "json"}) & modules


@pytest.mark.parametrize("name", ["jobfiles/smallest.yaml", "manifests/v1-dist-mnist.yaml"])
def test_validate_imports_only_what_reading_needs(name: str) -> None:
    modules = imported("validate", DATA / name)
    assert not (NEVER | {"pathlib", "json", "tfyard.formats.jobfile.dump", "tfyard.planner"}) & modules
    ours = {module.removeprefix("tfyard.formats.tfjob.") for module in modules if ".formats.tfjob." in module}
    assert ours - {"fields", "status", "versions"} == ({"load"} if "v1" in name else set())
    known = {"click", "yaml", "_yaml", "msgspec", "tfyard", "typing_extensions"}
    foreign = roots(modules) - known - set(sys.stdlib_module_names)
    assert {name for name in foreign if not name.startswith(("_", "sitecustomize", "cython"))} == set()


def test_a_typo_is_worth_an_import(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: a\nimage: b\nwroker: 1\n")
    assert "difflib" in imported("validate", tmp_path / "job.yaml")
