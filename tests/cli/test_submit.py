"""`tfyard submit` as a command: what it prints without a cluster, what it refuses, and what it imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.running import tfyard
from tests.cli.test_main import imported

JOB = "name: t\nimage: example/a:1\nrun: python t.py\nworker: 1\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "train.py").write_text("print('hello')\n")
    return tmp_path


def test_a_dry_run_of_the_client_prints_the_manifests_and_asks_no_cluster() -> None:
    done = tfyard("submit", "train.py", "--worker", "2", "--dry-run=client", "-n", "ml", "--", "--steps", "5")
    assert (done.code, done.err) == (0, "")
    found = {each["kind"]: each for each in yaml.safe_load_all(done.out)}
    assert {each["metadata"]["namespace"] for each in found.values()} == {"ml"}
    worker = found["TFJob"]["spec"]["tfReplicaSpecs"]["Worker"]
    (container,) = worker["template"]["spec"]["containers"]
    assert (worker["replicas"], container["command"]) == (2, ["python", "train.py", "--steps", "5"])
    assert found["PersistentVolumeClaim"]["metadata"]["name"] == "train-out"


def test_a_dry_run_prints_one_json_list_too() -> None:
    done = tfyard("submit", "train.py", "--dry-run=client", "-o", "json")
    assert [each["kind"] for each in json.loads(done.out)["items"]][-1] == "TFJob"


def test_options_change_the_job_of_a_file() -> None:
    words = ("--set", "worker=3", "--env", "LR=1", "--image", "example/b:2", "--name", "other")
    done = tfyard("submit", "job.yaml", *words, "--dry-run=client")
    (job,) = yaml.safe_load_all(done.out)
    worker = job["spec"]["tfReplicaSpecs"]["Worker"]
    (container,) = worker["template"]["spec"]["containers"]
    assert (job["metadata"]["name"], worker["replicas"]) == ("other", 3)
    assert (container["image"], container["env"]) == ("example/b:2", [{"name": "LR", "value": "1"}])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["job.yaml", "--follow", "--wait"], "--follow waits, too"),
        (["job.yaml", "--wait", "-o", "json"], "-o json prints the job as it was submitted"),
        (["job.yaml", "--on-finish", "out"], "--on-finish needs --follow or --wait"),
        (["job.yaml", "--wait", "--on-finish", "job.yaml"], "--on-finish job.yaml: this is a file"),
        (["job.yaml", "--memory", "1Gi"], "--memory is for scripts; a job file has the word memory"),
        (["absent.yaml"], "absent.yaml: file not found"),
        (["../train.py"], "../train.py is outside of this folder"),
        (["job.yaml", "--", "a"], "what follows `--` is for scripts; a job file has the word run"),
        (["train.py", "--steps", "5"], "as in: tfyard submit train.py -- --steps 5"),
        ([], "Missing argument 'FILE'"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(words: list[str], text: str) -> None:
    done = tfyard("submit", "--dry-run=client", *words)
    assert (done.code, done.out) == (2, "")
    assert text in done.err


def test_reporting_to_mlflow_needs_somebody_who_follows_and_the_address_of_a_server() -> None:
    done = tfyard("submit", "job.yaml", "--mlflow", "http://mlflow.example")
    assert (done.code, "--mlflow needs --follow" in done.err) == (2, True)
    done = tfyard("submit", "job.yaml", "--mlflow", "http//me:hunter2@a", "--follow", "--dry-run=client")
    assert (done.code, "must be the address of an MLflow server" in done.err) == (2, True)
    assert "hunter2" not in done.err
    done = tfyard("submit", "job.yaml", "--mlflow", "https://me:hunter2@mlflow.example", "--dry-run=client")
    (job,) = yaml.safe_load_all(done.out)
    assert job["metadata"]["annotations"]["tfyard.dev/mlflow"] == "https://mlflow.example"
    assert "hunter2" not in done.out + done.err


def test_a_name_that_is_too_long_for_its_tasks_is_told_before_a_cluster_is_asked() -> None:
    done = tfyard("submit", "job.yaml", "--name", "a" * 60, "--dry-run=client")
    assert done.code == 1
    assert "error: metadata.name: " in done.err


def test_a_config_with_resources_cannot_be_submitted(folder: Path) -> None:
    config = "resources:\n- {type: tensorflow-cluster, name: c, properties: {}}\n"
    (folder / "config.yaml").write_text(config)
    done = tfyard("submit", "config.yaml", "--dry-run=client")
    assert done.code == 2
    assert "`tfyard render config.yaml | kubectl apply -f -` creates them" in done.err
    assert done.err.count("\n") == 1


def test_an_unreachable_cluster_is_reported_in_one_line() -> None:
    done = tfyard("submit", "job.yaml", "--kubeconfig", "/nowhere")
    assert (done.code, done.err) == (1, "tfyard: /nowhere: no such file\n")


def test_submitting_imports_no_aiohttp_and_printing_manifests_no_asyncio() -> None:
    modules = imported("submit", "job.yaml", "--dry-run=client")
    assert "tfyard.remote.submitting.prepare" in modules
    assert not {"aiohttp", "asyncio", "tfyard.local", "rich"} & modules
    code = "import sys, tfyard.remote.submitting.submission; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"aiohttp", "tfyard.kube.transport", "tfyard.local"} & set(done.stdout.split())
