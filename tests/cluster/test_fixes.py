"""Fixes that `tfyard why` and refusals print, typed as they are printed until the job has succeeded."""

import re
import shlex
import subprocess
from typing import Any

import pytest

from tests.cluster.clusters import Cluster, until
from tests.cluster.jobs import Jobs
from tests.cluster.troubles import Troubles
from tests.remote.situations import job

pytestmark = [pytest.mark.cluster, pytest.mark.long]

JOB = "name: train\nimage: example/train:1\nworker: 1\n"
NEEDS_TOKEN = f'{JOB}secrets: {{TOKEN: "token/TOKEN"}}\nrun: test "$TOKEN" = VALUE\n'
WITH_CODE = f"{JOB}code: .\n"


def typed(cluster: Cluster, fix: str) -> None:
    """The command of kubectl in a fix."""
    words = shlex.split(fix[fix.index("kubectl ") :].rstrip("`"))
    cluster.kubectl(*words[1:])


def why(jobs: Jobs, kind: str, name: str = "train") -> tuple[str, str]:
    """Sentence and fix, once the first cause is of this kind."""
    troubles = Troubles(jobs.cluster, jobs.namespace, jobs.folder)

    def told() -> Any:
        found = troubles.why(name)
        return found if [each["kind"] for each in found["causes"]][:1] == [kind] else None

    found = until(told)
    return found["sentence"], found["causes"][0]["fix"]


def again(jobs: Jobs, text: str) -> None:
    jobs.tfyard("delete", "train", "--yes", "--wait")
    jobs.submit(text)
    jobs.until_phase("train", "Succeeded")


def test_a_missing_secret_is_created_with_the_key_that_the_job_needs(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text(NEEDS_TOKEN)
    refused = jobs.tfyard("submit", "job.yaml").err
    jobs.submit(NEEDS_TOKEN, "--force")
    sentence, fix = why(jobs, "secret-missing")
    assert sentence == f"worker-0 cannot start: there is no Secret token in namespace {jobs.namespace}"
    assert fix == f"kubectl -n {jobs.namespace} create secret generic token --from-literal=TOKEN=VALUE"
    assert fix in refused
    typed(jobs.cluster, fix)
    jobs.until_phase("train", "Succeeded")


def test_a_missing_key_is_added_for_a_variable_and_for_a_volume(jobs: Jobs) -> None:
    jobs.kubectl("create", "secret", "generic", "token")
    jobs.submit(NEEDS_TOKEN, "--force")
    volume = {"name": "t", "secret": {"secretName": "token", "items": [{"key": "FILE", "path": "file"}]}}
    container = {
        "command": ["sh", "-c", "test `cat /token/file` = VALUE"],
        "volumeMounts": [{"name": "t", "mountPath": "/token"}],
    }
    jobs.cluster.apply(job("file", container=container, volumes=[volume]), namespace=jobs.namespace)
    sentence, fix = why(jobs, "key-missing")
    assert sentence == "worker-0 cannot start: Secret token has no key TOKEN"
    typed(jobs.cluster, fix)
    jobs.until_phase("train", "Succeeded")
    sentence, fix = why(jobs, "key-missing", "file")
    assert sentence == "worker-0 cannot start: a volume wants the key FILE, which Secret token does not have"
    typed(jobs.cluster, fix)
    jobs.until_phase("file", "Succeeded")


def test_a_file_of_the_code_that_may_not_be_executed(jobs: Jobs) -> None:
    (jobs.folder / "run.sh").write_text("#!/bin/sh\ntrue\n")
    text = f"{WITH_CODE}run: [./run.sh]\n"
    jobs.submit(text)
    sentence, fix = why(jobs, "command")
    assert sentence == "worker-0 cannot start: `./run.sh` may not be executed"
    (command,) = re.findall(r"in the folder of the code: `([^`]+)`, and submit it again", fix)
    subprocess.run(shlex.split(command), cwd=jobs.folder, check=True)
    again(jobs, text)


def test_a_module_of_the_code_and_a_program_that_git_ignores(jobs: Jobs) -> None:
    (jobs.folder / "pkg").mkdir()
    (jobs.folder / "pkg" / "train.py").write_text("import pkg.data\n")
    (jobs.folder / "pkg" / "data.py").write_text("")
    jobs.submit(f"{WITH_CODE}run: python pkg/train.py\n")
    _, fix = why(jobs, "missing-module")
    (line,) = re.findall(r"if it is your own code, job file: `([^`]+)`", fix)
    again(jobs, f"{WITH_CODE}{line}\n")
    (jobs.folder / ".gitignore").write_text("train.py\n")
    jobs.tfyard("delete", "train", "--yes", "--wait")
    jobs.submit(f"{WITH_CODE}run: python pkg/train.py\n")
    sentence, fix = why(jobs, "missing-file")
    assert sentence == "there is no program pkg/train.py for worker-0"
    (rule,) = re.findall(r"a line `([^`]+)` in .tfyardignore brings them", fix)
    (jobs.folder / ".tfyardignore").write_text(f"{rule.replace('PATH', 'pkg/train.py')}\n")
    again(jobs, f"{WITH_CODE}{line}\n")


def test_a_variable_of_a_script_is_given_by_the_option_that_is_printed(jobs: Jobs) -> None:
    (jobs.folder / "train.py").write_text("import os; os.environ['BUCKET']\n")
    script = ("submit", "train.py", "--image", "example/train:1")
    assert jobs.tfyard(*script).code == 0
    _, fix = why(jobs, "missing-variable")
    assert jobs.tfyard(*script, "--name", "given", *shlex.split(fix.strip("`"))).code == 0
    jobs.until_phase("given", "Succeeded")


def test_who_may_not_submit_is_allowed_by_the_command_that_is_printed(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text(f"{JOB}run: 'true'\n")
    refused = jobs.tfyard("submit", "job.yaml", "--as", "ann")
    assert refused.code == 1
    (command,) = re.findall(r"an administrator allows it by `([^`]+)`", refused.err)
    typed(jobs.cluster, command)
    done = jobs.tfyard("submit", "job.yaml", "--as", "ann")
    assert done.code == 0, done.err
    jobs.until_phase("train", "Succeeded")


def test_without_an_operator_and_with_one_that_is_scaled_to_zero(empty: Cluster, tmp_path: Any) -> None:
    with Jobs.own(empty, tmp_path) as jobs:
        (tmp_path / "job.yaml").write_text(f"{JOB}run: 'true'\n")
        refused = jobs.tfyard("submit", "job.yaml")
        assert refused.code != 0
        assert "`tfyard install`" in refused.err
        assert empty.tfyard("install").code == 0
        try:
            jobs.submit(f"{JOB}run: 'true'\n")
            jobs.until_phase("train", "Succeeded")
            empty.kubectl("-n", "tfyard", "scale", "deployment", "tf-job-operator", "--replicas=0")
            until(lambda: not empty.get("-n", "tfyard", "pods")["items"])
            jobs.submit(f"{JOB}run: 'true'\n", "--force", "--name", "later")
            sentence, fix = why(jobs, "no-operator", "later")
            assert sentence == (
                "no operator works on it: the tfyard operator is installed, and it is scaled to zero"
            )
            typed(empty, fix)
            jobs.until_phase("later", "Succeeded")
        finally:
            empty.tfyard("uninstall", "--crds", "--force")
            empty.kubectl("delete", "namespace", "tfyard", "--ignore-not-found")
