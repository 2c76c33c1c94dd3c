"""Document -> Job: apiVersion and kind select the format; after reading, the job is checked as a whole."""

from typing import Protocol

from msgspec import Struct

from tfyard.errors import Invalid
from tfyard.model import Job, Manifest, Problem
from tfyard.model.spelling import did_you_mean

from . import limits
from .declarations.reading import Notes
from .tfjob.versions import V1, VERSIONS
from .yaml.source import Document, locate

KINDS = ("TFJob", "TfJob")
FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")


class Checked(Struct, frozen=True, kw_only=True):
    job: Job | None
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")


def load(document: Document | Manifest) -> Job:
    """The Job; raises `Invalid` with every problem if there are errors."""
    checked = check(document)
    if checked.errors or checked.job is None:
        raise Invalid(checked.problems)
    return checked.job


def check(document: Document | Manifest) -> Checked:
    """The Job, as far as the document is valid, and all problems, including warnings."""
    data = document.data if isinstance(document, Document) else document
    notes = Notes()
    job = _load(data, document if isinstance(document, Document) else None, notes)
    problems = tuple(notes.problems)
    if isinstance(document, Document):
        problems = locate(problems, document)
    return Checked(job=job, problems=problems)


def is_job(data: object) -> bool:
    """Whether this is a TFJob of any version, or a job file, which has neither apiVersion nor kind.

    A kind such as `tfjob` in the wrong letter case counts, too, and so does a version of TFJob without a kind:
    skipping them would hide the mistake from the user.
    """
    if not isinstance(data, dict) or is_config(data) or is_sweep(data):
        return False
    kind = data.get("kind")
    return str(kind).lower() == "tfjob" or (kind is None and data.get("apiVersion") in (None, *VERSIONS))


def is_job_file(data: object) -> bool:
    return is_job(data) and isinstance(data, dict) and not {"apiVersion", "kind"} & data.keys()


def is_config(data: object) -> bool:
    """Whether this is a config with `resources`, which render/resource_config reads."""
    return isinstance(data, dict) and "resources" in data and not {"apiVersion", "kind", "name"} & data.keys()


def is_sweep(data: object) -> bool:
    """Whether this is a sweep file, which formats/sweepfile reads: no job has the words `over` and `objective`."""
    if not isinstance(data, dict) or {"apiVersion", "kind"} & data.keys():
        return False
    return bool({"over", "objective"} & data.keys())


def split(document: Document) -> list[Document]:
    """The items of a `List`, as `kubectl get -o yaml` prints it, each with its position; else the document."""
    data = document.data
    if (
        isinstance(data, dict)
        and str(data.get("kind", "")).endswith("List")
        and isinstance(data.get("items"), list)
    ):
        return [document.part(("items", i)) for i in range(len(data["items"]))]
    return [document]


def _load(data: object, document: Document | None, notes: Notes) -> Job | None:
    if not isinstance(data, dict):
        notes.error((), "must be a mapping", "write a TFJob or a tfyard job file", data)
        return None
    if data.get("kind") is None and data.get("apiVersion") is None:
        return _load_jobfile(data, document, notes)
    return _load_tfjob(data, notes)


def _load_jobfile(data: Manifest, document: Document | None, notes: Notes) -> Job | None:
    from .jobfile import load as jobfile  # 31 ms, which commands about jobs of a cluster do not need

    job = jobfile.load(data, document.text if document else lambda _path: None, notes)
    if job is not None:
        limits.check(job, jobfile.where(job), notes)
    return job


def _load_tfjob(data: Manifest, notes: Notes) -> Job | None:
    version, kind = str(data.get("apiVersion")), data.get("kind")
    if kind not in KINDS:
        notes.error(("kind",), "must be TFJob", did_you_mean(str(kind), KINDS[:1]), kind)
        return None
    if version not in VERSIONS:
        notes.error(("apiVersion",), "must be a version of TFJob", did_you_mean(version, VERSIONS), version)
        return None
    for key in data:
        if key not in FIELDS:
            notes.unknown((key,), f"unknown field {key!r}", FIELDS)
    reader = _reader(version, data)
    job = reader.load(data, notes)
    if job is not None:
        limits.check(job, reader.where(data["spec"]), notes)
    return job


class _Reader(Protocol):
    def load(self, document: Manifest, notes: Notes) -> Job | None: ...

    def where(self, spec: Manifest) -> limits.FieldPaths: ...


def _reader(version: str, data: Manifest) -> _Reader:
    """The reader of this version. Only this one is imported, because each import takes 5 to 15 ms."""
    if _has_list(version, data):
        from .tfjob import v1alpha1  # only the one that is needed: 5 to 15 ms each

        return v1alpha1
    from .tfjob import conversion  # only the one that is needed: 5 to 15 ms each

    return conversion


def _has_list(version: str, data: Manifest) -> bool:
    """Whether this is a v1alpha1 job. A cluster may return it as v1, because it changes nothing but apiVersion."""
    spec = data.get("spec")
    is_list = isinstance(spec, dict) and "replicaSpecs" in spec and "tfReplicaSpecs" not in spec
    return version.endswith("/v1alpha1") or (version == V1 and is_list)
