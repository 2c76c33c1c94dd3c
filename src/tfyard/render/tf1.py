"""`tf1: true`: for programs of TensorFlow 1, tfyard's package `tensorflow` imports as tensorflow.compat.v1.

In a cluster, pods mount this package from a ConfigMap; on this machine, it is used from its folder.
"""

from msgspec.structs import replace

from tfyard.model import Job, Manifest
from tfyard.model.expansion import escape

from . import podspec, scripts
from .objects import RenderedObject

FOLDER = scripts.FOLDER / "tf1"
"""Folder with which PYTHONPATH must begin on this machine."""
VARIABLE = "PYTHONPATH"
VOLUME = "tfyard-tf1"
_AT = "/tfyard-tf1"
_FILES = {"tensorflow.py": "tensorflow/__init__.py", "before_1.py": "tensorflow/before_1.py"}
"""Key in the ConfigMap -> path of the file."""
_OTHERS = "TFYARD_PYTHONPATH"
"""Variable that keeps the job's own value of PYTHONPATH."""


def add(job: Job) -> tuple[Job, list[RenderedObject]]:
    """The job whose pods mount the package, and the ConfigMap that contains it."""
    if not job.tf1:
        return job, []
    metadata = {"name": f"{job.name}-tf1", "namespace": job.namespace}
    data = {key: scripts.read(f"tf1/{path}") for key, path in _FILES.items()}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    items = [{"key": key, "path": path} for key, path in _FILES.items()]
    source = {"name": metadata["name"], "items": items}
    volume, mount = {"name": VOLUME, "configMap": source}, {"name": VOLUME, "mountPath": _AT}
    roles = tuple(
        replace(role, template=with_folder(podspec.add_volume(role.template, volume, mount), _AT))
        for role in job.roles
    )
    comment = "`tf1`: what `import tensorflow` finds first in the pods."
    return replace(job, roles=roles, tf1=False), [RenderedObject(manifest, comment)]


def with_folder(template: Manifest, folder: str, others: str = "", keep: str = _OTHERS) -> Manifest:
    """The template with a PYTHONPATH that begins with this folder. If the template sets PYTHONPATH, the variable
    `keep` gets its value, and the folder comes before it; else `others` follow the folder."""
    alone = {"name": VARIABLE, "value": escape(":".join(filter(None, (folder, others))))}
    joined = {"name": VARIABLE, "value": f"{escape(folder)}:$({keep})"}

    def change(container: Manifest) -> Manifest:
        entries = container.get("env") or []
        if all(entry["name"] != VARIABLE for entry in entries):
            return podspec.append(container, "env", [alone])
        pairs = [[{**e, "name": keep}, joined] if e["name"] == VARIABLE else [e] for e in entries]
        return {**container, "env": [entry for pair in pairs for entry in pair]}

    return podspec.change_container(template, change)
