"""The record of a job of a cluster, on a real apiserver: what `tfyard submit` writes, and what is read of it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.running import tfyard
from tests.cli.test_describe import permit
from tests.job_input.repository import commit, repository
from tests.model.test_secrecy import NAMES, SECRET
from tests.remote.acting.test_actions import Yard
from tests.remote.acting.test_actions import yard as yard
from tfyard.errors import NotPossible
from tfyard.install.roles import EDIT_RULES, rules
from tfyard.kube import kubeconfig, requests
from tfyard.model.names import CODE
from tfyard.model.origin import CodeState, Origin
from tfyard.overview.job_record import LARGEST
from tfyard.remote.acting import actions
from tfyard.remote.acting.reruns import RerunChanges
from tfyard.remote.reading import job_records
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting.submission import Submission, submit

pytestmark = pytest.mark.cluster

JOB = """\
name: mnist
image: example/train:1
run: python train.py --lr 0.1
env: {EPOCHS: "3"}
worker: 1
"""
DIGEST = "example/train@sha256:" + "a" * 64


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A repository with a job, whose remote address has a password, and with a change."""
    folder = repository(tmp_path / "code", {"job.yaml": JOB, "train.py": "print(1)\n"})
    subprocess.run(["git", "remote", "add", "origin", f"https://me:{SECRET}@h/x.git"], cwd=folder, check=True)
    (folder / "train.py").write_text("print(2)\n")
    return folder


def submitted(yard: Yard, folder: Path, user: str = "", **options: Any) -> tuple[StoredTFJob, list[str]]:
    said: list[str] = []
    with yard.as_user(user) if user else yard.client as client:
        given = Submission(target=str(folder / "job.yaml"), namespace=yard.namespace, force=True, **options)
        return submit(client, given, said.append), said


def stored(yard: Yard, name: str = "mnist-record") -> dict[str, Any]:
    found: dict[str, Any] = yard.client.send(requests.get(requests.CONFIG_MAPS.path(yard.namespace, name)))
    return found


def test_those_who_may_edit_write_a_record_that_belongs_to_the_job_and_does_not_change(
    yard: Yard, code: Path
) -> None:
    permit(yard.client, yard.namespace, "ann", rules(EDIT_RULES))
    made, said = submitted(yard, code, "ann")
    assert not [line for line in said if "record" in line]
    config_map = stored(yard)
    assert config_map["immutable"] is True
    assert [each["uid"] for each in config_map["metadata"]["ownerReferences"]] == [made.uid]
    origin = msgspec.json.decode(config_map["data"]["record.json"], type=Origin)
    assert origin.parameters == {"EPOCHS": "3", "lr": "0.1"}
    assert (origin.code.is_dirty, origin.code.changed, origin.code.root) == (True, ("M train.py",), "")
    assert len(origin.code.commit) == 40
    assert "+print(2)" in config_map["data"]["code.diff"]
    assert SECRET not in json.dumps(config_map)

    record = job_records.read(yard.client, made)
    assert (record.origin, record.diff) == (origin, config_map["data"]["code.diff"])
    assert (record.place, record.problems, record.origin.software) == ("cluster", (), None)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        pytest.param({"cause": "DeadlineExceeded", "message": "it took too long"}, 124, id="deadline"),
        pytest.param({"cause": "TaskFailed", "task": "worker-0", "exitCode": 3}, 3, id="the program's own"),
        pytest.param({"cause": "TaskFailed", "task": "worker-0"}, 1, id="a failure without a code"),
    ],
)
def test_a_job_that_failed_has_the_exit_code_of_a_run_that_failed_so(
    yard: Yard, failure: dict[str, Any], code: int
) -> None:
    conditions = [{"type": "Failed", "status": "True"}]
    failed = yard.status(yard.job("mnist"), conditions=conditions, failure=failure)
    assert job_records.read(yard.client, failed).exit_code == code


