"""GPUs of this machine, distributed over the tasks: each task sees its own by CUDA_VISIBLE_DEVICES."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from tfyard.errors import Usage
from tfyard.model import PS, Job, Manifest, Task, tensorflow_container

VARIABLE = "CUDA_VISIBLE_DEVICES"
ALLOW_GROWTH = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}
"""Variable without which the first task that uses a GPU takes all of its memory."""
NAMED_TASKS = 4
"""More tasks with the same GPUs than this are counted instead of named."""

Shares = dict[Task, tuple[str, ...]]
"""GPUs of each task. A task that is missing here sees the same GPUs as tfyard."""


def visible() -> list[str]:
    """GPUs that this process may use: CUDA_VISIBLE_DEVICES if it is set, else every NVIDIA device."""
    if (chosen := os.environ.get(VARIABLE)) is not None:
        names = (name.strip() for name in chosen.split(","))
        return [name for name in takewhile(lambda name: name != "-1", names) if name]
    matches = (re.fullmatch(r"nvidia(\d+)", path.name) for path in Path("/dev").iterdir())
    return sorted((match[1] for match in matches if match), key=int)


def share(job: Job, devices: Sequence[str], *, sharing: bool = False) -> Shares:
    """A task that requests GPUs gets that many of its own; Usage if there are not enough, unless tasks may share
    them. If no task requests any, they are spread over all but parameter servers."""
    counts = dict(_counts(job))
    if not devices or not counts:
        return {}
    if not any(counts.values()):
        return _spread(list(counts), devices)
    total = sum(counts.values())
    if total > len(devices) and not sharing:
        text = f"{job.name} requests {counted(total)}, and this machine has {len(devices)}"
        raise Usage(f"{text}; --share-gpus lets tasks share them")
    return _deal(counts, devices)


def variables(shares: Shares, task: Task) -> dict[str, str]:
    """Variables by which a task sees only its GPUs."""
    if task not in shares:
        return {}
    is_shared = any(device in _shared(shares) for device in shares[task])
    return {VARIABLE: ",".join(shares[task]), **(ALLOW_GROWTH if is_shared else {})}


def describe(shares: Shares) -> str:
    """The GPUs of each task, in one line."""
    tasks: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for task, devices in shares.items():
        tasks[devices].append(task.name)
    parts = "; ".join(f"{_names(tasks[devices])}: {', '.join(devices) or 'none'}" for devices in tasks)
    note = "".join(f" (tasks share GPUs: {name}={value})" for name, value in ALLOW_GROWTH.items())
    return f"GPUs of {parts}{note if _shared(shares) else ''}"


def requested(template: Manifest) -> int:
    limits = (tensorflow_container(template).get("resources") or {}).get("limits") or {}
    return sum(int(count) for name, count in limits.items() if str(name).endswith("/gpu"))


def missing(job: Job, devices: Sequence[str], *, asked: bool) -> str:
    """Warning if there is no GPU although the job or its user asks for some; else empty."""
    total = sum(requested(role.template) * role.replicas for role in job.roles)
    if devices or not (total or asked):
        return ""
    requests = f", and {job.name} requests {total}" if total else ""
    return f"this machine has no GPU{requests}: its tasks run without"


def _counts(job: Job) -> Iterator[tuple[Task, int]]:
    """GPUs that each task requests, without tasks that set CUDA_VISIBLE_DEVICES themselves."""
    for role in job.roles:
        env = tensorflow_container(role.template).get("env") or []
        if not any(entry.get("name") == VARIABLE for entry in env):
            yield from ((task, requested(role.template)) for task in role.tasks())


def _spread(tasks: list[Task], devices: Sequence[str]) -> Shares:
    """An equal number of GPUs for each task; if there are fewer than tasks, one each, which tasks share."""
    trainers = sum(task.role != PS for task in tasks)
    per_task = max(1, len(devices) // max(1, trainers))
    return _deal({task: 0 if task.role == PS else per_task for task in tasks}, devices)


def _deal(counts: Mapping[Task, int], devices: Sequence[str]) -> Shares:
    """Gives the next GPUs to one task after the other; after the last GPU, the first one follows again."""
    shares: Shares = {}
    start = 0
    for task, count in counts.items():
        chosen = range(start, start + min(count, len(devices)))
        shares[task] = tuple(devices[number % len(devices)] for number in chosen)
        start = chosen.stop
    return shares


def _shared(shares: Shares) -> set[str]:
    users = Counter(device for devices in shares.values() for device in devices)
    return {device for device, count in users.items() if count > 1}


def _names(tasks: list[str]) -> str:
    more = len(tasks) - NAMED_TASKS
    return ", ".join(tasks[:NAMED_TASKS]) + (f" and {more} more" if more > 0 else "")


def counted(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
