"""All that is known of a run before it starts."""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tfyard import formats, planner
from tfyard.local.ports import PortPool
from tfyard.local.settings import Rehearsal, RunOptions
from tfyard.model import Job, Problem, Status
from tfyard.node.interpreter import Interpreter
from tfyard.node.pod_data import Objects


class RunNotebook(Struct, frozen=True, kw_only=True):
    """Jupyter beside the run."""

    hashed: str
    """Hash of the password, which is written nowhere."""
    cluster_config: str
    """The addresses of all tasks."""


class PreparedRun(Struct, frozen=True, kw_only=True):
    settings: RunOptions
    job: Job
    file: Path
    """The job file; `code` is relative to its folder."""
    python: Interpreter
    objects: Objects
    mounts: dict[str, Path]
    rehearsals: list[Rehearsal]
    pattern: re.Pattern[str] | None
    ports: PortPool
    site: planner.Site
    resumes: str = ""
    """Name of the run that this one continues."""
    memory: Status | None = None
    """Finished tasks and used retries of that run."""
    notebook: RunNotebook | None = None
    ignored: tuple[str, ...] = ()
    """Settings of the job that a single machine does not support."""
    is_from_config: bool = False
    """The file is a config with resources."""
    notes: tuple[str, ...] = ()
    """Further remarks for the user."""
    changes: tuple[str, ...] = ()
    warnings: tuple[Problem, ...] = ()
    text: formats.Document | Sequence[str] = ()
    """Text that the warnings refer to."""

    @property
    def reader(self) -> str:
        """The task that has the standard input of tfyard: the only one, unless the user starts it."""
        tasks = [task.name for task in self.job.tasks()]
        return tasks[0] if len(tasks) == 1 and not self.settings.attach else ""
