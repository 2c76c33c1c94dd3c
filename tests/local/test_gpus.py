"""GPUs, shared out over the tasks."""

from tfyard.local import gpus
from tfyard.model import Job, Role, Task


def job(**limits: int) -> Job:
    container = {"name": "tensorflow", "image": "i", "resources": {"limits": limits}}
    template = {"spec": {"containers": [container]}}
    roles = (Role(name="Worker", replicas=2, template=template), Role(name="PS", template=template))
    return Job(name="j", roles=roles)


def test_gpus_go_to_whoever_asks_for_them_while_they_last() -> None:
    asking = job(**{"nvidia.com/gpu": 2})
    shared = gpus.share(asking, ["0", "1", "2"])
    assert shared == {Task("Worker", 0): "0,1", Task("Worker", 1): "2", Task("PS", 0): ""}


def test_visible_gpus_are_those_that_this_process_may_use() -> None:
    assert gpus.visible({"CUDA_VISIBLE_DEVICES": "3,5"}) == ["3", "5"]
    assert gpus.visible({"CUDA_VISIBLE_DEVICES": ""}) == []
