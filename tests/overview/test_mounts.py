"""The volume that a path of a task is on."""

from typing import Any

import pytest

from tfyard.errors import Usage
from tfyard.model import Job, Role
from tfyard.overview import mounts


def template(*places: dict[str, Any]) -> dict[str, Any]:
    claims = {"out": "mnist-out", "logs": "shared-logs"}
    volumes: list[dict[str, Any]] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()
    ]
    volumes.append({"name": "scratch", "emptyDir": {}})
    container = {"name": "tensorflow", "volumeMounts": [*places]}
    return {"spec": {"containers": [container], "volumes": volumes}}


def at(name: str, path: str, **more: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **more}


LOGS = at("logs", "/out/logs", subPath="m")
JOB = Job(
    name="mnist",
    roles=(
        Role(name="Chief", template=template(at("scratch", "/tmp"))),
        Role(
            name="Worker",
            replicas=2,
            template=template(at("out", "/out/"), at("logs", "/out/logs", subPath="m")),
        ),
    ),
)


def test_the_nearest_mount_has_the_path() -> None:
    worker = JOB.roles[1].template
    nearest = [mounts.nearest(worker, path) for path in ("/out/model", "/out/logs/x", "/outer", "/")]
    assert [(each.claim, each.at, each.sub_path) if each else None for each in nearest] == [
        ("mnist-out", "/out", ""),
        ("shared-logs", "/out/logs", "m"),
        None,
        None,
    ]
    assert [each.at for each in mounts.below(worker, "/out")] == ["/out/logs"]


def test_a_folder_whose_name_only_the_pod_knows_is_on_no_claim() -> None:
    mounted = mounts.nearest(template(at("out", "/out", subPathExpr="$(POD)")), "/out/x")
    assert mounted is not None
    assert mounted.claim == ""


def test_the_role_is_that_of_the_task_or_the_first_with_a_claim() -> None:
    assert mounts.role_of(JOB, "", "/out/model").name == "Worker"
    assert mounts.role_of(JOB, "", "/tmp/x").name == "Chief"
    assert mounts.role_of(JOB, "chief-0", "/out/model").name == "Chief"
    with pytest.raises(Usage, match="mnist has no task 'worker-2'; did you mean"):
        mounts.role_of(JOB, "worker-2", "/out")


@pytest.mark.parametrize(("path", "normal"), [("/out/", "/out"), ("//out/./a/../b", "/out/b"), ("/..", "/")])
def test_paths_are_absolute_and_plain(path: str, normal: str) -> None:
    assert mounts.normal(path, JOB) == normal


@pytest.mark.parametrize("path", ["", "out/model", "/out/\udcff", "/a\nb"])
def test_other_paths_are_refused_with_what_there_is(path: str) -> None:
    with pytest.raises(Usage, match=r"as the tasks see it.*/out/ is the claim mnist-out"):
        mounts.normal(path, JOB)
