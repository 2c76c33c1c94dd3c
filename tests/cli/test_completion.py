"""`tfyard completion`, and `kubectl tfyard` with its completion by the real kubectl."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tests.cli.test_get import tfjob
from tests.cli.test_main import imported
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane

SCRIPTS = {
    "kubectl-tfyard": "from tfyard.__main__ import kubectl_plugin as main",
    "kubectl_complete-tfyard": "from tfyard.cli.completion import kubectl_complete as main",
    "tfyard": "from tfyard.__main__ import main",
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with the programs as pip installs them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, line in SCRIPTS.items():
        (folder / name).write_text(f"#!{sys.executable}\n{line}\nmain()\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(shell: str) -> None:
    done = tfyard("completion", shell)
    assert done.code == 0
    assert "_TFYARD_COMPLETE" in done.out


def test_a_shell_is_offered_commands_without_importing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "_TFYARD_COMPLETE": "bash_complete",
        "COMP_WORDS": "tfyard d",
        "COMP_CWORD": "1",
    }.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-m", "tfyard"], capture_output=True, text=True, check=False)
    assert sorted(done.stdout.split()) == [
        f"plain,{name}" for name in ("dashboard", "delete", "describe", "dev", "diff", "doctor")
    ]
    assert "tfyard.cli.doctor" not in imported()


@pytest.mark.processes
def test_bash_completes_the_names_of_runs_and_tasks(tmp_path: Path, path: str) -> None:
    (tmp_path / "train.py").touch()
    assert tfyard("run", "train.py", "-q", cwd=tmp_path).code == 0
    script = (
        "source <(tfyard completion bash); "
        'ask() { COMPREPLY=(); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_tfyard_completion tfyard; echo "${COMPREPLY[@]}"; }; '
        "ask tfyard describe --local tra; ask tfyard runs logs train work"
    )
    env = {**os.environ, "PATH": path}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    run, task = done.stdout.splitlines()
    assert (run.startswith("train-"), task) == (True, "worker-0")


@pytest.mark.cluster
def test_kubectl_runs_and_completes_tfyard_as_a_plugin(
    control_plane: ControlPlane, crds: None, namespace: str, path: str, tmp_path: Path
) -> None:
    with SyncClient(control_plane.admin) as client:
        client.send(requests.create(TFJOBS.path(namespace), tfjob("first")))
    kubectl = str(control_plane.binaries.path("kubectl"))
    env = {**os.environ, "PATH": path, "HOME": str(tmp_path), "KUBECONFIG": str(control_plane.kubeconfig)}

    def run(*args: str) -> str:
        command = [kubectl, *args]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
        return done.stdout

    def offers(*args: str) -> list[str]:
        """A server that does not answer at once offers nothing; so one tries again."""
        for _ in range(20):
            if (found := run("__complete", *args).splitlines()) != [":4"]:
                break
        return found

    assert run("tfyard", "get", "-n", namespace, "-o", "name") == "tfjob.kubeflow.org/first\n"
    assert run("tfyard", "get", "--help").startswith("Usage: kubectl tfyard get ")
    assert offers("tfyard", "describe", "-n", namespace, "fi") == ["first", ":4"]
    assert offers("tfyard", "get", "-n", namespace[:-1]) == [namespace, ":4"]
    assert offers("tfyard", "get", "--context", "") == ["tfyard", ":4"]
