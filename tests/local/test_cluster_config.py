"""A config with resources as a job of this machine."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.render.test_resource_config import SEED_CONFIG
from tfyard.errors import Invalid, Usage
from tfyard.local import cluster_config, commands
from tfyard.local.prepare import prepare
from tfyard.local.prepared import PreparedRun
from tfyard.local.settings import RunOptions
from tfyard.node.interpreter import Interpreter

ONE_TASK = "resources: [{type: tensorflow-cluster, properties: {jobs: {master: 1}}}]"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepared(text: str, *, notebook: bool = False, sets: tuple[str, ...] = ()) -> PreparedRun:
    Path("my-config.yaml").write_text(text)
    found = prepare(RunOptions(target="my-config.yaml", notebook=notebook, sets=sets))
    found.ports.release()
    return found


def test_each_task_is_a_server_with_the_name_that_the_config_gives_it() -> None:
    found = commands.planned(prepared(SEED_CONFIG))
    names = ["ps-0", "ps-1", "workers-0", "workers-1", "workers-2"]
    assert [process.task for process in found] == names
    assert [process.env["POD_NAME"] for process in found] == names
    clusters = {process.env["CLUSTER_CONFIG"] for process in found}
    assert len(clusters) == 1
    cluster = json.loads(clusters.pop())
    assert {job: len(hosts) for job, hosts in cluster.items()} == {"ps": 2, "workers": 3}
    assert all(host.startswith("127.0.0.1:") for hosts in cluster.values() for host in hosts)
    assert found[0].command == ["python3", "/tfyard/server.py"]


def test_a_single_task_and_a_master_keep_their_names() -> None:
    (process,) = commands.planned(prepared(ONE_TASK))
    assert (process.task, process.env["POD_NAME"]) == ("master-0", "master-0")
    assert list(json.loads(process.env["CLUSTER_CONFIG"])) == ["master"]


def test_resources_that_only_a_cluster_supports_are_named() -> None:
    text = f"imports: [{{name: mine, path: mine.jinja}}]\n{ONE_TASK[:-1]}, {{type: mine}}]"
    assert prepared(text).ignored == ("the template mine.jinja",)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("resources: [{type: pd, properties: {name: a}}]", {}, "has 0 resources of type tensorflow-cluster"),
        (
            ONE_TASK,
            {"notebook": True},
            "the config has no password for Jupyter; add - {type: jupyter-service",
        ),
        (ONE_TASK, {"sets": ("worker=2",)}, "a config says itself how many tasks its jobs have: num_tasks"),
        ("name: a\nimage: b\nrun: c\n", {"notebook": True}, "--notebook is for a config with resources"),
    ],
)
def test_a_wrong_config_is_refused_with_the_fix(text: str, options: dict[str, bool], said: str) -> None:
    with pytest.raises(Usage) as refused:
        prepared(text, **options)  # type: ignore[arg-type]
    assert said in str(refused.value)


def test_all_problems_of_a_config_are_reported_before_anything_starts() -> None:
    with pytest.raises(Invalid) as refused:
        prepared(SEED_CONFIG.replace("num_tasks: 2", "num_tasks: two").replace("'a good password'", "1"))
    assert len(refused.value.problems) == 2
    assert all(problem.position for problem in refused.value.problems)


def test_without_jupyter_one_line_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "python").write_text("#!/bin/sh\n")
    (folder / "python").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    bare = replace(prepared(SEED_CONFIG), python=Interpreter(str(folder / "python"), "--python"))
    with pytest.raises(Usage, match=f"Jupyter is not installed; {folder}/python -m pip install notebook"):
        cluster_config.missing_kernel(bare)


def test_other_users_cannot_read_the_hash_of_the_password_or_what_is_written_beside_it(folder: Path) -> None:
    pytest.importorskip("jupyter_server")
    command = cluster_config.jupyter(prepared(SEED_CONFIG, notebook=True), 1234, folder)
    assert command.argv[3:5] == ["--ip=127.0.0.1", "--port=1234"]
    path = Path(command.env["JUPYTER_CONFIG_PATH"])
    assert "argon2:" in (path / "jupyter_server_config.json").read_text()
    assert [one.stat().st_mode & 0o77 for one in (path, path.parent)] == [0, 0]
    assert "a good password" not in str(command)
