"""GPUs, distributed over the tasks."""

import pytest

from tfyard.errors import Usage
from tfyard.local import gpus
from tfyard.model import Job, Role, Task

WORKERS = [Task("Worker", 0), Task("Worker", 1)]
SERVER = Task("PS", 0)


def job(worker: int = 0, ps: int = 0, workers: int = 2, **container: object) -> Job:
    """Each worker and each ps requests so many GPUs."""

    def role(name: str, replicas: int, count: int) -> Role:
        limits = {"nvidia.com/gpu": count} if count else {}
        made = {"name": "tensorflow", "image": "i", "resources": {"limits": limits}, **container}
        return Role(name=name, replicas=replicas, template={"spec": {"containers": [made]}})

    return Job(name="j", roles=(role("Worker", workers, worker), role("PS", 1, ps)))


def seen(asked: Job, devices: list[str], *, sharing: bool = False) -> list[str]:
    """CUDA_VISIBLE_DEVICES of both workers and the ps; `+`: with memory growth."""
    shares = gpus.share(asked, devices, sharing=sharing)
    found = [gpus.variables(shares, task) for task in (*WORKERS, SERVER)]
    return [env["CUDA_VISIBLE_DEVICES"] + "+" * ("TF_FORCE_GPU_ALLOW_GROWTH" in env) for env in found]


@pytest.mark.parametrize(
    ("asked", "devices", "expected"),
    [
        pytest.param(job(worker=1), "0 1 2", ["0", "1", ""], id="each task has its own"),
        pytest.param(job(worker=1, ps=1), "4 5 6", ["4", "5", "6"], id="a ps too if it requests one"),
        pytest.param(job(), "0 1 2 3 4", ["0,1", "2,3", ""], id="no task requests any: an equal number"),
        pytest.param(job(), "0", ["0+", "0+", ""], id="fewer than tasks: they share"),
    ],
)
def test_gpus_are_distributed(asked: Job, devices: str, expected: list[str]) -> None:
    assert seen(asked, devices.split()) == expected


def test_more_than_there_are_is_refused_with_both_numbers_unless_tasks_may_share() -> None:
    with pytest.raises(Usage, match="j requests 4 GPUs, and this machine has 3; --share-gpus"):
        gpus.share(job(worker=2), ["0", "1", "2"])
    assert seen(job(worker=2), ["0", "1", "2"], sharing=True) == ["0,1+", "2,0+", ""]
    assert seen(job(worker=8), ["0", "1"], sharing=True) == ["0,1+", "0,1+", ""]
    assert seen(job(worker=1), ["0", "1"], sharing=True) == ["0", "1", ""]


def test_one_line_names_the_gpus_of_each_task() -> None:
    own = gpus.share(job(worker=2), ["0", "1", "2", "3"])
    assert gpus.describe(own) == "GPUs of worker-0: 0, 1; worker-1: 2, 3; ps-0: none"
    shared = gpus.share(job(workers=12), ["0", "1"])
    assert gpus.describe(shared) == (
        "GPUs of worker-0, worker-2, worker-4, worker-6 and 2 more: 0; "
        "worker-1, worker-3, worker-5, worker-7 and 2 more: 1; ps-0: none "
        "(tasks share GPUs: TF_FORCE_GPU_ALLOW_GROWTH=true)"
    )


def test_a_missing_gpu_is_reported_only_if_one_is_requested() -> None:
    assert gpus.share(job(worker=1), []) == {}
    assert gpus.missing(job(worker=1), [], asked=False) == (
        "this machine has no GPU, and j requests 2: its tasks run without"
    )
    assert gpus.missing(job(), [], asked=True) == "this machine has no GPU: its tasks run without"
    assert gpus.missing(job(), [], asked=False) == gpus.missing(job(worker=1), ["0"], asked=True) == ""


def test_tasks_that_choose_their_gpus_themselves_are_left_alone() -> None:
    own = job(env=[{"name": "CUDA_VISIBLE_DEVICES", "value": "1"}])
    assert gpus.share(own, ["0", "1"]) == {}


@pytest.mark.parametrize(
    ("chosen", "visible"), [("3, 5", ["3", "5"]), ("GPU-8932f937,-1,0", ["GPU-8932f937"]), ("", [])]
)
def test_visible_gpus_are_those_that_this_process_may_use(
    chosen: str, visible: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert gpus.visible() == visible
