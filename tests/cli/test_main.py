"""The list of commands, and what each of them imports."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import DATA, ROOT, tfyard
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


@pytest.mark.parametrize(
    ("args", "code"), [(("doctor", "--kubeconfig", "/nowhere"), 0), (("explain", "worker"), 1)]
)
def test_a_closed_pipe_is_no_error_for_commands_that_only_print(args: tuple[str, ...], code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tfyard", *args]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, b"")


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


def test_the_version_is_printed_by_the_command_and_by_the_option() -> None:
    commit = r"( at [0-9a-f]{7,}, \d{4}-\d\d-\d\d)?"
    assert re.match(rf"tfyard {re.escape(__version__)}{commit} \(Python 3\.", tfyard("version").out)
    assert json.loads(tfyard("version", "-o", "json").out)["tfyard"] == __version__
    assert tfyard("--version").out == f"tfyard, version {__version__}\n"


def test_a_misspelt_command_gets_the_likely_one() -> None:
    done = tfyard("valdate", "x")
    assert (done.code, "unknown command 'valdate'; did you mean validate?" in done.err) == (2, True)


def test_no_command_imports_another() -> None:
    """What two of them share has a file of its own."""
    commands, found = {name.replace("-", "_") for name in COMMANDS}, list[str]()
    for path in (ROOT / "src" / "tfyard" / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tfyard.cli"):
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                found += [f"{path.name}: {name}" for name in whole if name.split(".")[2] in commands]
    assert found == []


def test_help_imports_nothing_but_click() -> None:
    modules = imported("--help")
    assert {module for module in modules if module.startswith("tfyard")} == ALLOWED["--help"]
    assert not (NEVER | {"msgspec", "yaml", "typing_extensions", "shutil", "pathlib", "json"}) & modules


@pytest.mark.parametrize("name", ["jobfiles/smallest.yaml", "manifests/v1-dist-mnist.yaml"])
def test_validate_imports_only_what_reading_needs(name: str) -> None:
    modules = imported("validate", DATA / name)
    assert not (NEVER | {"pathlib", "tfyard.formats.jobfile.dump", "tfyard.planner"}) & modules
    ours = {module.removeprefix("tfyard.formats.tfjob.") for module in modules if ".formats.tfjob." in module}
    assert ours - {"fields", "status", "versions"} == ({"conversion"} if "v1" in name else set())
    known = {"click", "yaml", "_yaml", "msgspec", "tfyard", "typing_extensions"}
    foreign = roots(modules) - known - set(sys.stdlib_module_names)
    assert {name for name in foreign if not name.startswith(("_", "sitecustomize", "cython"))} == set()


@pytest.mark.processes
def test_a_run_in_a_pipe_imports_only_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("print('hello')")
    modules = imported("run", "train.py")
    assert "tfyard.local.run" in modules
    never = {"rich", "jinja2", "aiohttp", "difflib", "urllib.request", "tarfile", "concurrent.futures.thread"}
    assert not (never | {"tfyard.kube", "tfyard.render", "tfyard.overview.why"}) & modules


@pytest.mark.processes
def test_the_garbage_collector_does_not_run_while_a_run_is_prepared(tmp_path: Path) -> None:
    script = """
import gc, sys
from tfyard.__main__ import main
gc.callbacks.append(lambda *_: sys.is_finalizing() or print("collected", file=sys.stderr))
sys.argv = ["tfyard", "run", "train.py"]
main()
"""
    (tmp_path / "train.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "job succeeded" in done.stdout
    assert done.stderr == ""


@pytest.mark.processes
def test_tasks_are_started_before_anything_that_they_do_not_need_is_imported(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from tfyard.local.prepare import prepare
from tfyard.local.run import Execution
from tfyard.local.settings import RunOptions
from tfyard.model.run_events import Started

def watch(event):
    if isinstance(event, Started):
        print("yaml" in sys.modules)

async def main():
    return await Execution(prepare(RunOptions(target="train.py")), watch).execute()

asyncio.run(main())
"""
    (tmp_path / "train.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
    (job,) = tmp_path.glob(".tfyard/runs/*/job.yaml")
    assert "- train.py\n" in job.read_text()


@pytest.mark.processes
def test_a_run_that_succeeds_imports_nothing_of_sweeps_schemas_and_explanations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    modules = imported("run", "train.py")
    assert "tfyard.cli.screen.follow" in modules
    of_others = (
        "tfyard.sweeps",
        "tfyard.formats.sweepfile",
        "tfyard.formats.json_schema",
        "tfyard.overview.why",
    )
    assert [name for name in sorted(modules) if name.startswith((*of_others, "tfyard.local.evidence"))] == []


def test_a_supervisor_imports_next_to_nothing() -> None:
    code = "import sys, tfyard.node.supervisor\nprint(*sys.modules)"
    command = [sys.executable, "-S", "-c", code]
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(command, env={"PYTHONPATH": source}, capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert not {"re", "json", "typing", "pathlib", "subprocess", "logging", "contextlib"} & modules
    ours = {"capabilities", "linux_namespaces", "messages", "orphans", "output", "supervisor", "usage"}
    assert {name for name in modules if name.startswith("tfyard.node.")} == {
        f"tfyard.node.{name}" for name in ours
    }


@pytest.mark.processes
def test_a_supervisor_imports_what_starts_and_ends_need_before_the_first(tmp_path: Path) -> None:
    script = """
import os, socket, sys
from tfyard.node import supervisor
ours, theirs = socket.socketpair()
ours.close()
supervisor.main(theirs.detach(), namespaces=False, scratch=sys.argv[1])
print(*sys.modules)
"""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-S", "-c", script, str(scratch)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert modules >= {"resource", "warnings"}
    assert "shutil" not in modules
    assert not scratch.exists()


def test_difflib_is_imported_for_a_misspelt_word(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: a\nimage: b\nwroker: 1\n")
    assert "difflib" in imported("validate", tmp_path / "job.yaml")


def test_help_says_what_a_job_file_is_for() -> None:
    help_text = tfyard("--help").out
    assert "let the operator run it on Kubernetes" in " ".join(help_text.split())
