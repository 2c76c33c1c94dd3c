"""Pods: the user's template plus what makes it this task of this job.

All that a role's pods share is made once; a pod then costs a handful of small dicts. Parts are shared
between pods and with the template, so nothing here changes data in place.
"""

from collections.abc import Callable, Iterable
from typing import Any

from tfyard.model import TENSORFLOW_CONTAINER, Job, Manifest, Role, Task, tensorflow_container
from tfyard.model.names import (
    ATTEMPT,
    DEFAULT_IMAGE,
    JOB_ROLE,
    PORT_NAME,
    REPLICA_INDEX,
    REPLICA_TYPE,
    job_labels,
    pod_prefix,
)

from . import accelerators
from .cluster import CLASSIC_VARIABLES, TF_CONFIG, Roster, chiefs, has_tf_config
from .gang import Membership
from .site import Site

PodBuilder = Callable[[int, int], Manifest]
"""(index, attempt) -> manifest."""


def builder(
    job: Job, role: Role, roster: Roster, site: Site, groups: Iterable[Membership], *, hostnames: bool
) -> PodBuilder:
    template = role.template
    metadata: Manifest = template.get("metadata") or {}
    labels = {**_app_labels(job, role), **(metadata.get("labels") or {}), **job_labels(job)}
    labels[REPLICA_TYPE] = role.name.lower()
    annotations: dict[str, str] = metadata.get("annotations") or {}
    held: Manifest = {}
    for group in groups:
        labels, annotations = {**labels, **group.labels}, {**annotations, **group.annotations}
        held |= group.spec
    finalizers = {"finalizers": metadata["finalizers"]} if metadata.get("finalizers") else {}
    owner, prefix = owner_references(job), pod_prefix(job.name, role.name)
    masters = chiefs(job, role)
    spec_of = _spec_builder(job, role, roster, site)

    def build(index: int, attempt: int) -> Manifest:
        name = f"{prefix}{index}"
        own = {**labels, REPLICA_INDEX: str(index)}
        if index in masters:
            own[JOB_ROLE] = "master"
        spec = {**spec_of(index), **held}
        if hostnames:
            spec["hostname"], spec["subdomain"] = name, job.name
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": job.namespace,
                "labels": own,
                "annotations": {**annotations, ATTEMPT: str(attempt)},
                **finalizers,
                **owner,
            },
            "spec": spec,
        }

    return build


def owner_references(job: Job) -> Manifest:
    """Deleting the job deletes its children. A job without a uid is in no cluster, and owns nothing there."""
    if not job.uid:
        return {}
    reference = {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {"ownerReferences": [reference]}


def _app_labels(job: Job, role: Role) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": job.name,
        "app.kubernetes.io/component": role.name.lower(),
        "app.kubernetes.io/managed-by": "tfyard",
    }


def _spec_builder(job: Job, role: Role, roster: Roster, site: Site) -> Callable[[int], Manifest]:
    spec = accelerators.equip(role.template.get("spec") or {}, site.accelerators)
    containers = [_explained(container) for container in spec.get("containers") or ()]
    position = next((i for i, c in enumerate(containers) if c.get("name") == TENSORFLOW_CONTAINER), 0)
    restart = "Never" if role.restart == "ExitCode" else role.restart
    base = {**spec, "containers": containers, "restartPolicy": restart}
    if spec.get("initContainers"):
        base["initContainers"] = [_explained(container) for container in spec["initContainers"]]
    container_of = _container_builder(job, role, roster, site, containers[position])

    def build(index: int) -> Manifest:
        own = containers.copy()
        own[position] = container_of(index)
        return {**base, "containers": own}

    return build


def _explained(container: Manifest) -> Manifest:
    """Without this the reason of a failure stays in a log that goes with the pod."""
    if "terminationMessagePolicy" in container:
        return container
    return {**container, "terminationMessagePolicy": "FallbackToLogsOnError"}


def _container_builder(
    job: Job, role: Role, roster: Roster, site: Site, container: Manifest
) -> Callable[[int], Manifest]:
    container = {**container, "ports": _ports(container, role.port)}
    if role.is_default_server:
        container |= _platform_server(container, site)
    env: list[Manifest] = list(container.get("env") or ())
    ours = roster.environment(role.name) if _wants_tf_config(job, env) else lambda _index: []
    classic = _classic_variables(container, env)

    def build(index: int) -> Manifest:
        own = {**container}
        if role.is_default_server and site.server_script and not site.server_command:
            own["command"] = _server_command(role, roster, site, index)
        entries = [*env, *ours(index)]
        if classic:
            values = roster.classic(Task(role.name, index))
            entries = [*({"name": name, "value": values[name]} for name in classic), *entries]
        if entries:
            own["env"] = entries
        return own

    return build


def _wants_tf_config(job: Job, env: list[Manifest]) -> bool:
    """A TF_CONFIG of the user's own is kept: whoever writes one has a reason."""
    return has_tf_config(job) and all(entry.get("name") != TF_CONFIG for entry in env)


def _classic_variables(container: Manifest, env: list[Manifest]) -> list[str]:
    """Those that the program mentions and the user has not set. Unasked, they are not given: the host lists
    would make every pod grow with the job. They stand first, since the kubelet expands backward only."""
    values = [entry.get("value") or "" for entry in env]
    parts = [*_list(container, "command"), *_list(container, "args"), *values]
    text = " ".join(str(part) for part in parts)
    own = {entry.get("name") for entry in env}
    return [name for name in CLASSIC_VARIABLES if name in text and name not in own]


def _list(container: Manifest, key: str) -> list[Any]:
    return container.get(key) or []


def _ports(container: Manifest, port: int) -> list[Manifest]:
    """Named as tools expect it; a port the user already lists under another name is not listed twice,
    because the server rejects duplicates."""
    ports: list[Manifest] = container.get("ports") or []
    if any(entry.get("name") == PORT_NAME or entry.get("containerPort") == port for entry in ports):
        return ports
    return [*ports, {"name": PORT_NAME, "containerPort": port}]


def _platform_server(container: Manifest, site: Site) -> Manifest:
    """The platform chooses where the job did not; an image of the job's own stays."""
    chosen: Manifest = {}
    if site.server_image and container.get("image") == DEFAULT_IMAGE:
        chosen["image"] = site.server_image
    if site.server_command:
        chosen["command"] = list(site.server_command)
    return chosen


def _server_command(role: Role, roster: Roster, site: Site, index: int) -> list[str]:
    identity = ["--job_name", role.name.lower(), "--task_id", str(index)]
    return ["python", "-c", site.server_script, "--cluster_spec", roster.cluster_spec(), *identity]


def template_restart_policy(role: Role) -> str:
    return str((role.template.get("spec") or {}).get("restartPolicy") or "")


def service_ports(role: Role) -> list[Manifest]:
    """What a task's own Service offers: every port of the container that trains."""
    return [_service_port(entry) for entry in _ports(tensorflow_container(role.template), role.port)]


def _service_port(entry: Manifest) -> Manifest:
    number, protocol = entry["containerPort"], entry.get("protocol") or "TCP"
    is_tcp = protocol == "TCP"
    name = entry.get("name") or (f"port-{number}" if is_tcp else f"port-{number}-{protocol.lower()}")
    return {"name": name, "port": number, **({} if is_tcp else {"protocol": protocol})}
