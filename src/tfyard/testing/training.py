"""pytest fixture for tests of your own training: `pytest_plugins = ["tfyard.testing.training"]` in a conftest.

def test_it_learns(tfyard_run):
    run = tfyard_run("train.py", worker=2, env={"STEPS": "20"})
    assert run.metrics()[-1]["loss"] < 0.5

def test_it_refuses_a_folder_without_data(tfyard_run):
    run = tfyard_run("train.py", env={"DATA": "/nowhere"}, check=False)
    assert "no data in /nowhere" in run.why().text
"""

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tfyard.errors import TfyardError, Usage
from tfyard.sdk.functions import run
from tfyard.sdk.job import Job
from tfyard.sdk.run import Run

LONGEST = "10m"


class Training:
    """The value of the fixture `tfyard_run`."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def __call__(
        self,
        job: Job | str | os.PathLike[str] | None = None,
        /,
        *,
        check: bool = True,
        timeout: str | float | timedelta = LONGEST,
        **words: Any,
    ) -> Run:
        """Run a job to its end: a Job, or a file or script and words, as `Job` takes them. Raises `JobFailed` if
        it fails, unless `check` is false; `WaitTimeout` if it takes longer than `timeout`."""
        __tracebackhide__ = True  # pytest shows the line of the test, which called this
        try:
            started = run(_job(job, words))
            self.runs.append(started)
            return started.wait(timeout, until="succeeded" if check else "finished")
        except TfyardError as problem:
            raise problem.with_traceback(None) from None


def _job(job: Job | str | os.PathLike[str] | None, words: dict[str, Any]) -> Job:
    if isinstance(job, Job) and words:
        raise Usage(f"{next(iter(words))}: a Job has its words already")
    return job if isinstance(job, Job) else Job(job, **words)


@pytest.fixture
def tfyard_run(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Training]:
    """Runs jobs to their end, in the test's working directory; their records, logs and volumes are in a temporary
    folder, and their processes end with the test."""
    monkeypatch.setenv("TFYARD_HOME", str(tmp_path_factory.mktemp("tfyard")))
    training = Training()
    yield training
    for started in training.runs:
        if started.exit_code is None:
            started.stop()
