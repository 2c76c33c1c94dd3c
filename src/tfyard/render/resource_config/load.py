"""Reads the resources of a config, each by its type, and collects every problem."""

from collections.abc import Mapping

from msgspec import Struct

from tfyard.formats import limits, metadata
from tfyard.formats.declarations.reading import Notes, Path, read
from tfyard.model import Manifest
from tfyard.model.names import MAX_LABEL
from tfyard.model.spelling import did_you_mean

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
    """A resource that a template of the user renders."""

    path: str
    properties: Manifest


Loaded = Properties | TemplateResource


def load(data: object, present: Mapping[str, bool], notes: Notes) -> list[Loaded]:
    """The resources in order. `present` says which imported files exist; built-in types need none."""
    config = read(ResourceConfig, data, (), notes)
    if config is None:
        return []
    paths = {imported.name: imported.path for imported in config.imports}
    _check_imports(config, present, notes)
    loaded: list[Loaded] = []
    for i, resource in enumerate(config.resources):
        path: Path = ("resources", i)
        file = paths.get(resource.type)
        if file is not None and present.get(file):
            loaded.append(TemplateResource(file, resource.properties))
        elif (name := _built_in(resource.type, file)) is not None:
            properties = read(BUILT_IN[name], resource.properties, (*path, "properties"), notes)
            if properties is not None:
                _check(properties, (*path, "properties"), notes)
                loaded.append(properties)
        elif file is None:
            known = [*BUILT_IN, *paths]
            notes.error(
                (*path, "type"), "is not a known type", did_you_mean(resource.type, known), resource.type
            )
    return loaded


def own_templates(data: object) -> dict[str, bool]:
    """`present` for a `load` that fills no templates: those of types that are not built in count as existing."""
    imports = data.get("imports") if isinstance(data, dict) else None
    entries = [entry for entry in imports if isinstance(entry, dict)] if isinstance(imports, list) else []
    return {
        str(entry.get("path")): _built_in(str(entry.get("name")), str(entry.get("path"))) is None
        for entry in entries
    }


def _built_in(name: str, file: str | None) -> str | None:
    """The built-in type with the name of the imported file (tensorflow-cluster.jinja), or else with this name."""
    stem = (file or "").rpartition("/")[2].partition(".")[0]
    for known in (_FILES.get(stem, stem), name):
        if known in BUILT_IN:
            return known
    return None


def _check_imports(config: ResourceConfig, present: Mapping[str, bool], notes: Notes) -> None:
    for i, imported in enumerate(config.imports):
        if not present.get(imported.path) and _built_in(imported.name, imported.path) is None:
            fix = "paths are relative to the config's folder"
            notes.error(("imports", i, "path"), "template not found", fix, imported.path)


def _check(properties: Properties, path: Path, notes: Notes) -> None:
    if isinstance(properties, ClusterProperties):
        _check_cluster(properties, path, notes)
    if isinstance(properties, JupyterProperties) and not properties.password:
        fix = "everyone who knows it can use Jupyter: choose a good one"
        _require((*path, "password"), "must be given", fix, notes)


def _require(path: Path, message: str, fix: str, notes: Notes) -> None:
    """Reports a missing field, unless a problem of its value is already reported."""
    if not any(problem.path[: len(path)] == path for problem in notes.problems):
        notes.error(path, message, fix)


def _check_cluster(cluster: ClusterProperties, path: Path, notes: Notes) -> None:
    jobs = jobs_of(cluster)
    if not jobs:
        _require((*path, "jobs"), "must be given", "jobs: [{name: ps, num_tasks: 2}]", notes)
    names = [job.name for job in jobs]
    _check_size(cluster, jobs, path, notes)
    for i, job in enumerate(jobs):
        where: Path = (*path, "jobs", i, "name") if isinstance(cluster.jobs, list) else (*path, "jobs")
        metadata.check_name(job.name, where, notes)
        if names.index(job.name) != i:
            notes.error(
                where, f"the job {job.name} is given twice", "give one of them another name", job.name
            )
        longest = f"{job.name}-{job.num_tasks - 1}"
        if len(longest) > MAX_LABEL:
            text = f"is too long: {longest!r} has {len(longest)} characters, and {MAX_LABEL} are allowed"
            notes.error(where, text, "shorten it", job.name)
    jupyter = cluster.jupyter_config
    if jupyter is not None and not jupyter.password and not jupyter.secret_name:
        text = "must have a password or a secret-name"
        _require((*path, "jupyter-config"), text, "password: a good one, or secret-name: jupyter", notes)


def _check_size(cluster: ClusterProperties, jobs: list[JobFields], path: Path, notes: Notes) -> None:
    """CLUSTER_CONFIG lists every task in one environment variable, whose length is limited."""
    end = len(f"-0000.{cluster.namespace}.svc.cluster.local:65535,")
    total = sum(job.num_tasks * (len(job.name) + end + 2) for job in jobs)
    if total > limits.MAX_ENV_STRING:
        text = f"CLUSTER_CONFIG would have about {total:,} bytes, and Linux allows {limits.MAX_ENV_STRING:,}"
        fits = limits.MAX_ENV_STRING * sum(job.num_tasks for job in jobs) // total
        notes.error((*path, "jobs"), text, f"about {fits:,} tasks fit with these names")


def jobs_of(cluster: ClusterProperties) -> list[JobFields]:
    if isinstance(cluster.jobs, list):
        return cluster.jobs
    counts: Mapping[str, int | None] = cluster.jobs or {
        "ps": cluster.ps,
        "worker": cluster.worker,
        "master": cluster.master,
    }
    return [JobFields(name, count, cluster.port) for name, count in counts.items() if count]
