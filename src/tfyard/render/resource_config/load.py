"""Reads the resources of a config, each by its type; collects every problem."""

from collections.abc import Mapping

from msgspec import Struct

from tfyard.formats import limits, metadata
from tfyard.formats.declarations.reading import Notes, Path, did_you_mean, read
from tfyard.model import Manifest
from tfyard.model.names import MAX_LABEL

from .fields import (
    ClusterProperties,
    DiskProperties,
    JobFields,
    JupyterProperties,
    NfsServerProperties,
    ResourceConfig,
)

Properties = ClusterProperties | JupyterProperties | DiskProperties | NfsServerProperties
BUILT_IN: dict[str, type[Properties]] = {
    "tensorflow-cluster": ClusterProperties,
    "jupyter-service": JupyterProperties,
    "pd": DiskProperties,
    "gce-pvc": DiskProperties,
    "nfs-pvc": DiskProperties,
    "nfs-server": NfsServerProperties,
}
_FILES = {"local-pd": "pd", "gce-pd": "pd"}


class TemplateResource(Struct, frozen=True):
    """A resource by a template of the user."""

    path: str
    properties: Manifest


Loaded = Properties | TemplateResource


def load(data: object, present: Mapping[str, bool], notes: Notes) -> list[Loaded]:
    """The resources in order. `present`: which of the imported files exist; built-in types need none."""
    config = read(ResourceConfig, data, (), notes)
    if config is None:
        return []
    paths = {one.name: one.path for one in config.imports}
    _check_imports(config, present, notes)
    loaded: list[Loaded] = []
    for i, resource in enumerate(config.resources):
        path: Path = ("resources", i)
        file = paths.get(resource.type)
        if file is not None and present.get(file):
            loaded.append(TemplateResource(file, resource.properties))
        elif (name := _built_in(resource.type, file)) is not None:
            found = read(BUILT_IN[name], resource.properties, (*path, "properties"), notes)
            if found is not None:
                _check(found, (*path, "properties"), notes)
                loaded.append(found)
        elif file is None:
            known = [*BUILT_IN, *paths]
            notes.error(
                (*path, "type"), "is not a known type", did_you_mean(resource.type, known), resource.type
            )
    return loaded


def own_templates(data: object) -> dict[str, bool]:
    """For `load` where templates cannot be filled: those of types that are not built in count as present."""
    imports = data.get("imports") if isinstance(data, dict) else None
    found = [one for one in imports or () if isinstance(one, dict)] if isinstance(imports, list) else []
    return {
        str(one.get("path")): _built_in(str(one.get("name")), str(one.get("path"))) is None for one in found
    }


def _built_in(name: str, file: str | None) -> str | None:
    """By the name of the imported file (tensorflow-cluster.jinja), else by the type's own name."""
    stem = (file or "").rpartition("/")[2].partition(".")[0]
    for known in (_FILES.get(stem, stem), name):
        if known in BUILT_IN:
            return known
    return None


def _check_imports(config: ResourceConfig, present: Mapping[str, bool], notes: Notes) -> None:
    for i, one in enumerate(config.imports):
        if not present.get(one.path) and _built_in(one.name, one.path) is None:
            fix = "paths are relative to the config's folder"
            notes.error(("imports", i, "path"), "template not found", fix, one.path)


def _check(found: Properties, path: Path, notes: Notes) -> None:
    if isinstance(found, ClusterProperties):
        _check_cluster(found, path, notes)
    if isinstance(found, JupyterProperties) and not found.password:
        fix = "everyone who knows it can use Jupyter: choose a good one"
        _require((*path, "password"), "must be given", fix, notes)


def _require(path: Path, message: str, fix: str, notes: Notes) -> None:
    """Of what was given and could not be read, the problem is known already."""
    if not any(problem.path[: len(path)] == path for problem in notes.problems):
        notes.error(path, message, fix)


def _check_cluster(found: ClusterProperties, path: Path, notes: Notes) -> None:
    jobs = jobs_of(found)
    if not jobs:
        _require((*path, "jobs"), "must be given", "jobs: [{name: ps, num_tasks: 2}]", notes)
    names = [job.name for job in jobs]
    _check_size(found, jobs, path, notes)
    for i, job in enumerate(jobs):
        where: Path = (*path, "jobs", i, "name") if isinstance(found.jobs, list) else (*path, "jobs")
        metadata.check_name(job.name, where, notes)
        if names.index(job.name) != i:
            notes.error(
                where, f"the job {job.name} is given twice", "give one of them another name", job.name
            )
        longest = f"{job.name}-{job.num_tasks - 1}"
        if len(longest) > MAX_LABEL:
            text = f"is too long: {longest!r} has {len(longest)} characters, and {MAX_LABEL} are allowed"
            notes.error(where, text, "shorten it", job.name)
    jupyter = found.jupyter_config
    if jupyter is not None and not jupyter.password and not jupyter.secret_name:
        text = "must have a password or a secret-name"
        _require((*path, "jupyter-config"), text, "password: a good one, or secret-name: jupyter", notes)


def _check_size(found: ClusterProperties, jobs: list[JobFields], path: Path, notes: Notes) -> None:
    """CLUSTER_CONFIG lists every task, in one environment string."""
    end = len(f"-0000.{found.namespace}.svc.cluster.local:65535,")
    total = sum(job.num_tasks * (len(job.name) + end + 2) for job in jobs)
    if total > limits.MAX_ENV_STRING:
        text = f"CLUSTER_CONFIG would have about {total:,} bytes, and Linux allows {limits.MAX_ENV_STRING:,}"
        fits = limits.MAX_ENV_STRING * sum(job.num_tasks for job in jobs) // total
        notes.error((*path, "jobs"), text, f"about {fits:,} tasks fit with these names")


def jobs_of(found: ClusterProperties) -> list[JobFields]:
    if isinstance(found.jobs, list):
        return found.jobs
    counts: Mapping[str, int | None] = found.jobs or {
        "ps": found.ps,
        "worker": found.worker,
        "master": found.master,
    }
    return [JobFields(name, count, found.port) for name, count in counts.items() if count]
