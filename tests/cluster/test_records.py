"""Records of jobs on a whole cluster: compared with a run on this machine, and a job repeated exactly."""

import pytest

from tests.cli.running import tfyard
from tests.cluster.jobs import Jobs
from tests.job_input.repository import commit, repository

pytestmark = [pytest.mark.cluster, pytest.mark.long]
TRAIN = """\
import sys
rate = float(sys.argv[sys.argv.index("--lr") + 1])
for step in (1, 2, 3): print(f"step {step} loss {rate / step}", flush=True)
"""
AS_IT_WAS = "as it was"


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_run_here_and_a_job_are_compared_in_one_command_and_the_job_is_repeated_exactly(jobs: Jobs) -> None:
    code = repository(jobs.folder, {"train.py": TRAIN, ".gitignore": ".tfyard\n"})
    (code / "train.py").write_text(f"{TRAIN}print('{AS_IT_WAS}')\n")
    assert tfyard("run", "-q", "train.py", "--", "--lr", "1", cwd=code).code == 0
    submitted = jobs.tfyard("submit", "train.py", "--follow", "--", "--lr", "2")
    assert (submitted.code, AS_IT_WAS in submitted.out) == (0, True), submitted.err
    both = ("run/train", "tfjob.kubeflow.org/train")
    compared = jobs.tfyard("compare", *both)
    assert compared.code == 0, compared.err
    assert "parameters lr 1 2" in rows(compared.out)
    assert f"machine place this machine the namespace {jobs.namespace}" in rows(compared.out)
    assert "loss best 0.3333 at step 3 0.6667 at step 3" in rows(compared.out)
    assert "code commit" not in compared.out
    assert jobs.tfyard("compare", *both, "--diff").err == "tfyard: the code is the same\n"

    (code / "train.py").write_text("raise SystemExit('another program')\n")
    commit(code)
    again = jobs.tfyard("rerun", "train", "--exact", "--yes")
    assert (again.code, again.out) == (0, "tfjob.kubeflow.org/train-2 created\n"), again.err
    jobs.until_phase("train-2", "Succeeded")
    assert AS_IT_WAS in jobs.tfyard("logs", "train-2").out
    repeated = jobs.tfyard("compare", "train", "train-2")
    assert "nothing that is known differs" in repeated.out, repeated.out
    assert jobs.tfyard("compare", "train", "train-2", "--diff").err == "tfyard: the code is the same\n"
