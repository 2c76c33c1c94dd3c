"""`tf1: true`: programs for TensorFlow 1 first find a `tensorflow` of ours, which gives them tensorflow.compat.v1.

In a cluster that module is in a ConfigMap, which pods mount; on this machine it is used where it is.
"""

from msgspec.structs import replace

from tfyard.model import Job, Manifest
from tfyard.model.expansion import escape

from . import podspec, scripts
from .objects import RenderedObject

FOLDER = scripts.FOLDER / "tf1"
"""On this machine: what PYTHONPATH must begin with."""
VARIABLE = "PYTHONPATH"
VOLUME = "tfyard-tf1"
_AT = "/tfyard-tf1"
_MODULE = "tensorflow/__init__.py"
_KEY = "tensorflow.py"
_OTHERS = "TFYARD_PYTHONPATH"
"""Keeps what the job itself sets."""


def add(job: Job) -> tuple[Job, list[RenderedObject]]:
    """The job whose pods have the module, and the ConfigMap that holds it."""
    if not job.tf1:
        return job, []
    metadata = {"name": f"{job.name}-tf1", "namespace": job.namespace}
    data = {_KEY: scripts.read(f"tf1/{_MODULE}")}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    source = {"name": metadata["name"], "items": [{"key": _KEY, "path": _MODULE}]}
    volume, mount = {"name": VOLUME, "configMap": source}, {"name": VOLUME, "mountPath": _AT}
    roles = tuple(
        replace(role, template=with_folder(podspec.add_volume(role.template, volume, mount), _AT))
        for role in job.roles
    )
    comment = "`tf1`: what `import tensorflow` finds first in the pods."
    return replace(job, roles=roles, tf1=False), [RenderedObject(manifest, comment)]


def with_folder(template: Manifest, folder: str, others: str = "", keep: str = _OTHERS) -> Manifest:
    """The template or pod whose PYTHONPATH begins with this folder. `others`: what follows if it sets none;
    `keep`: the variable for what it sets."""
    alone = {"name": VARIABLE, "value": escape(":".join(filter(None, (folder, others))))}
    joined = {"name": VARIABLE, "value": f"{escape(folder)}:$({keep})"}

    def change(container: Manifest) -> Manifest:
        entries = container.get("env") or []
        if all(entry["name"] != VARIABLE for entry in entries):
            return podspec.append(container, "env", [alone])
        pairs = [[{**e, "name": keep}, joined] if e["name"] == VARIABLE else [e] for e in entries]
        return {**container, "env": [entry for pair in pairs for entry in pair]}

    return podspec.change_container(template, change)
