"""How the pods of a rendered job find each other: Services for names, and one ConfigMap with all addresses.

A list of N tasks in each of N pods would take N² bytes, so all pods refer to one text, which the kubelet expands.
"""

from collections.abc import Mapping

from tfyard.model import EVALUATOR, WORKER, Job, Manifest, Role, Task, tensorflow_container
from tfyard.model.names import (
    EVALUATOR_VARIABLE,
    JOB_NAME,
    SCRIPTS_AT,
    SCRIPTS_VOLUME,
    WAIT_CONTAINER,
    pod_name,
)
from tfyard.planner.children import headless_service, shared_ports
from tfyard.planner.pods import env_names, program_text, service_ports
from tfyard.planner.tf_config import Roster

from . import podspec
from .objects import Path, RenderedObject

SCRIPTS_MOUNT: Manifest = {"name": SCRIPTS_VOLUME, "mountPath": SCRIPTS_AT, "readOnly": True}
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"


def config_map_name(job: Job) -> str:
    return f"{job.name}-cluster"


def config_map(job: Job, roster: Roster, files: Mapping[str, str]) -> RenderedObject:
    data = {
        **roster.config_data(),
        **{name.lower(): hosts for name, hosts in roster.host_lists().items()},
        "names": names(roster),
        **files,
    }
    metadata = _metadata(job, roster.config_map)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    comments: dict[Path, str] = {
        ("data", "cluster"): "The `cluster` of TF_CONFIG, once for all pods.",
        ("data", "ps_hosts"): "For programs with the flags --ps_hosts and --worker_hosts.",
        ("data", "names"): "Each task waits until all these names resolve.",
    }
    return RenderedObject(manifest, "The addresses of all tasks, and the scripts that pods run.", comments)


def names(roster: Roster) -> str:
    """The host name of every task, one per line, as wait.sh reads them."""
    hosts = [host for addresses in roster.hosts.values() for host in addresses]
    return "".join(f"{host.rpartition(':')[0]}\n" for host in hosts)


def labels(job: Job) -> dict[str, str]:
    """Labels by which `spread` and Services select pods, without the operator's: it must ignore these pods."""
    return {JOB_NAME: job.name}


def shared_service(job: Job) -> RenderedObject:
    manifest = headless_service(_metadata(job, job.name), labels(job), shared_ports(job))
    return RenderedObject(manifest, "Gives every pod a DNS name, even before it is ready.")


def task_service(job: Job, role: Role, index: int, selector: dict[str, str]) -> RenderedObject:
    name = pod_name(job.name, Task(role.name, index))
    manifest = headless_service(_metadata(job, name), selector, service_ports(role))
    return RenderedObject(manifest, f"The address of {name}, because of `services: per-replica`.")


def _metadata(job: Job, name: str) -> Manifest:
    return {"name": name, "namespace": job.namespace, "labels": labels(job)}


def index_variable() -> Manifest:
    """The index, as the first entry, so that others can refer to it: the Job controller appends its own last."""
    field = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX_LABEL}']"}}
    return {"name": "TASK_INDEX", "valueFrom": field}


def variables(role: Role, roster: Roster) -> list[Manifest]:
    """Variables for tasks of a role with its own Job; the kubelet fills in the index."""
    text = program_text(tensorflow_container(role.template))
    kind = [{"name": "JOB_NAME", "value": roster.type_of(role.name)}] if "JOB_NAME" in text else []
    ours = roster.environment(role.name)("$(TASK_INDEX)")
    return [index_variable(), *kind, *host_lists(roster, text), *ours]


def shared_variables(role: Role, roster: Roster) -> list[Manifest]:
    """Variables for tasks of all roles in one Job; task.sh sets the others."""
    text = program_text(tensorflow_container(role.template))
    entries = [index_variable(), *host_lists(roster, text), roster.cluster_entry(WORKER)]
    if "evaluator" in roster.config_data():
        entries.append(roster.cluster_entry(EVALUATOR, EVALUATOR_VARIABLE))
    return entries


def host_lists(roster: Roster, text: str) -> list[Manifest]:
    """PS_HOSTS and WORKER_HOSTS, if the program mentions them."""
    names = [name for name in roster.host_lists() if name in text]
    return [podspec.from_config_map(name, roster.config_map, name.lower()) for name in names]


def with_variables(template: Manifest, ours: list[Manifest]) -> Manifest:
    """Adds tfyard's variables before the user's, which may refer to them; those that the user sets are kept."""

    def change(container: Manifest) -> Manifest:
        taken, own = env_names(container), container.get("env") or []
        return {**container, "env": [*(entry for entry in ours if entry["name"] not in taken), *own]}

    return podspec.change_container(template, change)


def wait_container(template: Manifest) -> Manifest:
    """An init container that ends when the names of all tasks resolve."""
    command = ["/bin/sh", f"{SCRIPTS_AT}/wait.sh", f"{SCRIPTS_AT}/names"]
    return podspec.init_container(WAIT_CONTAINER, template, command, [SCRIPTS_MOUNT])


def scripts_volume(config_map: str) -> Manifest:
    return {"name": SCRIPTS_VOLUME, "configMap": {"name": config_map}}


def with_waiting(template: Manifest, config_map: str) -> Manifest:
    step = wait_container(template)
    return podspec.add_init_container(
        podspec.add_volume(template, scripts_volume(config_map), SCRIPTS_MOUNT), step
    )