def test_a_job_that_is_submitted_again_has_the_record_of_its_last_submission(yard: Yard, code: Path) -> None:
    submitted(yard, code)
    first = stored(yard)
    submitted(yard, code)
    assert stored(yard)["metadata"]["uid"] == first["metadata"]["uid"], "nothing has changed"
    text = (code / "job.yaml").read_text().replace("worker: 1", "worker: 2")
    (code / "job.yaml").write_text(text)
    submitted(yard, code)
    assert "+worker: 2" in stored(yard)["data"]["code.diff"]


def test_who_may_not_write_it_submits_the_job_without_and_is_told_how_it_is_allowed(
    yard: Yard, code: Path
) -> None:
    rule = {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["create", "patch", "get"]}
    permit(yard.client, yard.namespace, "jane", [rule])
    made, said = submitted(yard, code, "jane")
    assert [line for line in said if "has no record" in line and "--clusterrole=edit" in line]
    record = job_records.read(yard.client, made)
    assert record.origin.parameters == {"EPOCHS": "3", "lr": "0.1"}
    assert "there is no ConfigMap mnist-record" in record.problems[0]


def test_a_config_map_of_somebody_else_is_left_alone_and_a_corrupt_one_is_named(
    yard: Yard, code: Path
) -> None:
    path = requests.CONFIG_MAPS.path(yard.namespace)
    yard.client.send(requests.create(path, {"metadata": {"name": "mnist-record"}, "data": {"a": "b"}}))
    made, said = submitted(yard, code)
    assert "there is another ConfigMap mnist-record" in said[-1]
    assert stored(yard)["data"] == {"a": "b"}
    yard.client.send(requests.delete(f"{path}/mnist-record"))
    corrupt = job_records.config_map(made, Origin(), "") | {"data": {"record.json": '{"command": 7}'}}
    yard.client.send(requests.create(path, corrupt))
    (problem,) = job_records.read(yard.client, made).problems
    assert "the ConfigMap mnist-record is corrupt" in problem


def test_the_record_is_no_larger_than_its_limit(yard: Yard) -> None:
    made = yard.job("large")
    origin = Origin(parameters={"lr": "0.1"}, code=CodeState(commit="c" * 40))
    job_records.write(yard.client, made, origin, "+x\n" * LARGEST, lambda text: pytest.fail(text))
    data = stored(yard, "large-record")["data"]
    assert sum(map(len, data.values())) <= LARGEST
    assert "the diff: it has" in job_records.read(yard.client, made).origin.code.missing[0]


@pytest.mark.parametrize("way", ["env", "argument", "command"])
def test_no_secret_gets_into_the_record(yard: Yard, code: Path, way: str) -> None:
    """Each name in the way that it may come, beside a reference to a Secret."""
    names = [name.strip("-") for name in NAMES]
    env = [f"  {name.replace('-', '_')}: {SECRET}" for name in names] if way == "env" else ["  A: b"]
    words = " ".join(f"--{name} {SECRET}" for name in names) if way == "argument" else ""
    before = " ".join(f"{name.replace('-', '_')}={SECRET}" for name in names) if way == "command" else ""
    lines = [f"run: {before} python train.py {words}", "env:", *env, "secrets: {PASS: s/k}"]
    text = "\n".join(["name: mnist", "image: a", "worker: 1", *lines, ""])
    (code / "job.yaml").write_text(text)
    submitted(yard, code)
    assert SECRET not in json.dumps(stored(yard)["data"])
    assert "job.yaml: it seems to hold a secret" in stored(yard)["data"]["record.json"]


