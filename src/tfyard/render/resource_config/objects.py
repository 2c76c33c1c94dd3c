"""The objects of each resource. A cluster has a Service per task, for its address, and a StatefulSet per job. On
this machine, a cluster runs as a Job."""

from collections.abc import Mapping

from tfyard.formats.tfjob.fields import canonical
from tfyard.model import TENSORFLOW_CONTAINER, Job, Manifest, Role, Task
from tfyard.model.names import DEFAULT_IMAGE
from tfyard.render import notebook, podspec, prerequisites, scripts
from tfyard.render.objects import RenderedObject

from .fields import ClusterProperties, DiskProperties, JobFields, JupyterProperties, NfsServerProperties
from .load import Loaded, TemplateResource, jobs_of

CONFIG = "tensorflow-cluster-config"
KEY = "clusterconfig"
CLOSED_REGISTRIES = ("gcr.io/oscon-tf-workshop/", "gcr.io/tensorflow/")
"""Registries whose images can no longer be pulled; today's default image replaces them."""
NFS_IMAGE = "registry.k8s.io/volume-nfs:0.8"
NFS_PORTS = {"nfs": 2049, "mountd": 20048, "rpcbind": 111}
DOMAIN = "cluster.local"
_SCRIPT_AT = "/tfyard"
_CLAIMS = {
    "summary_pvc": "/var/log/tensorflow",
    "notebooks_pvc": "/notebooks",
    "checkpoints_pvc": "/checkpoints",
}


def render(resources: list[Loaded]) -> list[RenderedObject | TemplateResource]:
    """The objects of every resource in the order of the config; the caller fills the user's templates."""
    clusters = [part for part in resources if isinstance(part, ClusterProperties)]
    rendered: list[RenderedObject | TemplateResource] = []
    for part in resources:
        if isinstance(part, TemplateResource):
            rendered.append(part)
        elif isinstance(part, ClusterProperties):
            rendered += _cluster(part)
        elif isinstance(part, JupyterProperties):
            near = next((c for c in clusters if c.namespace == part.namespace), None)
            rendered += _jupyter(part, near)
        elif isinstance(part, NfsServerProperties):
            rendered += _nfs_server(part)
        else:
            rendered += _disk(part)
    return rendered


def replaced_images(resources: list[Loaded]) -> list[str]:
    """A message for each image of the config that can no longer be pulled, with its replacement."""
    images = [_image_of(part) for part in resources if isinstance(part, ClusterProperties)]
    images += [part.image for part in resources if isinstance(part, JupyterProperties)]
    return [
        f"the image {image} is no longer available; {DEFAULT_IMAGE} or its Jupyter variant is used instead"
        for image in images
        if image.startswith(CLOSED_REGISTRIES)
    ]


def jupyter_namespaces(resources: list[Loaded]) -> list[str]:
    """Namespace of each notebook server."""
    return [
        part.namespace
        for part in resources
        if isinstance(part, JupyterProperties)
        or (isinstance(part, ClusterProperties) and part.jupyter_config)
    ]


def _image_of(part: ClusterProperties) -> str:
    return part.image or part.tensorflow_image or part.worker_image


def _image(image: str, default: str) -> str:
    return default if not image or image.startswith(CLOSED_REGISTRIES) else image


def hosts(part: ClusterProperties) -> notebook.Hosts:
    end = f"{part.namespace}.svc.{DOMAIN}"
    return {
        job.name: [f"{job.name}-{i}.{end}:{job.port}" for i in range(job.num_tasks)] for job in jobs_of(part)
    }


def config_map(part: ClusterProperties, hosts: notebook.Hosts) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG, "namespace": part.namespace},
        "data": {KEY: notebook.cluster_config(hosts), "server.py": scripts.read("server.py")},
    }


def _cluster(part: ClusterProperties) -> list[RenderedObject]:
    config = config_map(part, hosts(part))
    objects = [RenderedObject(config, "The addresses of all tasks, and the server that each of them runs.")]
    for job in jobs_of(part):
        objects += [_service(part.namespace, job, i) for i in range(job.num_tasks)]
        objects.append(_stateful_set(part, job))
    if part.jupyter_config is not None:
        fields = part.jupyter_config
        jupyter = JupyterProperties(
            namespace=part.namespace,
            password=fields.password,
            image=fields.server_image,
            cluster_config=CONFIG,
        )
        objects += _jupyter(jupyter, part, fields.secret_name or "")
    return objects


