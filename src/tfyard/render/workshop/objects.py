"""The cluster's objects: a Service per task, so that each has its own address, and a StatefulSet per job."""

import json

from tfyard.model import Manifest
from tfyard.render import notebook, podspec, prerequisites, scripts
from tfyard.render.manifests import Piece

from .config import Part, Template, jobs_of
from .words import ClusterProperties, DiskProperties, JobWords, JupyterProperties, NfsServerProperties

CONFIG = "tensorflow-cluster-config"
KEY = "clusterconfig"
DEFAULT_IMAGE = "tensorflow/tensorflow:2.21.0"
GONE = ("gcr.io/oscon-tf-workshop/", "gcr.io/tensorflow/")
"""Registries that were closed; what they offered is in today's default image."""
NFS_IMAGE = "registry.k8s.io/volume-nfs:0.8"
NFS_PORTS = {"nfs": 2049, "mountd": 20048, "rpcbind": 111}
DOMAIN = "cluster.local"
_SCRIPT_AT = "/tfyard"
_CLAIMS = {
    "summary_pvc": "/var/log/tensorflow",
    "notebooks_pvc": "/notebooks",
    "checkpoints_pvc": "/checkpoints",
}


def render(parts: list[Part]) -> list[Piece | Template]:
    """Every part in the order of the config; templates of the user's own stay for the caller to fill."""
    clusters = [part for part in parts if isinstance(part, ClusterProperties)]
    made: list[Piece | Template] = []
    for part in parts:
        if isinstance(part, Template):
            made.append(part)
        elif isinstance(part, ClusterProperties):
            made += _cluster(part)
        elif isinstance(part, JupyterProperties):
            near = next((c for c in clusters if c.namespace == part.namespace), None)
            made += _jupyter(part, near)
        elif isinstance(part, NfsServerProperties):
            made += _nfs_server(part)
        else:
            made += _disk(part)
    return made


def replaced(parts: list[Part]) -> list[str]:
    """Images of the config that can no longer be pulled, and what runs instead."""
    found = [_given_image(part) for part in parts if isinstance(part, ClusterProperties)]
    found += [part.image for part in parts if isinstance(part, JupyterProperties)]
    return [
        f"the image {image} is gone; {DEFAULT_IMAGE} or its Jupyter runs instead"
        for image in found
        if image.startswith(GONE)
    ]


def _given_image(part: ClusterProperties) -> str:
    return part.image or part.tensorflow_image or part.worker_image


def _image(given: str, default: str) -> str:
    return default if not given or given.startswith(GONE) else given


def hosts(part: ClusterProperties) -> dict[str, list[str]]:
    end = f"{part.namespace}.svc.{DOMAIN}"
    return {
        job.name: [f"{job.name}-{i}.{end}:{job.port}" for i in range(job.num_tasks)] for job in jobs_of(part)
    }


def _cluster(part: ClusterProperties) -> list[Piece]:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG, "namespace": part.namespace},
        "data": {KEY: json.dumps(hosts(part), separators=(",", ":")), "server.py": scripts.read("server.py")},
    }
    pieces = [Piece(config, "The addresses of all tasks, and the server that each of them runs.")]
    for job in jobs_of(part):
        pieces += [_service(part.namespace, job, i) for i in range(job.num_tasks)]
        pieces.append(_stateful_set(part, job))
    if part.jupyter_config is not None:
        words = part.jupyter_config
        jupyter = JupyterProperties(
            namespace=part.namespace, password=words.password, image=words.server_image, cluster_config=CONFIG
        )
        pieces += _jupyter(jupyter, part, words.secret_name or "")
    return pieces


def _service(namespace: str, job: JobWords, index: int) -> Piece:
    name = f"{job.name}-{index}"
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "ports": [{"name": "grpc-server", "port": job.port}],
            "selector": {"statefulset.kubernetes.io/pod-name": name},
        },
    }
    return Piece(manifest, f"The address of task {index} of {job.name}.")


