"""Junk in any place of any input gives a message, never a traceback."""

import copy
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from .calling import HERE, JOBS, documents, tfyard

JUNK = [
    None,
    7,
    -1,
    10**9,
    1.5,
    True,
    "",
    "text",
    "A_b",
    [],
    [1],
    [None],
    {},
    {"a": 1},
    [{"name": 1}],
    "x" * 300,
]
CONTROLLERS = [
    document
    for document in documents(
        (HERE / "seeds" / "003" / "work_ps.yaml").read_text().replace("*" * 10, "node-a")
    )
    if document["metadata"]["name"]
    in ("tensorflow-ps-rc", "tensorflow-worker0-rc", "tensorflow-cluster-config")
]
POD = {
    "metadata": {"labels": {"job": "worker", "task": "0"}, "annotations": {"a": "b"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "tensorflow",
                "image": "a:1",
                "args": ["--ps_hosts=b-ps-0:1", "--task_index", "0"],
                "env": [
                    {"name": "TF_CONFIG", "value": '{"cluster": {"ps": ["b-ps-0:1"]}, "task": {"index": 0}}'}
                ],
                "ports": [{"containerPort": 1}, {"containerPort": 2}],
            }
        ],
    },
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "b-ps-0"},
    "spec": {"selector": {"job": "ps"}},
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "b-worker-0"},
    "spec": {
        "completions": 2,
        "parallelism": 2,
        "completionMode": "Indexed",
        "backoffLimit": 1,
        "template": POD,
    },
}
SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "b-ps"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": POD},
}
CONFIG = documents((HERE / "configs" / "numbers.yaml").read_text()) + documents(
    (HERE.parents[1] / "compat" / "templates" / "config.yaml").read_text()
)
MNIST = [{**documents((JOBS / "mnist.yaml").read_text())[0], "code": str(JOBS / "code")}]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    paths = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        paths += places(inner, (*path, key))
    return paths


def broken(source: list[Any]) -> st.SearchStrategy[str]:
    """The documents as YAML, with one to three values replaced by junk."""

    @st.composite
    def build(draw: st.DrawFn) -> str:
        data = copy.deepcopy(source)
        for _ in range(draw(st.integers(1, 3))):
            path = draw(st.sampled_from([path for path in places(data) if path]))
            owner = data
            for step in path[:-1]:
                owner = owner[step]
            owner[path[-1]] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        return yaml.safe_dump_all(data)

    return build()


def check(*arguments: str, text: str) -> None:
    """Runs a command. `tfyard` raises every exception but an exit, so the test would fail with a traceback."""
    done = tfyard(*arguments, text=text)
    assert done.code in (0, 1, 2)
    assert bool(done.out) is (done.code == 0)
    assert done.code == 0 or done.err


@settings(max_examples=120)
@given(st.one_of(broken(CONTROLLERS), broken([SERVICE, JOB, SET])), st.booleans())
def test_junk_in_workloads_gives_a_message_and_no_traceback(text: str, allow_missing: bool) -> None:
    check("convert", "-", "--to", "jobfile", *(["--allow-missing"] if allow_missing else []), text=text)


@settings(max_examples=60)
@given(broken(CONFIG))
def test_junk_in_a_config_with_resources_gives_a_message_and_no_traceback(text: str) -> None:
    check("render", "-", text=text)


@settings(max_examples=60)
@given(broken(MNIST), st.sampled_from(["tfjob", "plain", "legacy"]))
def test_junk_in_a_job_file_gives_a_message_and_no_traceback_in_every_form(text: str, form: str) -> None:
    check("render", "-", "--as", form, text=text)
