"""This machine as the node of a run: its directories, environment and GPUs, and the process of each task."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from tfyard import planner
from tfyard.backends.local import run_directory
from tfyard.errors import Usage
from tfyard.local import code, gpus
from tfyard.local.prepared import Prepared
from tfyard.model import Create, Manifest, Observed, Task
from tfyard.node import cgroups
from tfyard.node.node import Kubelet, Machine, has_memory_limit
from tfyard.node.processes import Command
from tfyard.node.volumes import Volumes


def machine(prepared: Prepared, directory: Path) -> Machine:
    job, settings = prepared.job, prepared.settings
    devices = gpus.share(job, gpus.visible()) if settings.gpus else {}
    folder = code.folder(job.code, prepared.file.parent, directory / "code") if job.code else None

    def extra_env(task: Task) -> dict[str, str]:
        return {**({gpus.VARIABLE: devices[task]} if task in devices else {}), **settings.variables}

    return Machine(
        directory=directory,
        volumes=Volumes(Path.cwd() / run_directory.HOME / "volumes", prepared.mounts, prepared.objects),
        objects=prepared.objects,
        base_env=base_env(),
        extra_env=extra_env,
        code=(str(folder), job.code.at, False) if job.code else None,
        make_group=cgroups.find() if any(has_memory_limit(role.template) for role in job.roles) else None,
        attached=frozenset(settings.attach),
    )


def base_env() -> dict[str, str]:
    """Ours, as a shell would pass it on; `python` is the interpreter that runs tfyard, and its output is not
    buffered, because log lines should appear at once."""
    own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', os.defpath)}"
    return {"PYTHONUNBUFFERED": "1", **own, "PATH": path}


def commands(prepared: Prepared) -> dict[Task, Command]:
    """The process of every task, made by the same code that starts it; Usage if one cannot be made."""
    kubelet = Kubelet(machine(prepared, Path.cwd() / run_directory.HOME / "runs" / "RUN"), lambda _told: None)
    decision = planner.decide(prepared.job, Observed(), prepared.site, datetime.now(UTC))
    pods = [a.manifest for a in decision.actions if isinstance(a, Create) and a.kind == "Pod"]
    for pod in pods:
        kubelet.machine.volumes.check(pod)
    return {
        task: [
            _command(kubelet, pod, task, container)
            for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])
        ][-1]
        for task, pod in zip(prepared.job.tasks(), pods, strict=True)
    }


def _command(kubelet: Kubelet, pod: Manifest, task: Task, container: Manifest) -> Command:
    command, asked = kubelet.command(pod, task, container, "0"), container.get("workingDir")
    if command.cwd == asked and not Path(asked).is_dir():  # else it is in a volume, which is made later
        text = f"{task.name}: the working directory {asked} is in the image, and images are not used here"
        raise Usage(f"{text}; say where your code is (job file: code, see `tfyard convert`), or remove it")
    return command
