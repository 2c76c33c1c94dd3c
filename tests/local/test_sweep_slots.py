"""How many trials of a sweep run at the same time on this machine, and which GPUs each of them sees."""

from typing import Any

import pytest

from tfyard.errors import Usage
from tfyard.local.sweeps import slots, that_fit
from tfyard.model import Job, Role

GIB = 1024**3


def job(workers: int = 1, ps: int = 0, **limits: Any) -> Job:
    def role(name: str, replicas: int) -> Role:
        container = {"name": "tensorflow", "image": "i", "resources": {"limits": limits}}
        return Role(name=name, replicas=replicas, template={"spec": {"containers": [container]}})

    return Job(name="j", roles=(role("Worker", workers), role("PS", ps)))


@pytest.mark.parametrize(
    ("asked", "devices", "expected"),
    [
        pytest.param(job(), "", 8, id="a task without a limit takes a core"),
        pytest.param(job(workers=2, ps=1), "", 4, id="a parameter server takes none"),
        pytest.param(job(cpu="500m"), "", 16, id="a limit of CPU counts"),
        pytest.param(job(cpu=4), "", 2, id="so do several cores"),
        pytest.param(job(cpu=64), "", 1, id="one trial runs always"),
        pytest.param(job(memory="12Gi"), "", 2, id="memory is shared out over all trials"),
        pytest.param(job(**{"nvidia.com/gpu": 2}), "0 1 2 3 4", 2, id="so are GPUs"),
        pytest.param(job(workers=2), "0 1", 1, id="where there are GPUs, each task that trains has one"),
    ],
)
def test_as_many_trials_run_as_fit_the_machine(asked: Job, devices: str, expected: int) -> None:
    assert that_fit(asked, 8, 30 * GIB, devices.split()) == expected


def seen(
    monkeypatch: pytest.MonkeyPatch, devices: str, asked: Job, parallel: int, *, sharing: bool = False
) -> list[str]:
    """CUDA_VISIBLE_DEVICES of each slot; `+`: with memory growth."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    return [
        slot.get("CUDA_VISIBLE_DEVICES", "all") + "+" * ("TF_FORCE_GPU_ALLOW_GROWTH" in slot)
        for slot in slots(asked, parallel, sharing=sharing)
    ]


def test_each_slot_has_gpus_of_its_own_as_long_as_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(monkeypatch, "0,1,2,3,4", job(), 2) == ["0,1", "2,3"]
    assert seen(monkeypatch, "4,5", job(), 3) == ["4+", "5+", "4+"]
    assert seen(monkeypatch, "", job(), 2) == ["all", "all"]


def test_more_trials_than_gpus_for_them_are_refused_with_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    needy = job(**{"nvidia.com/gpu": 2})
    with pytest.raises(Usage, match=r"parallel 2: each trial requests 2 GPUs, .* has 3, enough for 1"):
        seen(monkeypatch, "0,1,2", needy, 2)
    with pytest.raises(Usage, match=r"parallel 1: each trial requests 2 GPUs, and this machine has 1$"):
        seen(monkeypatch, "0", needy, 1)
    assert seen(monkeypatch, "0,1,2", needy, 2, sharing=True) == ["0", "1"]
