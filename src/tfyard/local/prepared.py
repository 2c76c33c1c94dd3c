"""All that is known of a run before it starts."""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tfyard import formats, planner
from tfyard.local.interpreter import Interpreter
from tfyard.local.ports import Ports
from tfyard.local.settings import Rehearsal, Settings
from tfyard.model import Job, Problem, Status
from tfyard.node.containers import Objects


class Notebook(Struct, frozen=True, kw_only=True):
    """Jupyter beside the run."""

    hashed: str
    """Of the password, which is written nowhere."""
    cluster_config: str
    """The addresses of all tasks."""


class Prepared(Struct, frozen=True, kw_only=True):
    settings: Settings
    job: Job
    file: Path
    """The job file; `code` is relative to its folder."""
    python: Interpreter
    objects: Objects
    mounts: dict[str, Path]
    rehearsals: list[Rehearsal]
    pattern: re.Pattern[str] | None
    ports: Ports
    site: planner.Site
    resumes: str = ""
    """The run that this one goes on from."""
    memory: Status | None = None
    """What that run has finished."""
    notebook: Notebook | None = None
    ignored: tuple[str, ...] = ()
    """What the job says and no single machine can do."""
    is_from_workloads: bool = False
    """The file has no job but Kubernetes' own workloads; `changes` says what is different from them."""
    is_from_config: bool = False
    """The file is a config with resources."""
    changes: tuple[str, ...] = ()
    warnings: tuple[Problem, ...] = ()
    text: formats.Document | Sequence[str] = ()
    """What the warnings are about."""
