"""GPUs of this machine, distributed over the tasks."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tfyard.model import PS, Job, Manifest, Task, tensorflow_container

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible(env: Mapping[str, str] = os.environ) -> list[str]:
    """Those that this process may use: CUDA_VISIBLE_DEVICES if it is set, else every NVIDIA device."""
    if VARIABLE in env:
        return [name for name in env[VARIABLE].split(",") if name.strip()]
    return sorted(
        match[1] for path in Path("/dev").iterdir() if (match := re.fullmatch(r"nvidia(\d+)", path.name))
    )


def share(job: Job, devices: list[str]) -> dict[Task, str]:
    """Task -> its CUDA_VISIBLE_DEVICES. A task that requests GPUs gets that many, as long as there are any; if no
    task requests any, all but parameter servers get an equal number."""
    counts = {task: requested(role.template) for role in job.roles for task in role.tasks()}
    if not any(counts.values()):
        trainers = [task for task in counts if task.role != PS]
        each = len(devices) // max(1, len(trainers))
        counts = {task: each if task in trainers else 0 for task in counts}
    left = list(devices)
    parts = {}
    for task, count in counts.items():
        parts[task], left = ",".join(left[:count]), left[count:]
    return parts


def requested(template: Manifest) -> int:
    limits = (tensorflow_container(template).get("resources") or {}).get("limits") or {}
    return sum(int(count) for name, count in limits.items() if str(name).endswith("/gpu"))
