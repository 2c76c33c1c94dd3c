"""What `tfyard render` writes for a cluster without the operator is read as the job that it was made from."""

from collections.abc import Callable

import pytest

from tfyard import formats
from tfyard.formats.workloads.load import load
from tfyard.model import Job, tensorflow_container
from tfyard.render import RenderedObject, RenderOptions, to_yaml
from tfyard.render.legacy import legacy
from tfyard.render.plain import plain

Form = Callable[[Job, RenderOptions], list[RenderedObject]]

ONE_PROGRAM = (
    "name: t\nimage: a\nrun: [python, train.py, --x]\nenv: {A: b}\nworker: 2\nps: 1\nrestart: exit-code\n"
)
TWO_PROGRAMS = """
name: t
image: a
run: python train.py
chief: 1
worker: 2
ps: {count: 1, run: [python, serve.py]}
volumes: {out: {claim: t-out, at: /out}}
restart: on-failure
"""
ALONE = "name: t\nimage: a\nrun: [python, train.py]\nworker: 1\nrestart: never\n"


def programs(job: Job) -> dict[str, object]:
    """What each role runs, without what any job has on a cluster."""
    seen = {}
    for role in job.roles:
        container = tensorflow_container(role.template)
        env = {entry["name"] for entry in container.get("env") or ()} - {"JOB_COMPLETION_INDEX"}
        mounts = [mount["mountPath"] for mount in container.get("volumeMounts") or ()]
        inits = [each["name"] for each in role.template["spec"].get("initContainers") or ()]
        command = [*(container.get("command") or ()), *(container.get("args") or ())]
        seen[role.name] = (role.replicas, command, env, mounts, inits)
    return seen


@pytest.mark.parametrize(
    "text", [ONE_PROGRAM, TWO_PROGRAMS, ALONE], ids=["one program", "two programs", "alone"]
)
@pytest.mark.parametrize("form", [plain, legacy], ids=["plain", "legacy"])
def test_a_rendered_job_is_read_as_it_was(text: str, form: Form) -> None:
    (document,) = formats.read(text)
    job = formats.load(document)
    documents = formats.read(to_yaml(form(job, RenderOptions())))
    (read,) = load(documents, uses_images=False)
    assert not read.problems
    assert programs(read.one) == programs(job)
    assert read.one.success == job.success == ""
    if form is plain:  # ReplicationControllers have no restart policy
        assert {role.restart for role in read.one.roles} == {role.restart for role in job.roles}
        assert not [sentence for sentence in read.said if "left out" in sentence]
