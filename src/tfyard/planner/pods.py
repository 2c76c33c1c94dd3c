"""Pod manifests: the user's template plus names, labels, TF_CONFIG and ports of one task.

Parts that are equal for a role's pods are built once; each pod then costs a handful of small dicts. Parts are
shared between pods and with the template, so no function in this module changes data in place.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tfyard.model import TENSORFLOW_CONTAINER, Job, Manifest, Role, Task, tensorflow_container
from tfyard.model.job import training_position
from tfyard.model.names import (
    ATTEMPT,
    DEFAULT_IMAGE,
    GPU,
    JOB_ROLE,
    OLD_GPU,
    PORT_NAME,
    REPLICA_INDEX,
    REPLICA_TYPE,
    job_labels,
    pod_prefix,
)

from .gang import Membership
from .leaders import deciding_task, masters
from .site import Accelerator, DriverMount, Site
from .tf_config import CLASSIC_VARIABLES, TF_CONFIG, Roster, has_tf_config

PodBuilder = Callable[[int, int], Manifest]
"""(index, attempt) -> manifest."""
MLFLOW_URI, MLFLOW_RUN_ID = "MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"
"""MLflow's own variables."""


def builder(
    job: Job, role: Role, roster: Roster, site: Site, groups: Sequence[Membership], *, hostnames: bool
) -> PodBuilder:
    group_spec = {key: value for group in groups for key, value in group.spec.items()}
    metadata_of = _metadata_builder(job, role, groups)
    spec_of = _spec_builder(job, role, roster, site)

    def build(index: int, attempt: int) -> Manifest:
        meta, spec = metadata_of(index, attempt), {**spec_of(index), **group_spec}
        if hostnames:
            spec["hostname"], spec["subdomain"] = meta["name"], job.name
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    return build


def _metadata_builder(job: Job, role: Role, groups: Sequence[Membership]) -> PodBuilder:
    template: Manifest = role.template.get("metadata") or {}
    labels = {**_app_labels(job, role), **(template.get("labels") or {}), **job_labels(job)}
    labels[REPLICA_TYPE] = role.name.lower()
    annotations: dict[str, str] = template.get("annotations") or {}
    for group in groups:
        labels, annotations = {**labels, **group.labels}, {**annotations, **group.annotations}
    finalizers = {"finalizers": template["finalizers"]} if template.get("finalizers") else {}
    fixed = {**finalizers, **owner_references(job)}
    prefix, master_indexes = pod_prefix(job.name, role.name), masters(job, role)

    def build(index: int, attempt: int) -> Manifest:
        own = {**labels, REPLICA_INDEX: str(index)}
        if index in master_indexes:
            own[JOB_ROLE] = "master"
        return {
            "name": f"{prefix}{index}",
            "namespace": job.namespace,
            "labels": own,
            "annotations": {**annotations, ATTEMPT: str(attempt)},
            **fixed,
        }

    return build


def owner_references(job: Job) -> Manifest:
    """Owner references, by which deleting the job deletes its children; none outside of a cluster."""
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


def metadata(job: Job, name: str, labels: dict[str, str]) -> Manifest:
    """Metadata of an object of the job that is not a pod."""
    return {"name": name, "namespace": job.namespace, "labels": labels, **owner_references(job)}


def _app_labels(job: Job, role: Role) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": job.name,
        "app.kubernetes.io/component": role.name.lower(),
        "app.kubernetes.io/managed-by": "tfyard",
    }


def _spec_builder(job: Job, role: Role, roster: Roster, site: Site) -> Callable[[int], Manifest]:
    spec = with_drivers(role.template.get("spec") or {}, site.accelerators)
    containers = [with_failure_message(container) for container in spec.get("containers") or ()]
    position = training_position(containers)
    base = {**spec, "containers": containers, "restartPolicy": _restart_policy(job, role, site)}
    if spec.get("initContainers"):
        base["initContainers"] = [with_failure_message(container) for container in spec["initContainers"]]
    container_of = _container_builder(job, role, roster, site, containers[position])

    def build(index: int) -> Manifest:
        own = containers.copy()
        own[position] = container_of(index)
        return {**base, "containers": own}

    return build


def _restart_policy(job: Job, role: Role, site: Site) -> str:
    """The pod's restartPolicy: Never where the job allows no restart, because a kubelet knows no limit, and where
    all tasks start together, because a kubelet knows only one."""
    is_forbidden = (job.run_policy.backoff_limit == 0 or job.together) and not site.kubeflow
    return "Never" if is_forbidden or role.restart == "ExitCode" else role.restart


def with_failure_message(container: Manifest) -> Manifest:
    """The container, with the last lines of its log in its status if it fails: its log is deleted with the pod."""
    if "terminationMessagePolicy" in container:
        return container
    return {**container, "terminationMessagePolicy": "FallbackToLogsOnError"}


def _container_builder(
    job: Job, role: Role, roster: Roster, site: Site, container: Manifest
) -> Callable[[int], Manifest]:
    container = with_port(container, role.port)
    if role.is_default_server:
        container |= _platform_server(container, site)
    env: list[Manifest] = list(container.get("env") or ())
    ours = roster.environment(role.name) if _wants_tf_config(job, container) else lambda _index: []
    classic, deciding = _classic_variables(container), deciding_task(job)
    of_run = _mlflow_variables(job, container)

    def build(index: int) -> Manifest:
        own = {**container}
        if role.is_default_server and site.server_script and not site.server_command:
            own["command"] = _server_command(role, roster, site, index)
        entries = [*env, *ours(index), *(of_run if of_run and Task(role.name, index) == deciding else ())]
        if classic:
            values = roster.classic(Task(role.name, index))
            entries = [*({"name": name, "value": values[name]} for name in classic), *entries]
        if entries:
            own["env"] = entries
        return own

    return build


