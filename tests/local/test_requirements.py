"""`requirements` of a job that runs here."""

import sys
from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tfyard.local import requirements
from tfyard.local.interpreter import Interpreter

pytestmark = pytest.mark.processes
HERE = Interpreter(sys.executable, "")


def test_what_the_environment_lacks_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(
        "# ours\n-r other.txt\npytest\nmsgspec>=0.20  # read\npytest<1\nno-such-package[extra]>=2\n"
        "not-on-this-system; sys_platform == 'win32'\nx @ https://a.example/x.whl\n??\n\n"
    )
    fix = f"{sys.executable} -m pip install -r {file}"
    said = requirements.warning(HERE, file)
    assert said == f"requirements: the environment does not have pytest<1, no-such-package[extra]>=2; {fix}"
    file.write_text("pytest\n")
    assert requirements.warning(HERE, file) == ""
    assert "it was not possible" in requirements.warning(Interpreter("/absent", ""), file)


def test_a_run_uses_the_active_environment_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "needs.txt").write_text("no-such-package\n")
    (tmp_path / "job.yaml").write_text("name: a\nimage: b\ncode: .\nrequirements: needs.txt\nrun: 'true'\n")
    done = tfyard("run", "job.yaml", "--python", sys.executable, cwd=tmp_path)
    assert done.code == 0
    assert "requirements: the environment does not have no-such-package;" in done.out + done.err
    assert "the active environment is used" in done.out + done.err