def test_a_rerun_has_the_code_of_the_first_job_and_its_own_parameters(yard: Yard, code: Path) -> None:
    made, _ = submitted(yard, code)
    path = yard.client.access
    file = code.parent / "kubeconfig"
    file.write_text(kubeconfig.dump(path))
    words = ("-n", yard.namespace, "--kubeconfig", file)
    assert tfyard("rerun", "mnist", "--env", "EPOCHS=9", "-y", *words).code == 0
    record = job_records.read(yard.client, StoredTFJob(made.resource, yard.client.send(
        requests.get(made.resource.path(yard.namespace, "mnist-2")))))  # fmt: skip
    assert record.origin.parameters["EPOCHS"] == "9"
    assert record.origin.code.changed == ("M train.py",)
    compared = tfyard("compare", "mnist-2", *words, cwd=code)
    assert "EPOCHS" in compared.out
    assert "packages are unknown" in compared.out
    assert compared.code == 0
    assert tfyard("compare", "mnist-2", "--diff", *words, cwd=code).err == "tfyard: the code is the same\n"

    commit(code, "the change")
    (code / "train.py").write_text("print(3)\n")
    (code / "job.yaml").write_text(JOB.replace("mnist", "other"))
    submitted(yard, code)
    done = tfyard("compare", "mnist", "other", "--diff", *words, cwd=code)
    assert ("-print(2)" in done.out, "+print(3)" in done.out) == (True, True)


def test_an_exact_rerun_has_the_images_that_kubelets_ran(yard: Yard) -> None:
    found = yard.job("mnist")
    for role in ("worker", "chief"):
        pod = yard.pod(found, role, 0)
        status = {
            "name": "tensorflow",
            "image": "example/mnist:1",
            "imageID": DIGEST if role == "worker" else "x",
        }
        body = {"status": {"containerStatuses": [{**status, "ready": True, "restartCount": 0}]}}
        path = requests.PODS.path(yard.namespace, pod["metadata"]["name"], "status")
        yard.client.send(requests.patch(path, body))
    intent = actions.rerun(yard.client, found, RerunChanges(), is_exact=True)
    assert intent.notes == ("not the same, maybe: example/mnist:1 of chief, whose digest no pod tells",)
    roles = intent.becomes["spec"]["tfReplicaSpecs"]
    images = {name: role["template"]["spec"]["containers"][0]["image"] for name, role in roles.items()}
    assert images == {"Worker": DIGEST, "Chief": "example/mnist:1"}
    record = job_records.read(yard.client, found)
    assert {role.name: role.digest for role in record.roles} == {"Worker": DIGEST, "Chief": "x"}


def exact_notes(yard: Yard, found: StoredTFJob) -> str:
    return "\n".join(actions.rerun(yard.client, found, RerunChanges(), is_exact=True).notes)


def test_an_exact_rerun_has_the_code_that_was_submitted_and_says_where_it_is(yard: Yard, code: Path) -> None:
    (code / "job.yaml").write_text(f"{JOB}code: .\n")
    head = commit(code, "with its code")
    (code / "train.py").write_text("print(3)\n")
    made, _ = submitted(yard, code)
    held = made.manifest["metadata"]["annotations"][CODE][:12]
    (code / "train.py").write_text("print(4)\n")
    said = exact_notes(yard, made)
    assert f"the ConfigMap tfyard-code-{held} (commit {head[:12]}, changed)" in said
    yard.client.send(requests.delete(requests.CONFIG_MAPS.path(yard.namespace, f"tfyard-code-{held}")))
    with pytest.raises(NotPossible, match=f"its code is gone: there is no ConfigMap tfyard-code-{held}"):
        exact_notes(yard, made)


@pytest.mark.parametrize(
    ("source", "doubt"),
    [
        ("https://git.example/me/mnist.git", "is cloned again of https://git.example/me/mnist.git: no pod"),
        ("https://files.example/code.zip", "is fetched again of https://files.example/code.zip"),
    ],
)
def test_an_exact_rerun_says_that_code_of_an_address_may_have_changed(
    yard: Yard, code: Path, source: str, doubt: str
) -> None:
    (code / "job.yaml").write_text(f"{JOB}code: {source}\nrequirements: requirements.txt\n")
    made, _ = submitted(yard, code)
    said = exact_notes(yard, made)
    assert f"not the same, maybe: the code {doubt}" in said
    assert "not the same, maybe: packages that pip installs again" in said
    software = job_records.read(yard.client, made).origin.software
    assert software is not None
    assert software.problem == "no pod is there that could tell them"
