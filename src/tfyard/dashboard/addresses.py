"""Addresses of jobs in the page: `job/NAMESPACE/NAME/` for a TFJob, `run/NAME/` for a run on this machine."""

from urllib.parse import quote

from msgspec import Struct

from tfyard.model.summary import JobSummary


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


def of(job: JobSummary) -> Address:
    return Address(job.namespace, job.name)


def read(key: str) -> Address:
    namespace, _, name = key.partition("/")
    return Address(namespace, name)
