"""Objects of a job other than pods: its PodGroup, Services, a ConfigMap for a large cluster, TensorBoard."""

from collections.abc import Iterator

import msgspec

from tfyard.model import Amend, Job, Manifest, Role, ServiceSpec, Task
from tfyard.model.names import (
    POD_GROUP,
    REPLICA_INDEX,
    REPLICA_TYPE,
    job_labels,
    pod_name,
    tensorboard_name,
)

from . import gang, tensorboard
from .job_setup import Setup
from .pods import metadata, service_ports
from .reasons import REPAIRED_SERVICE
from .site import Site
from .tf_config import Roster

Key = tuple[str, str]
"""(kind, name)."""


def wanted(job: Job, roster: Roster, site: Site, setup: Setup) -> dict[Key, Manifest]:
    """Every object that should exist while the job is active, in the order in which to create them."""
    board = tensorboard.objects(job, site) if setup.services != "none" else ()
    manifests = [*_group(job, setup), *_config_map(job, roster), *_services(job, setup), *board]
    return {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in manifests}


def repair(manifests: dict[Key, Manifest], services: dict[str, ServiceSpec]) -> Iterator[Amend]:
    """Put selector and ports of Services back that were edited: tasks would not find each other."""
    for (kind, name), manifest in manifests.items():
        if kind != "Service" or name not in services:
            continue
        there, wanted = services[name], {field: manifest["spec"].get(field) for field in _REPAIRED}
        if _meaning(there) != _meaning(_spec(wanted)):
            selector = {**dict.fromkeys(there.selector), **wanted["selector"]}
            yield Amend("Service", name, {"spec": {**wanted, "selector": selector}}, REPAIRED_SERVICE)


_REPAIRED = ("selector", "ports", "publishNotReadyAddresses")


def _spec(fields: Manifest) -> ServiceSpec:
    return msgspec.convert({name: value for name, value in fields.items() if value is not None}, ServiceSpec)


def _meaning(spec: ServiceSpec) -> tuple[object, ...]:
    """A Service's spec as it can be compared: the order of ports does not matter, nor what the server fills in."""
    ports = sorted(
        (each.port, each.protocol, each.name, str(each.target_port or each.port)) for each in spec.ports
    )
    return spec.selector, ports, spec.publish_not_ready_addresses


def temporary(job: Job, children: frozenset[Key]) -> list[Key]:
    """Objects that are deleted with the pods. TensorBoard stays as long as the job: its charts are read later."""
    kept = tensorboard_name(job.name)
    return sorted(key for key in children if key[0] in ("Service", "ConfigMap") and key[1] != kept)


def _group(job: Job, setup: Setup) -> Iterator[Manifest]:
    if setup.gang is not None:
        notes = gang.annotations(job, setup.gang)
        yield {
            "apiVersion": gang.API_VERSIONS[setup.gang.by],
            "kind": POD_GROUP,
            "metadata": {
                **metadata(job, job.name, job_labels(job)),
                **({"annotations": notes} if notes else {}),
            },
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
    """One headless Service for all pods, instead of one object per pod to write and to keep up to date."""
    labels = job_labels(job)
    return headless_service(metadata(job, job.name, labels), labels, shared_ports(job))


def _replica_service(job: Job, role: Role, index: int, ports: list[Manifest]) -> Manifest:
    labels = {**job_labels(job), REPLICA_TYPE: role.name.lower(), REPLICA_INDEX: str(index)}
    name = pod_name(job.name, Task(role.name, index))
    return headless_service(metadata(job, name, labels), labels, ports)


def headless_service(meta: Manifest, selector: dict[str, str], ports: list[Manifest]) -> Manifest:
    """A Service that gives pods DNS names even before they are ready: tasks wait for each other at their start."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def shared_ports(job: Job) -> list[Manifest]:
    return [{"name": f"tf-{port}", "port": port} for port in sorted({role.port for role in job.roles})]


def _config_map(job: Job, roster: Roster) -> Iterator[Manifest]:
    if roster.config_map:
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(job, roster.config_map, job_labels(job)),
            "immutable": True,
            "data": roster.config_data(),
        }
