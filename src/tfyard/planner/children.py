"""The job's other objects: its PodGroup, Services, a ConfigMap for a large cluster, TensorBoard."""

from collections.abc import Iterator

from tfyard.model import Job, Manifest, Role, Task
from tfyard.model.names import (
    CONTROLLER,
    OPERATOR_NAME,
    POD_GROUP,
    REPLICA_INDEX,
    REPLICA_TYPE,
    job_labels,
    pod_name,
    tensorboard_name,
)

from . import gang
from .job_setup import Setup
from .pods import owner_references, service_ports
from .site import Site
from .tf_config import Roster

Key = tuple[str, str]
"""(kind, name)."""


def wanted(job: Job, roster: Roster, site: Site, setup: Setup) -> dict[Key, Manifest]:
    """Every object that should exist while the job is active, in the order in which to create them."""
    board = tensorboard(job, site) if setup.services != "none" else ()
    made = [*_group(job, setup), *_config_map(job, roster), *_services(job, setup), *board]
    return {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in made}


def temporary(job: Job, children: frozenset[Key]) -> list[Key]:
    """What is deleted with the pods. TensorBoard stays as long as the job: its charts are read afterwards."""
    kept = tensorboard_name(job.name)
    return sorted(key for key in children if key[0] in ("Service", "ConfigMap") and key[1] != kept)


def _group(job: Job, setup: Setup) -> Iterator[Manifest]:
    if setup.gang is not None:
        metadata = _metadata(job, job.name, job_labels(job))
        notes = gang.annotations(job, setup.gang)
        yield {
            "apiVersion": gang.API_VERSIONS[setup.gang.by],
            "kind": POD_GROUP,
            "metadata": {**metadata, **({"annotations": notes} if notes else {})},
            "spec": gang.group_spec(job, setup.gang, gang.min_member(job, setup)),
        }


def _services(job: Job, setup: Setup) -> Iterator[Manifest]:
    if setup.services == "shared" and job.size > 1:
        yield _shared_service(job)
    if setup.services == "per-replica":
        for role in job.roles:
            ports = service_ports(role)
            for index in range(role.replicas):
                yield _replica_service(job, role, index, ports)


def _shared_service(job: Job) -> Manifest:
    """One headless Service names all pods: N objects fewer to write and to keep up to date."""
    labels = job_labels(job)
    return headless_service(_metadata(job, job.name, labels), labels, shared_ports(job))


def _replica_service(job: Job, role: Role, index: int, ports: list[Manifest]) -> Manifest:
    labels = {**job_labels(job), REPLICA_TYPE: role.name.lower(), REPLICA_INDEX: str(index)}
    name = pod_name(job.name, Task(role.name, index))
    return headless_service(_metadata(job, name, labels), labels, ports)


def headless_service(metadata: Manifest, selector: dict[str, str], ports: list[Manifest]) -> Manifest:
    """DNS names for pods, also before they are ready: tasks wait for each other to become so."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def shared_ports(job: Job) -> list[Manifest]:
    return [{"name": f"tf-{port}", "port": port} for port in sorted({role.port for role in job.roles})]


def _config_map(job: Job, roster: Roster) -> Iterator[Manifest]:
    if roster.config_map:
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _metadata(job, roster.config_map, job_labels(job)),
            "immutable": True,
            "data": roster.config_data(),
        }


def tensorboard(job: Job, site: Site) -> Iterator[Manifest]:
    if job.tensorboard is None:
        return
    board, name = job.tensorboard, tensorboard_name(job.name)
    labels = {"app.kubernetes.io/name": "tensorboard", "app.kubernetes.io/instance": job.name}
    watched = {OPERATOR_NAME: CONTROLLER} if job.uid else {}  # no operator watches a rendered one
    metadata = _metadata(job, name, {**labels, "app.kubernetes.io/managed-by": "tfyard", **watched})
    container = {
        "name": "tensorboard",
        "image": board.image or site.tensorboard_image,
        "command": ["tensorboard", "--logdir", board.log_dir, "--host", "0.0.0.0", "--port", "6006"],
        "ports": [{"name": "http", "containerPort": 6006}],
        **({"volumeMounts": list(board.mounts)} if board.mounts else {}),
    }
    volumes = {"volumes": list(board.volumes)} if board.volumes else {}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **volumes}}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    ports = [{"name": "http", "port": 80, "targetPort": 6006}]
    spec = {"type": board.service_type, "selector": labels, "ports": ports}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _metadata(job: Job, name: str, labels: dict[str, str]) -> Manifest:
    return {"name": name, "namespace": job.namespace, "labels": labels, **owner_references(job)}
