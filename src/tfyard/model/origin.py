"""Where a job comes from: what only the client knows when it starts or submits a job."""

from datetime import datetime

from msgspec import Struct

VERSION = 1
"""Version of the format of records."""
LARGEST_DIFF = 384 << 10
"""Bytes of what was not committed, as far as it is recorded."""


class CodeState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The code of a job as git knows it."""

    commit: str = ""
    """The commit is empty if it is unknown, or if the tree has none yet."""
    branch: str = ""
    """The branch is empty if the head is detached."""
    remote: str = ""
    """Address from which the code comes, without credentials."""
    root: str = ""
    """The tree's folder on this machine."""
    folder: str = ""
    """Path of the job's folder in the tree."""
    is_dirty: bool | None = None
    changed: tuple[str, ...] = ()
    """The changed files of a dirty tree, as `git status --short` writes them."""
    missing: tuple[str, ...] = ()
    """Changes that are not in the recorded diff, and why."""
    problem: str = ""
    """Why nothing, or not more, is known."""


class Software(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Python and the packages with which the tasks ran."""

    python: str = ""
    packages: dict[str, str] = {}
    problem: str = ""
    """Why the packages are not known."""


class MachineRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine of a run."""

    name: str = ""
    system: str = ""
    cpus: int = 0
    memory: int = 0
    """The memory is counted in bytes."""
    gpus: tuple[str, ...] = ()


class Origin(Struct, frozen=True, kw_only=True):
    """What the client knew when it started or submitted the job."""

    version: int = VERSION
    tfyard: str = ""
    submitter: str = ""
    """The user, as the client says."""
    at: datetime | None = None
    command: tuple[str, ...] = ()
    parameters: dict[str, str] = {}
    code: CodeState = CodeState()
    software: Software | None = None
    """A script of tfyard's in the pods of a job on a cluster tells it; it is None where there is none."""
    machine: MachineRecord | None = None
    """The value is None if the job runs on a cluster."""
