"""A config with resources on this machine: its tasks are TensorFlow servers, as on a cluster."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.formats.declarations.reading import Notes
from tfyard.formats.metadata import as_name
from tfyard.formats.yaml.source import locate
from tfyard.local import notebook
from tfyard.local.prepared import Notebook, Prepared
from tfyard.local.settings import Settings
from tfyard.model import Job
from tfyard.node.containers import collect
from tfyard.render.notebook import cluster_config, hash_password
from tfyard.render.resource_config.fields import (
    ClusterProperties,
    JupyterFields,
    JupyterProperties,
    NfsServerProperties,
)
from tfyard.render.resource_config.load import Loaded, TemplateResource, load, own_templates
from tfyard.render.resource_config.objects import config_map, local_hosts, local_job


class ClusterConfig(Struct, frozen=True, kw_only=True):
    job: Job
    cluster: ClusterProperties
    jupyter: JupyterProperties | JupyterFields | None
    ignored: tuple[str, ...]
    """What only a cluster can do with it."""

    def completed(self, prepared: Prepared) -> Prepared:
        """With what depends on the ports: the addresses of all tasks, and the notebook that has them, too."""
        addresses = local_hosts(self.cluster, prepared.site.ports)
        objects = collect([config_map(self.cluster, addresses)])
        prepared = replace(prepared, objects=objects, ignored=(*prepared.ignored, *self.ignored))
        if not prepared.settings.notebook:
            return prepared
        jupyter = Notebook(hashed=self._hashed(), cluster_config=cluster_config(addresses))
        notebook.check(prepared)
        return replace(prepared, notebook=jupyter)

    def _hashed(self) -> str:
        if self.jupyter is None or not self.jupyter.password:
            fix = "- {type: jupyter-service, properties: {password: a good one}}"
            raise Usage(f"--notebook: the config has no password for Jupyter; add {fix}")
        return hash_password(self.jupyter.password, self.cluster.namespace, "jupyter")


def read(document: formats.Document, asked: Settings) -> ClusterConfig:
    if asked.sets or asked.roles:
        raise Usage("a config says itself how many tasks its jobs have: num_tasks")
    notes = Notes()
    resources = load(document.data, own_templates(document.data), notes)
    if notes.problems:
        raise Invalid(locate(notes.problems, document), document, document.name)
    clusters = [one for one in resources if isinstance(one, ClusterProperties)]
    if len(clusters) != 1:
        raise Usage(
            f"{document.name} has {len(clusters)} resources of type tensorflow-cluster; give a file with one"
        )
    (cluster,) = clusters
    stem = "cluster" if asked.target == "-" else Path(asked.target).stem
    jupyters = [one for one in resources if isinstance(one, JupyterProperties)]
    return ClusterConfig(
        job=local_job(cluster, asked.name or as_name(stem, "cluster")),
        cluster=cluster,
        jupyter=next(iter(jupyters), cluster.jupyter_config),
        ignored=tuple(_ignored(resources)),
    )


def _ignored(resources: Sequence[Loaded]) -> list[str]:
    templates = [f"the template {one.path}" for one in resources if isinstance(one, TemplateResource)]
    servers = [f"the nfs-server {one.name}" for one in resources if isinstance(one, NfsServerProperties)]
    return [*templates, *servers]