def _service(namespace: str, job: JobFields, index: int) -> RenderedObject:
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
    return RenderedObject(manifest, f"The address of task {index} of {job.name}.")


def _stateful_set(part: ClusterProperties, job: JobFields) -> RenderedObject:
    """The pods have the names of the tasks: job, dash, number. Clusters before 1.33 require a `serviceName`; any
    will do, because the DNS names that pods get from it are not used."""
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
    return RenderedObject(
        manifest, f"The job {job.name}: {job.num_tasks} servers, each restarted when it ends."
    )


def _pod(part: ClusterProperties, job: JobFields) -> Manifest:
    volumes, mounts = volumes_of(part)
    scripts_mount = {"name": "tfyard", "mountPath": _SCRIPT_AT, "readOnly": True}
    container = {
        "name": "tf-grpc-server",
        "image": _image(_image_of(part), DEFAULT_IMAGE),
        "command": ["python3", f"{_SCRIPT_AT}/server.py"],
        "ports": [{"name": "grpc-server", "containerPort": job.port}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            podspec.from_config_map(notebook.CLUSTER_CONFIG, CONFIG, KEY),
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


def _jupyter(
    part: JupyterProperties, near: ClusterProperties | None, secret: str = ""
) -> list[RenderedObject]:
    """The original opened a port for TensorBoard, but ran none; here TensorBoard runs."""
    config = part.cluster_config or (CONFIG if near is not None else "")
    env = [podspec.from_config_map(notebook.CLUSTER_CONFIG, config, KEY)] if config else []
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


def _disk(part: DiskProperties) -> list[RenderedObject]:
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
    return [RenderedObject(claim, "A claim; the cluster's default StorageClass creates the disk.")]


def _nfs_server(part: NfsServerProperties) -> list[RenderedObject]:
    """A pod that mounts the disk and shares it, for clusters where only one node can mount a disk."""
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
        RenderedObject(
            {**service, "spec": {"selector": labels, "ports": ports}}, "The address of the NFS server."
        ),
        RenderedObject(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
            "The NFS server. `Recreate`, because two pods must not mount the disk at the same time.",
        ),
    ]


# --- on this machine


def local_job(part: ClusterProperties, name: str) -> Job:
    """The cluster as a Job that runs without Kubernetes: the same pods, with addresses of this machine. Its
    dialect is tf1, because that keeps a job called `master`."""
    roles = tuple(_local_role(part, fields) for fields in jobs_of(part))
    return Job(name=name, namespace=part.namespace, roles=roles, dialect="tf1")


def local_hosts(part: ClusterProperties, ports: Mapping[Task, int]) -> notebook.Hosts:
    return {
        fields.name: [f"127.0.0.1:{ports[Task(_role_name(fields.name), i)]}" for i in range(fields.num_tasks)]
        for fields in jobs_of(part)
    }


def _role_name(name: str) -> str:
    """The role for the job of a config, which may have any name."""
    return canonical(name) or name


def _local_role(part: ClusterProperties, fields: JobFields) -> Role:
    """A role that restarts always, as a StatefulSet does: servers never end by themselves."""
    return Role(
        name=_role_name(fields.name),
        replicas=fields.num_tasks,
        restart="Always",
        port=fields.port,
        template={"spec": _local_spec(part, fields)},
    )


def _local_spec(part: ClusterProperties, fields: JobFields) -> Manifest:
    """The pod spec with the task's name as POD_NAME: here the pod's own name begins with the job's name."""
    spec = _pod(part, fields)
    (container,) = spec["containers"]
    own = {"name": "POD_NAME", "value": f"{fields.name}-$(TASK_INDEX)"}
    env = [own if entry["name"] == own["name"] else entry for entry in container["env"]]
    return {**spec, "containers": [{**container, "name": TENSORFLOW_CONTAINER, "env": env}]}