def _stateful_set(part: ClusterProperties, job: JobWords) -> Piece:
    """Its pods are called as tasks are: job, dash, number. Clusters before 1.33 insist on a Service's name,
    and any will do: nobody uses the names that pods get from it."""
    labels = {"tensorflow": "cluster", "job": job.name}
    spec: Manifest = {
        "replicas": job.num_tasks,
        "podManagementPolicy": "Parallel",
        "serviceName": f"{job.name}-0",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod(part, job)},
    }
    metadata = {"name": job.name, "namespace": part.namespace, "labels": labels}
    manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    return Piece(manifest, f"The job {job.name}: {job.num_tasks} servers, each started again when it ends.")


def _pod(part: ClusterProperties, job: JobWords) -> Manifest:
    volumes, mounts = volumes_of(part)
    scripts_mount = {"name": "tfyard", "mountPath": _SCRIPT_AT, "readOnly": True}
    container = {
        "name": "tf-grpc-server",
        "image": _image(_given_image(part), DEFAULT_IMAGE),
        "command": ["python3", f"{_SCRIPT_AT}/server.py"],
        "ports": [{"name": "grpc-server", "containerPort": job.port}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            podspec.from_config_map("CLUSTER_CONFIG", CONFIG, KEY),
        ],
        "volumeMounts": [*mounts, scripts_mount],
    }
    config = {"name": CONFIG, "items": [{"key": "server.py", "path": "server.py"}]}
    return {"containers": [container], "volumes": [*volumes, {"name": "tfyard", "configMap": config}]}


def volumes_of(part: ClusterProperties) -> tuple[list[Manifest], list[Manifest]]:
    claims = {name: (claim, at) for name, at in _CLAIMS.items() if (claim := getattr(part, name))}
    if part.filesystem is not None:
        claims["tensorflow_fs"] = (part.filesystem.pvc, part.filesystem.mount_path)
    volumes: list[Manifest] = []
    mounts: list[Manifest] = []
    for name, (claim, at) in claims.items():
        volume = name.removesuffix("_pvc").replace("_", "-")
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": volume, "mountPath": at})
    return volumes, mounts


def _jupyter(part: JupyterProperties, near: ClusterProperties | None, secret: str = "") -> list[Piece]:
    """The port of TensorBoard was always open; now something listens there."""
    config = part.cluster_config or (CONFIG if near is not None else "")
    env = [podspec.from_config_map("CLUSTER_CONFIG", config, KEY)] if config else []
    volumes, mounts = volumes_of(near) if near is not None else ([], [])
    server = notebook.Server(
        name="jupyter",
        namespace=part.namespace,
        image=_image(part.image, notebook.DEFAULT_IMAGE),
        service_type="LoadBalancer",
        hashed=notebook.hash_password(part.password, part.namespace, "jupyter") if part.password else "",
        password_secret=secret,
        env=tuple(env),
        volumes=tuple(volumes),
        mounts=tuple(mounts),
        summaries="/var/log/tensorflow",
    )
    return notebook.render(server)


def _disk(part: DiskProperties) -> list[Piece]:
    if part.ip is not None:
        nfs = {"server": part.ip, "path": part.path}
        return prerequisites.nfs_claim(part.name, part.namespace, nfs, part.capacity)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": part.name, "namespace": part.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": part.capacity}},
        },
    }
    return [Piece(claim, "A claim; the cluster's default storage class makes the disk.")]


def _nfs_server(part: NfsServerProperties) -> list[Piece]:
    """One pod owns the disk and offers it to many, for clusters whose disks can be mounted once only."""
    labels = {"role": part.name}
    metadata = {"name": part.name, "namespace": part.namespace}
    container = {
        "name": "nfs-server",
        "image": part.nfs_image or NFS_IMAGE,
        "ports": [{"name": name, "containerPort": port} for name, port in NFS_PORTS.items()],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "exports", "mountPath": "/exports"}],
    }
    disk = {"name": "exports", "persistentVolumeClaim": {"claimName": part.backend_pvc}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [disk]}}
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": labels},
        "template": template,
    }
    ports = [{"name": name, "port": port} for name, port in NFS_PORTS.items()]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
    return [
        Piece({**service, "spec": {"selector": labels, "ports": ports}}, "The address of the NFS server."),
        Piece(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
            "The NFS server; Recreate, since two pods must not hold the disk at once.",
        ),
    ]
