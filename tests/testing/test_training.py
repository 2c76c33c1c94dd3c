"""The fixture `tfyard_run` in a small project of a user."""

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.processes

CONFTEST = 'pytest_plugins = ["tfyard.testing.training"]'
TRAIN = """
import os, sys
for step in range(1, 4):
    print(f"Step: {step}, loss: {1 / step}")
sys.exit("no data in /nowhere" if os.environ.get("DATA") else 0)
"""
TESTS = """
def test_it_learns(tfyard_run):
    run = tfyard_run("train.py", worker=2, success="all-workers")
    assert run.metrics()[-1]["loss"] < 0.5
    assert "Step: 3" in [line.text for line in run.logs(task="worker-1")][-1]

def test_it_refuses_a_folder_without_data(tfyard_run):
    run = tfyard_run("train.py", env={"DATA": "/nowhere"}, check=False)
    assert run.status == "Failed"
    assert "no data in /nowhere" in run.why().text

def test_it_fails(tfyard_run):
    tfyard_run("train.py", env={"DATA": "/nowhere"})  # the line that failed

def test_it_is_written_wrongly(tfyard_run):
    tfyard_run("train.py", memory="lots")  # this one, too
"""
MORE = """
import pytest
import tfyard

def test_a_failure_is_an_error(tfyard_run):
    with pytest.raises(tfyard.JobFailed, match="no data"):
        tfyard_run(tfyard.Job("train.py", env={"DATA": "/nowhere"}))

def test_what_takes_too_long_is_stopped(tfyard_run):
    with pytest.raises(tfyard.WaitTimeout):
        tfyard_run(run="sleep 600", timeout=0.2)
    assert len(tfyard_run.runs) == 1
"""


def test_a_project_tests_its_training(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(train=TRAIN, test_train=TESTS)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "test_train.py")
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(["> *# the line that failed", "E *no data in /nowhere*", "> *# this one, too"])
    done.stdout.no_fnmatch_line("*tfyard/*.py:*")
    assert not (pytester.path / ".tfyard").exists(), "records are kept in a temporary folder"


@pytest.mark.long
def test_failures_and_what_never_ends_are_errors(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(train=TRAIN, test_train=MORE)
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "test_train.py").assert_outcomes(passed=2)