def _wants_tf_config(job: Job, container: Manifest) -> bool:
    """Whether the container gets a TF_CONFIG; one that the user sets is kept."""
    return has_tf_config(job) and TF_CONFIG not in env_names(container)


def _classic_variables(container: Manifest) -> list[str]:
    """Classic variables that the program mentions and the user has not set. Other programs do not get them: the
    host lists would make every pod grow with the job. They come first in env, because the kubelet only expands a
    reference to a variable that precedes it."""
    text, own = program_text(container), env_names(container)
    return [name for name in CLASSIC_VARIABLES if name in text and name not in own]


def _mlflow_variables(job: Job, container: Manifest) -> list[Manifest]:
    """Variables by which MLflow in the program goes on in the job's run. Those that the user sets are kept."""
    if job.mlflow is None or not (job.mlflow.uri and job.mlflow.run):
        return []
    values, own = {MLFLOW_URI: job.mlflow.uri, MLFLOW_RUN_ID: job.mlflow.run}, env_names(container)
    return [{"name": name, "value": value} for name, value in values.items() if name not in own]


def program_text(container: Manifest) -> str:
    """All text in which a program may mention variables."""
    values = [entry.get("value") or "" for entry in container.get("env") or ()]
    return " ".join(map(str, [*(container.get("command") or ()), *(container.get("args") or ()), *values]))


def env_names(container: Manifest) -> set[str]:
    return {entry.get("name", "") for entry in container.get("env") or ()}


def with_port(container: Manifest, port: int) -> Manifest:
    """The container with the job's port, named as tools expect it. A port that the user lists under another name
    is not listed twice, because the server rejects duplicates."""
    ports: list[Manifest] = container.get("ports") or []
    if any(entry.get("name") == PORT_NAME or entry.get("containerPort") == port for entry in ports):
        return container
    return {**container, "ports": [*ports, {"name": PORT_NAME, "containerPort": port}]}


def _platform_server(container: Manifest, site: Site) -> Manifest:
    """Image and command of the platform's parameter server, where the job has none of its own."""
    chosen: Manifest = {}
    if site.server_image and container.get("image") == DEFAULT_IMAGE:
        chosen["image"] = site.server_image
    if site.server_command:
        chosen["command"] = list(site.server_command)
    return chosen


def _server_command(role: Role, roster: Roster, site: Site, index: int) -> list[str]:
    identity = ["--job_name", role.name.lower(), "--task_id", str(index)]
    return ["python", "-c", site.server_script, "--cluster_spec", roster.cluster_spec(), *identity]


def service_ports(role: Role) -> list[Manifest]:
    """The ports of a task's own Service: every port of the container that trains."""
    container = with_port(tensorflow_container(role.template), role.port)
    return [_service_port(entry) for entry in container["ports"]]


def _service_port(entry: Manifest) -> Manifest:
    number, protocol = entry["containerPort"], entry.get("protocol") or "TCP"
    is_tcp = protocol == "TCP"
    name = entry.get("name") or (f"port-{number}" if is_tcp else f"port-{number}-{protocol.lower()}")
    return {"name": name, "port": number, **({} if is_tcp else {"protocol": protocol})}


# --- driver mounts for containers that request a device


def with_drivers(spec: Manifest, accelerators: Mapping[str, Accelerator]) -> Manifest:
    """The pod spec plus the drivers that its `tensorflow` container needs; entries of the user are kept.

    Old clusters had no device plugin: each pod mounted the node's driver itself. The operator's config says what
    to mount for which resource, so that jobs need not."""
    containers = spec.get("containers", [])
    position = next((i for i, c in enumerate(containers) if c.get("name") == TENSORFLOW_CONTAINER), None)
    if position is None or not accelerators:
        return spec
    for accelerator in _requested(containers[position], accelerators):
        spec = _with_accelerator(spec, position, accelerator)
    return spec


def _requested(container: Manifest, accelerators: Mapping[str, Accelerator]) -> Iterable[Accelerator]:
    resources = container.get("resources") or {}
    requested = {_modern(name) for part in ("limits", "requests") for name in resources.get(part) or {}}
    return [config for name, config in accelerators.items() if _modern(name) in requested]


def _modern(resource: str) -> str:
    """Today's name of a resource: configs of 2017 use the GPU's old name, jobs get the new one when loaded."""
    return GPU if resource == OLD_GPU else resource


def _with_accelerator(spec: Manifest, position: int, accelerator: Accelerator) -> Manifest:
    container = spec["containers"][position]
    volumes, mounts = list(spec.get("volumes") or ()), list(container.get("volumeMounts") or ())
    for driver in accelerator.volumes:
        if all(mount.get("mountPath") != driver.mount_path for mount in mounts):
            mounts.append({"name": _ensure_volume(volumes, driver), "mountPath": driver.mount_path})
    env = list(container.get("env") or ())
    known = {entry.get("name") for entry in env}
    env += [{"name": e.name, "value": e.value} for e in accelerator.env_vars if e.name not in known]
    equipped = {**container, "volumeMounts": mounts, "env": env}
    containers = [equipped if i == position else c for i, c in enumerate(spec["containers"])]
    return {**spec, "containers": containers, "volumes": volumes}


def _ensure_volume(volumes: list[Manifest], driver: DriverMount) -> str:
    """Name of the volume for this driver: an equal volume is shared, a different one of the same name is kept."""
    host_path = {"path": driver.host_path}
    taken = {volume.get("name"): volume for volume in volumes}
    name = driver.name
    while name in taken:
        if taken[name].get("hostPath") == host_path:
            return name
        name += "-driver"
    volumes.append({"name": name, "hostPath": host_path})
    return name
