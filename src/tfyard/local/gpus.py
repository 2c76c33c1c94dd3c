"""GPUs of this machine, shared out over the tasks."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tfyard.model import PS, Job, Manifest, Task, tensorflow_container

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible(env: Mapping[str, str] = os.environ) -> list[str]:
    """Those that this process may use: as told by CUDA_VISIBLE_DEVICES, else every NVIDIA device."""
    if VARIABLE in env:
        return [name for name in env[VARIABLE].split(",") if name.strip()]
    return sorted(
        match[1] for path in Path("/dev").iterdir() if (match := re.fullmatch(r"nvidia(\d+)", path.name))
    )


def share(job: Job, devices: list[str]) -> dict[Task, str]:
    """Task -> its CUDA_VISIBLE_DEVICES. Who asks for GPUs gets that many, while they last; if nobody asks,
    everybody but parameter servers gets an equal part."""
    asked = {task: _asked(role.template) for role in job.roles for task in role.tasks()}
    if not any(asked.values()):
        trainers = [task for task in asked if task.role != PS]
        each = len(devices) // max(1, len(trainers))
        asked = {task: each if task in trainers else 0 for task in asked}
    left = list(devices)
    parts = {}
    for task, count in asked.items():
        parts[task], left = ",".join(left[:count]), left[count:]
    return parts


def _asked(template: Manifest) -> int:
    limits = (tensorflow_container(template).get("resources") or {}).get("limits") or {}
    return sum(int(count) for name, count in limits.items() if str(name).endswith("/gpu"))
