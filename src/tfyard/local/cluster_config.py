"""A config with resources on this machine: its tasks are TensorFlow servers, as on a cluster, with Jupyter
beside them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.formats.declarations.reading import Notes
from tfyard.formats.metadata import as_name
from tfyard.formats.yaml.source import locate
from tfyard.local.machine import base_env
from tfyard.local.prepared import PreparedRun, RunNotebook
from tfyard.local.settings import RunOptions
from tfyard.model import Job
from tfyard.node import SCRATCH
from tfyard.node.pod_data import collect
from tfyard.node.processes import ContainerCommand
from tfyard.render.notebook import CLUSTER_CONFIG, CONFIG_FILE, cluster_config, config_text, hash_password
from tfyard.render.resource_config.fields import (
    ClusterProperties,
    JupyterFields,
    JupyterProperties,
    NfsServerProperties,
)
from tfyard.render.resource_config.load import Loaded, TemplateResource, load, own_templates
from tfyard.render.resource_config.objects import config_map, local_hosts, local_job

_SERVERS = ("jupyterlab", "notebook", "jupyter_server")
"""Modules that start Jupyter, in order of preference."""
_KERNEL = "ipykernel"
_INSTALLED = "import sys; from importlib.util import find_spec; print(*filter(find_spec, sys.argv[1:]))"


class ClusterConfig(Struct, frozen=True, kw_only=True):
    job: Job
    cluster: ClusterProperties
    jupyter: JupyterProperties | JupyterFields | None
    ignored: tuple[str, ...]
    """Resources that only a cluster supports."""

    def completed(self, prepared: PreparedRun) -> PreparedRun:
        """Adds what depends on the ports: the addresses of all tasks, and the notebook, which gets them too."""
        addresses = local_hosts(self.cluster, prepared.site.ports)
        objects = collect([config_map(self.cluster, addresses)])
        prepared = replace(prepared, objects=objects, ignored=(*prepared.ignored, *self.ignored))
        if not prepared.settings.notebook:
            return prepared
        jupyter = RunNotebook(hashed=self._hashed(), cluster_config=cluster_config(addresses))
        _installed(prepared)
        return replace(prepared, notebook=jupyter)

    def _hashed(self) -> str:
        if self.jupyter is None or not self.jupyter.password:
            fix = "- {type: jupyter-service, properties: {password: a good one}}"
            raise Usage(f"--notebook: the config has no password for Jupyter; add {fix}")
        return hash_password(self.jupyter.password, self.cluster.namespace, "jupyter")


def read(document: formats.Document, asked: RunOptions) -> ClusterConfig:
    if asked.sets or asked.roles:
        raise Usage("a config says itself how many tasks its jobs have: num_tasks")
    notes = Notes()
    resources = load(document.data, own_templates(document.data), notes)
    if notes.problems:
        raise Invalid(locate(notes.problems, document), document, document.name)
    clusters = [resource for resource in resources if isinstance(resource, ClusterProperties)]
    if len(clusters) != 1:
        raise Usage(
            f"{document.name} has {len(clusters)} resources of type tensorflow-cluster; give a file with one"
        )
    (cluster,) = clusters
    stem = "cluster" if asked.target == "-" else Path(asked.target).stem
    jupyters = [resource for resource in resources if isinstance(resource, JupyterProperties)]
    return ClusterConfig(
        job=local_job(cluster, asked.name or as_name(stem, "cluster")),
        cluster=cluster,
        jupyter=next(iter(jupyters), cluster.jupyter_config),
        ignored=tuple(_ignored(resources)),
    )


def _ignored(resources: Sequence[Loaded]) -> list[str]:
    templates = [f"the template {each.path}" for each in resources if isinstance(each, TemplateResource)]
    servers = [f"the nfs-server {each.name}" for each in resources if isinstance(each, NfsServerProperties)]
    return [*templates, *servers]


def missing_kernel(prepared: PreparedRun) -> str:
    """Why notebooks cannot run, and the fix; empty: they can."""
    python, modules = _installed(prepared)
    if _KERNEL in modules:
        return ""
    return f"Jupyter has no Python kernel for notebooks: {python} -m pip install {_KERNEL}"


def jupyter(prepared: PreparedRun, port: int, directory: Path) -> ContainerCommand:
    """Jupyter with the addresses of all tasks and the password of the config. The hash of the password is in the
    scratch space of `directory`, that of the run, and is removed with the run."""
    assert prepared.notebook is not None
    python, modules = _installed(prepared)
    folder = directory / SCRATCH / "jupyter"
    for path in (folder.parent, folder):  # with `parents`, only the last folder would get the mode
        path.mkdir(mode=0o700, exist_ok=True)
    (folder / CONFIG_FILE).write_text(config_text(prepared.notebook.hashed))
    env = {
        **base_env(prepared.python, directory),
        "JUPYTER_CONFIG_PATH": str(folder),
        CLUSTER_CONFIG: prepared.notebook.cluster_config,
    }
    address = ["--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--no-browser"]
    as_root = ["--allow-root"] if os.geteuid() == 0 else []
    argv = [python, "-m", modules[0], *address, *as_root, f"--ServerApp.root_dir={Path.cwd()}"]
    return ContainerCommand(argv=argv, env=env, cwd=str(Path.cwd()))


def _installed(prepared: PreparedRun) -> tuple[str, list[str]]:
    """Interpreter that has Jupyter (the tasks', else tfyard's), and which of the modules it has."""
    for path in (prepared.python.path, sys.executable):
        line = [path, "-c", _INSTALLED, *_SERVERS, _KERNEL]
        modules = subprocess.run(line, capture_output=True, text=True, check=False).stdout.split()
        if set(modules) & set(_SERVERS):
            return path, modules
    raise Usage(f"--notebook: Jupyter is not installed; {prepared.python.path} -m pip install notebook")
