"""The fields of a config with resources: imports, and a list of resources with their properties.

All published forms are accepted: jobs as a list, as a map, or as separate numbers; the image under each of its
names.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

MAX_TASKS = 10_000
Tasks = Annotated[int, Meta(ge=1, le=MAX_TASKS)]
Port = Annotated[int, Meta(ge=1, le=65_535)]
DEFAULT_PORT = 8080


class Import(Struct, frozen=True):
    """A template, and the type by which resources refer to it."""

    name: Annotated[str, Meta(description="The type that resources use.")]
    path: Annotated[str, Meta(description="The template's file, relative to this config.")]


class ConfigResource(Struct, frozen=True):
    """One part of the cluster."""

    type: Annotated[str, Meta(description="tensorflow-cluster, jupyter-service, or the name of an import.")]
    properties: Annotated[dict[str, Any], Meta(description="The settings of the type.")] = {}


class ResourceConfig(Struct, frozen=True):
    """A config with resources."""

    resources: Annotated[list[ConfigResource], Meta(description="The parts of the cluster.")]
    imports: Annotated[list[Import], Meta(description="Templates of your own.")] = []


class JobFields(Struct, frozen=True):
    """A group of identical tasks."""

    name: Annotated[str, Meta(description="Name of the job, such as ps or workers.")]
    num_tasks: Annotated[Tasks, Meta(description="Number of its tasks.")]
    port: Annotated[Port, Meta(description="Port of each task; default 8080.")] = DEFAULT_PORT


class FilesystemFields(Struct, frozen=True, rename="kebab"):
    """A directory that all tasks share."""

    pvc: Annotated[str, Meta(description="Name of the PersistentVolumeClaim.")]
    mount_path: Annotated[str, Meta(description="Mount path in the containers.")] = "/var/tensorflow"


class JupyterFields(Struct, frozen=True, rename="kebab"):
    """The notebook server of a cluster."""

    password: Annotated[str | None, Meta(description="The password; only its hash is written.")] = None
    secret_name: Annotated[
        str | None, Meta(description="An existing Secret with the password under the key `password`.")
    ] = None
    server_image: Annotated[str, Meta(description="Image of the notebook server.")] = ""


class ClusterProperties(Struct, frozen=True, rename="kebab"):
    """tensorflow-cluster: TensorFlow servers for a notebook."""

    jobs: Annotated[
        list[JobFields] | dict[str, Tasks] | None,
        Meta(description="The jobs: a list of {name, num_tasks, port}, or a map from names to numbers."),
    ] = None
    ps: Annotated[Tasks | None, Meta(description="Tasks of the job ps.")] = None
    worker: Annotated[Tasks | None, Meta(description="Tasks of the job worker.")] = None
    master: Annotated[Tasks | None, Meta(description="Tasks of the job master.")] = None
    namespace: Annotated[str, Meta(description="Kubernetes namespace.")] = "default"
    image: Annotated[str, Meta(description="Image of the tasks.")] = ""
    tensorflow_image: Annotated[str, Meta(description="Image of the tasks, under a later name.")] = ""
    worker_image: Annotated[str, Meta(description="Image of the tasks, under another name.")] = ""
    port: Annotated[Port, Meta(description="Port of each task; default 8080.")] = DEFAULT_PORT
    filesystem: Annotated[FilesystemFields | None, Meta(description="A directory for all tasks.")] = None
    summary_pvc: Annotated[str | None, Meta(description="Claim for TensorBoard's summaries.")] = None
    notebooks_pvc: Annotated[str | None, Meta(description="Claim for notebooks.")] = None
    checkpoints_pvc: Annotated[str | None, Meta(description="Claim for checkpoints.")] = None
    use_gce_pd: Annotated[bool | None, Meta(description="Ignored; name claims instead.")] = None
    jupyter_config: Annotated[JupyterFields | None, Meta(description="Jupyter for the cluster.")] = None


class JupyterProperties(Struct, frozen=True):
    """jupyter-service: a notebook server."""

    namespace: Annotated[str, Meta(description="Kubernetes namespace.")] = "default"
    password: Annotated[str | None, Meta(description="The password; only its hash is written.")] = None
    image: Annotated[str, Meta(description="Image of the notebook server.")] = ""
    cluster_config: Annotated[
        str | None, Meta(description="ConfigMap whose `clusterconfig` lists the cluster's tasks.")
    ] = None


class DiskProperties(Struct, frozen=True, rename="kebab"):
    """pd, gce-pvc, nfs-pvc: a claim, and the volume behind it."""

    name: Annotated[str, Meta(description="Name of the claim.")]
    capacity: Annotated[str, Meta(description="Size of the claim, such as 10Gi.")] = "10Gi"
    namespace: Annotated[str, Meta(description="Kubernetes namespace.")] = "default"
    ip: Annotated[str | None, Meta(description="Address of the NFS server.")] = None
    path: Annotated[str, Meta(description="The export of the NFS server.")] = "/"
    pd_name: Annotated[str | None, Meta(description="Ignored; the cluster's storage class decides.")] = None


class NfsServerProperties(Struct, frozen=True, rename="kebab"):
    """nfs-server: a disk of the cluster, shared with all its pods."""

    name: Annotated[str, Meta(description="Name of the server, and of its Service.")]
    backend_pvc: Annotated[str, Meta(description="The claim whose disk is shared.")]
    nfs_image: Annotated[str, Meta(description="Image of the NFS server.")] = ""
    namespace: Annotated[str, Meta(description="Kubernetes namespace.")] = "default"
