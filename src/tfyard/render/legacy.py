"""`--as legacy`: a ReplicationController and a Service per task, as people wrote them in 2016.

Hosts come from a ConfigMap with the keys `ps` and `worker`, as PS_KEY and WORKER_KEY. A ReplicationController
restarts its pod whenever it ends, so such a job never finishes by itself: delete it when the training is done.
"""

from collections.abc import Iterator

from tfyard.errors import Invalid
from tfyard.formats.limits import MAX_ENV_STRING
from tfyard.model import WORKER, Job, Manifest, Problem, Role, Task, tensorflow_container
from tfyard.model.names import JOB_NAME, MAX_LABEL
from tfyard.planner.pods import program_text, with_port
from tfyard.planner.tf_config import Roster, has_tf_config

from . import cluster, podspec, prerequisites, scripts
from .objects import RenderedObject
from .options import RenderOptions

DOMAIN = "cluster.local"
_SERVICE_NAMES = {WORKER: "wk"}


def legacy(job: Job, options: RenderOptions) -> list[RenderedObject]:
    job = prerequisites.without_empty_roles(job)
    job, before = prerequisites.complete(job, options)
    _check_names(job)
    roster = _roster(job, options.domain or DOMAIN)
    _check_size(roster)
    tasks = [rendered for role in job.roles for rendered in _tasks(job, role, roster)]
    shared = [*before, _config_map(job, roster)]
    return [*shared, *tasks, *prerequisites.tensorboard(job)]


def hosts(job: Job, options: RenderOptions) -> dict[str, list[str]]:
    """The address of every task, for programs outside of the job."""
    return _roster(job, options.domain or DOMAIN).hosts


def _check_names(job: Job) -> None:
    names = [_service_name(job, role, role.replicas - 1) for role in job.roles]
    longest = max(names, key=len)
    if len(longest) > MAX_LABEL:
        text = (
            f"is too long: the Service {longest!r} would have {len(longest)} letters of {MAX_LABEL} allowed"
        )
        fix = f"use at most {MAX_LABEL - (len(longest) - len(job.name))} letters"
        raise Invalid([Problem(("name",), text, fix, job.name)])


def _check_size(roster: Roster) -> None:
    """Checks the length of TF_CONFIG again, because its host names are longer here than in `formats.check`."""
    size = len(roster.cluster_text(WORKER)) + 100
    if size > MAX_ENV_STRING:
        text = f"TF_CONFIG would have {size:,} bytes, and Linux allows {MAX_ENV_STRING:,}"
        raise Invalid([Problem(("name",), text, "use a shorter name or fewer tasks")])


def unsupported(job: Job) -> list[str]:
    """Messages about settings of the job that ReplicationControllers do not support."""
    lost = ["the end of the job: a ReplicationController restarts every task, even after success"]
    policy = job.run_policy
    limits = {"deadline": policy.deadline, "retries": policy.backoff_limit, "keepFor": policy.ttl}
    names = [name for name, value in limits.items() if value is not None]
    return [*lost, f"{', '.join(names)}: no operator enforces them"] if names else lost


def _tasks(job: Job, role: Role, roster: Roster) -> Iterator[RenderedObject]:
    for task in role.tasks():
        yield _service(job, role, task)
        yield _controller(job, role, task, roster)


def _suffix(role: Role, index: int) -> str:
    """The index, or nothing if the role has one task: tensorflow-ps-service, as in the tutorial."""
    return str(index) if role.replicas > 1 else ""


def _label(job: Job, role: Role, index: int) -> str:
    return f"{job.name}-{role.name.lower()}{_suffix(role, index)}"


def _service_name(job: Job, role: Role, index: int) -> str:
    name = _SERVICE_NAMES.get(role.name, role.name.lower())
    return f"{job.name}-{name}-service{_suffix(role, index)}"


def _roster(job: Job, domain: str) -> Roster:
    end = f".{job.namespace}.svc.{domain}"
    hosts = {
        role.name: [f"{_service_name(job, role, i)}{end}:{role.port}" for i in range(role.replicas)]
        for role in job.roles
    }
    return Roster(hosts=hosts, dialect=job.dialect, config_map=f"{job.name}-cluster-config")


def _config_map(job: Job, roster: Roster) -> RenderedObject:
    lists = roster.host_lists()
    data = {
        "ps": lists["PS_HOSTS"],
        "worker": lists["WORKER_HOSTS"],
        **(roster.config_data() if has_tf_config(job) else {}),
        "names": cluster.names(roster),
        "wait.sh": scripts.read("wait.sh"),
    }
    metadata = {"name": roster.config_map, "namespace": job.namespace}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return RenderedObject(
        manifest, "The addresses of all tasks; `ps` and `worker` in the form that programs accept."
    )


def _service(job: Job, role: Role, task: Task) -> RenderedObject:
    label = _label(job, role, task.index)
    metadata = {
        "name": _service_name(job, role, task.index),
        "namespace": job.namespace,
        "labels": {"name": label, "role": "service"},
    }
    spec = {"ports": [{"port": role.port, "targetPort": role.port}], "selector": {"name": label}}
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    return RenderedObject(manifest, f"The address of {task.name}.")


def _controller(job: Job, role: Role, task: Task, roster: Roster) -> RenderedObject:
    label = _label(job, role, task.index)
    spec = {"replicas": 1, "selector": {"name": label}, "template": _template(job, role, task, roster)}
    metadata = {"name": f"{label}-rc", "namespace": job.namespace}
    manifest = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": metadata, "spec": spec}
    return RenderedObject(manifest, f"Restarts {task.name} whenever it ends.")


def _template(job: Job, role: Role, task: Task, roster: Roster) -> Manifest:
    template = cluster.with_variables(role.template, _variables(job, role, task, roster))
    template = podspec.add_init_container(template, cluster.wait_container(template))
    template = podspec.change_container(template, lambda c: with_port(c, role.port))
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), "name": _label(job, role, task.index)}
    labels |= {"role": role.name.lower(), JOB_NAME: job.name}  # `spread` selects pods by the latter
    spec = podspec.append(template["spec"], "volumes", [cluster.scripts_volume(roster.config_map)])
    return {"metadata": {**metadata, "labels": labels}, "spec": {**spec, "restartPolicy": "Always"}}


def _variables(job: Job, role: Role, task: Task, roster: Roster) -> list[Manifest]:
    """PS_KEY and WORKER_KEY, the classic variables that the program mentions, and TF_CONFIG."""
    text = program_text(tensorflow_container(role.template))
    classic = {**roster.classic(task), "PS_HOSTS": "$(PS_KEY)", "WORKER_HOSTS": "$(WORKER_KEY)"}
    return [
        podspec.from_config_map("PS_KEY", roster.config_map, "ps"),
        podspec.from_config_map("WORKER_KEY", roster.config_map, "worker"),
        *({"name": name, "value": value} for name, value in classic.items() if name in text),
        *(roster.environment(role.name)(task.index) if has_tf_config(job) else ()),
    ]
