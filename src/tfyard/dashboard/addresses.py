"""Addresses of jobs in the page: `job/NAMESPACE/NAME/` for a TFJob, `run/NAME/` for a run on this machine."""

import re
from urllib.parse import quote

from msgspec import Struct

from tfyard.errors import NoSuchJob, Usage
from tfyard.model.summary import JobSummary

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class Address(Struct, frozen=True, order=True):
    namespace: str
    """Empty for a run on this machine."""
    name: str

    @property
    def path(self) -> str:
        """Path of the job's page, below the root of all pages."""
        name = quote(self.name, safe="")
        return f"job/{quote(self.namespace, safe='')}/{name}/" if self.namespace else f"run/{name}/"

    @property
    def title(self) -> str:
        """The name by which every command of the terminal finds it."""
        return self.name if self.namespace else f"run/{self.name}"

    @property
    def key(self) -> str:
        """The value of a form's field that means this job."""
        return f"{self.namespace}/{self.name}"

    def file(self, ending: str) -> dict[str, str]:
        """The header of an answer that browsers keep as a file of the job's name."""
        name = _ODD.sub("_", self.name)
        return {"Content-Disposition": f'attachment; filename="{name}{ending}"'}

    def require_name(self) -> None:
        """Raise if no job can have this name. To the commands of the terminal, a path is a run, too; an address
        must not lead out of the folder of the runs."""
        if not _NAME.fullmatch(self.name):
            raise NoSuchJob(f"there is no job {self.name[:100]!r}: a job cannot have this name")


def of(job: JobSummary) -> Address:
    return Address(job.namespace, job.name)


def read(key: str) -> Address:
    """The job of a form's field; raises Usage if it can be none."""
    namespace, slash, name = key.partition("/")
    if not (slash and name):
        raise Usage(f"{key!r} is no job: NAMESPACE/NAME is a TFJob, /NAME a run on this machine")
    return Address(namespace, name)
