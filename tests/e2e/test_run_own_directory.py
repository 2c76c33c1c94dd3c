"""Where tasks work whose job has no code: in a directory of their own, or where the command was given."""

import re

import pytest

from tests.e2e.conftest import Yard

pytestmark = pytest.mark.processes

COPIES = """\
name: t
image: none
run: ls; cp -r /nfs/project ./; cd project && cat words
worker: 1
volumes: {nfs: {nfs: "10.10.10.39:/home/nfs", at: /nfs}}
"""
IMAGE_ONLY = """\
apiVersion: kubeflow.org/v1beta1
kind: TFJob
metadata: {name: module6}
spec:
  tfReplicaSpecs:
    MASTER:
      template:
        spec: {containers: [{name: tensorflow, image: "user/tf-mnist:gpu", workingDir: /app}]}
    PS:
      template:
        spec: {containers: [{name: tensorflow, image: "user/ps:1", command: [sleep, "60"]}]}
"""


def test_a_copy_in_the_working_directory_does_not_outlive_the_task(yard: Yard) -> None:
    """Document 003 copies its code from NFS: a later run with an empty volume must not find it."""
    (yard.folder / "full" / "project").mkdir(parents=True)
    (yard.folder / "full" / "project" / "words").write_text("trained\n")
    (yard.folder / "empty").mkdir()
    yard.write("job.yaml", COPIES)
    first = yard.run("--mount", "nfs=full")
    assert (first.code, first.lines("worker-0")) == (0, ["trained"])
    assert {path.name for path in yard.folder.iterdir()} == {"full", "empty", "job.yaml", ".tfyard"}
    kept = first.directory / "work" / "t-worker-0" / "tensorflow" / "project" / "words"
    assert kept.read_text() == "trained\n"
    second = yard.tfyard("run", "job.yaml", "--mount", "nfs=empty")
    assert second.returncode != 0
    assert "trained" not in second.stdout
    third = yard.tfyard("run", "job.yaml", "--mount", "nfs=full", "--name", "third")
    assert re.search(r"^files:   .tfyard/runs/third-.*/work$", third.stdout, re.MULTILINE)


def test_the_directory_is_empty_again_when_a_task_is_restarted_in_place(yard: Yard) -> None:
    script = "ls; touch written; mkdir -p $DIR && test -e $DIR/again || { touch $DIR/again; exit 1; }"
    yard.write("job.yaml", f"name: t\nimage: none\nrun: '{script}'\nrestart: on-failure\nworker: 1\n")
    outcome = yard.run("--env", f"DIR={yard.folder}/seen")
    assert (outcome.code, outcome.starts("worker-0")) == (0, 2)
    assert outcome.lines("worker-0") == []
    assert (outcome.directory / "work" / "t-worker-0" / "tensorflow" / "written").exists()


def test_directories_that_stay_empty_are_not_left_behind(yard: Yard) -> None:
    yard.write("job.yaml", "name: t\nimage: none\nrun: pwd\nworker: 2\nsuccess: all-workers\n")
    outcome = yard.run()
    where = outcome.directory / "work" / "t-worker-1" / "tensorflow"
    assert outcome.lines("worker-1") == [str(where)]
    assert not (outcome.directory / "work").exists()


def test_a_file_beside_the_job_file_that_the_tasks_do_not_have_is_named_with_the_fix(yard: Yard) -> None:
    yard.write("train.py", "")
    yard.write("job.yaml", "name: t\nimage: none\nrun: python train.py --steps 1\nworker: 1\n")
    outcome = yard.run()
    assert outcome.code == 2
    (note,) = [event["text"] for event in outcome.of("note") if "train.py" in event["text"]]
    assert note.startswith("tasks do not have train.py: the job has no `code`; add `code: .`")


def test_a_command_after_two_dashes_is_for_the_tasks_without_one_and_works_here(yard: Yard) -> None:
    yard.write("tfjob.yaml", IMAGE_ONLY)
    yard.write("train.py", "import os, sys; print(os.getcwd(), sys.argv[1:]); open('model', 'w')")
    done = yard.tfyard("run", "tfjob.yaml", "--", "python", "train.py", "--rate", "$(A)")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"master-0 │ {yard.folder} ['--rate', '$(A)']" in done.stdout
    assert (yard.folder / "model").exists()
    assert "files: " not in done.stdout


def test_without_it_the_error_says_how_to_give_one(yard: Yard) -> None:
    yard.write("tfjob.yaml", IMAGE_ONLY)
    done = yard.tfyard("run", "tfjob.yaml")
    assert done.returncode == 2
    assert "give it after `--`, as in `tfyard run FILE -- python train.py`" in done.stderr
