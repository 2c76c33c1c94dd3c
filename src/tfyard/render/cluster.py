"""Who is in the cluster, as objects: Services for names, and one ConfigMap that lists everybody.

Listing N tasks in N pods costs N² bytes. Here each pod refers to one text, which the kubelet expands.
"""

from collections.abc import Iterable

from tfyard.model import EVALUATOR, PS, WORKER, Job, Manifest, Role, Task
from tfyard.model.names import JOB_NAME, pod_name
from tfyard.planner.cluster import CLUSTER_VARIABLE, TF_CONFIG, Roster
from tfyard.planner.pods import service_ports

from . import podspec, scripts
from .comments import Path
from .manifests import Piece

SCRIPTS_AT = "/tfyard"
SCRIPTS_VOLUME = "tfyard"
EVALUATOR_VARIABLE = "TFYARD_EVALUATOR"
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
_LISTS = {"PS_HOSTS": "ps_hosts", "WORKER_HOSTS": "worker_hosts"}


def config_name(job: Job) -> str:
    return f"{job.name}-cluster"


def config_map(job: Job, roster: Roster, files: Iterable[str]) -> Piece:
    hosts = [host for listed in roster.hosts.values() for host in listed]
    data = {
        **roster.config_data(),
        "ps_hosts": ",".join(roster.hosts.get(PS, ())),
        "worker_hosts": ",".join(roster.hosts.get(WORKER, ())),
        "names": "".join(f"{host.rpartition(':')[0]}\n" for host in hosts),
        **{name: scripts.read(name) for name in files},
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_name(job), "namespace": job.namespace, "labels": labels(job)},
        "data": data,
    }
    notes: dict[Path, str] = {
        ("data", "cluster"): "The `cluster` of TF_CONFIG, once for all pods.",
        ("data", "ps_hosts"): "For programs that take --ps_hosts and --worker_hosts.",
        ("data", "names"): "What each task waits for before it starts.",
    }
    return Piece({**manifest}, "Who is in the cluster, and what the pods run beside the training.", notes)


def labels(job: Job) -> dict[str, str]:
    """What `spread` and Services find the pods by. Not the operator's own label: these pods are not its."""
    return {JOB_NAME: job.name}


def shared_service(job: Job) -> Piece:
    ports = sorted({role.port for role in job.roles})
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": labels(job),
        "ports": [{"name": f"tf-{port}", "port": port} for port in ports],
    }
    metadata = {"name": job.name, "namespace": job.namespace, "labels": labels(job)}
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    return Piece(manifest, "Gives every pod a name, also before it is ready.")


def task_service(job: Job, role: Role, index: int, selector: dict[str, str]) -> Piece:
    name = pod_name(job.name, Task(role.name, index))
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": selector,
        "ports": service_ports(role),
    }
    metadata = {"name": name, "namespace": job.namespace, "labels": labels(job)}
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    return Piece(manifest, f"`services: per-replica`: the address of {name}.")


def index_variable() -> Manifest:
    """First of all: the Job controller appends an index of its own, too late for others to refer to."""
    field = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX_LABEL}']"}}
    return {"name": "TASK_INDEX", "valueFrom": field}


def variables(job: Job, role: Role, roster: Roster, index: Manifest) -> list[Manifest]:
    """What a task of a role that has pods of its own is told; the kubelet fills in the index."""
    kind = roster.type_of(role.name)
    key = "evaluator" if role.name == EVALUATOR and "evaluator" in roster.config_data() else "cluster"
    words = podspec.words_of(role)
    task = f'{{"type":"{kind}","index":$(TASK_INDEX)}}'
    config = f'{{"cluster":$({CLUSTER_VARIABLE}),"task":{task},"environment":"cloud"}}'
    return [
        index,
        *([{"name": "JOB_NAME", "value": kind}] if "JOB_NAME" in words else []),
        *host_lists(job, words),
        from_config_map(job, CLUSTER_VARIABLE, key),
        {"name": TF_CONFIG, "value": config},
    ]


def host_lists(job: Job, words: str) -> list[Manifest]:
    return [from_config_map(job, name, key) for name, key in _LISTS.items() if name in words]


def from_config_map(job: Job, variable: str, key: str) -> Manifest:
    source = {"configMapKeyRef": {"name": config_name(job), "key": key}}
    return {"name": variable, "valueFrom": source}


def with_variables(template: Manifest, ours: list[Manifest]) -> Manifest:
    """Before the user's, which may refer to them. A variable that the user sets is the user's."""

    def change(container: Manifest) -> Manifest:
        taken = podspec.own_env(container)
        return {
            **container,
            "env": [*(e for e in ours if e["name"] not in taken), *(container.get("env") or [])],
        }

    return podspec.change_container(template, change)


def with_waiting(template: Manifest, job: Job) -> Manifest:
    """The pod begins its training when the names of all tasks resolve."""
    mount = {"name": SCRIPTS_VOLUME, "mountPath": SCRIPTS_AT, "readOnly": True}
    volume = {"name": SCRIPTS_VOLUME, "configMap": {"name": config_name(job)}}
    command = ["/bin/sh", f"{SCRIPTS_AT}/wait.sh", f"{SCRIPTS_AT}/names"]
    step = podspec.helper("tfyard-wait", template, command, [mount])
    return podspec.add_init(podspec.add_volume(template, volume, mount), step)
