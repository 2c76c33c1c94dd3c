"""What `import tfyard` offers: these names are a promise. It costs nothing until one of them is used."""

import inspect
import subprocess
import sys

import pytest

import tfyard
from tfyard import aio

PUBLIC = [
    *(
        "CannotSubmit",
        "Executed",
        "Invalid",
        "Job",
        "JobDeleted",
        "JobFailed",
        "Line",
        "NoSuchJob",
        "NotPossible",
        "Run",
        "RunComparison",
        "Sweep",
        "SweepTrial",
        "TfyardError",
        "Usage",
    ),
    *(
        "WaitTimeout",
        "Why",
        "__version__",
        "aio",
        "between",
        "compare",
        "find",
        "run",
        "runs",
        "submit",
        "sweep",
    ),
]
RUN = [
    *(
        "delete",
        "describe",
        "directory",
        "events",
        "exec",
        "exit_code",
        "get",
        "logs",
        "metrics",
        "name",
        "namespace",
        "port_forward",
        "record",
        "rerun",
    ),
    *("restart", "resume", "scale", "status", "stop", "tasks", "tensorboard", "wait", "why"),
]


def public(of: object) -> list[str]:
    return sorted(name for name in vars(of) if not name.startswith("_"))


def test_the_public_names_are_these() -> None:
    assert sorted(tfyard.__all__) == sorted(PUBLIC)
    assert set(PUBLIC) <= set(dir(tfyard))
    assert all(getattr(tfyard, name) is not None for name in PUBLIC)
    assert public(tfyard.Run) == RUN


def test_the_asynchronous_words_are_the_same() -> None:
    assert sorted(aio.__all__) == sorted(set(PUBLIC) - {"aio", "__version__"})
    assert public(aio.Run) == public(tfyard.Run)
    assert set(public(aio.Sweep)) == {"best", "frame", "trials"}
    for name in public(tfyard.Run):
        sync, twin = getattr(tfyard.Run, name), getattr(aio.Run, name)
        if inspect.isfunction(sync):
            assert list(inspect.signature(sync).parameters) == list(inspect.signature(twin).parameters), name
    for name in ("find", "run", "runs", "submit", "sweep"):
        assert inspect.iscoroutinefunction(getattr(aio, name)), name


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'tfyard' has no attribute 'absent'"):
        tfyard.absent  # type: ignore[attr-defined]  # noqa: B018


def modules(program: str) -> set[str]:
    """Which are imported by a program that Python itself has not imported."""
    code = f"import sys; before = set(sys.modules)\n{program}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.processes
def test_the_import_brings_nothing_but_the_package() -> None:
    assert modules("import tfyard") == {"tfyard"}


@pytest.mark.processes
def test_a_job_brings_neither_the_planner_nor_a_network() -> None:
    found = modules("import tfyard; tfyard.Job(run='true')")
    heavy = {"aiohttp", "asyncio", "ssl", "rich", "click", "IPython", "tfyard.planner", "tfyard.cli"}
    assert found & heavy == set()


@pytest.mark.processes
def test_reading_runs_brings_no_network_and_no_notebook() -> None:
    found = modules("import tfyard; tfyard.runs(); tfyard.Run")
    assert found & {"aiohttp", "rich", "click", "IPython", "tfyard.cli"} == set()
