"""`--as plain`: objects that any cluster runs without an operator.

Roles with the same pod spec become **one** Indexed Job, whose success policy ends every pod, including parameter
servers, when the job's leader succeeds. Roles that differ become a Job each, and the leader's last step deletes
the others. `unsupported` lists what Kubernetes' Jobs cannot do.
"""

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.formats.workloads.kinds import DISRUPTED, PERMANENT, UNLIMITED
from tfyard.model import (
    EVALUATOR,
    PS,
    Job,
    Manifest,
    Problem,
    Role,
    ServiceMode,
    Task,
    exit_codes,
    tensorflow_container,
)
from tfyard.model.expansion import references
from tfyard.model.names import LAST_STEP_VARIABLE, REPLICA_TYPE, SCRIPTS_AT
from tfyard.planner.indexes import compress
from tfyard.planner.job_setup import Setup, addresses
from tfyard.planner.leaders import leaders, leading_role
from tfyard.planner.pods import env_names, program_text, with_failure_message, with_port
from tfyard.planner.tf_config import Roster, has_tf_config, tf_config

from . import cluster, podspec, prerequisites, scripts
from .objects import Path, RenderedObject
from .options import RenderOptions

JOB_LABEL = "batch.kubernetes.io/job-name"
Host = Callable[[Task], str]


def plain(job: Job, options: RenderOptions) -> list[RenderedObject]:
    job = prerequisites.without_empty_roles(job)
    is_one = is_one_job(job)
    job, before = prerequisites.complete(job, options)
    job = replace(job, services=_service_mode(options.services or job.services))
    jobs = _one_job(job, options) if is_one else _job_per_role(job, options)
    return [*before, *jobs, *prerequisites.tensorboard(job)]


def hosts(job: Job, options: RenderOptions) -> dict[str, list[str]]:
    """The address of every task, for programs outside of the job."""
    job = prerequisites.without_empty_roles(job)
    job = replace(job, services=_service_mode(options.services or job.services))
    return (_numbered(job, options)[0] if is_one_job(job) else _roster(job, options, None)).hosts


def _numbered(job: Job, options: RenderOptions) -> tuple[Roster, dict[Task, int]]:
    """Addresses and numbers of the tasks in one Job for all roles, which numbers and names pods consecutively."""
    number = {task: i for i, task in enumerate(job.tasks())}
    return _roster(job, options, lambda task: f"{job.name}-{number[task]}"), number


def _service_mode(services: ServiceMode | None) -> ServiceMode:
    """Never `none`: tasks in a cluster need names, and only a local run works without Services."""
    return "per-replica" if services == "per-replica" else "shared"


def unsupported(job: Job) -> list[str]:
    """Messages about settings of the job that plain Jobs do not support."""
    lost = []
    if job.run_policy.scheduling is not None:
        lost.append("gang: Jobs start their pods one by one; Kueue can start them together")
    if job.run_policy.evaluator_grace:
        lost.append("evaluator.grace: the evaluator ends with the training")
    if job.dynamic_workers:
        lost.append("dynamic: every task lists all workers")
    if job.together:
        lost.append("together: a Job restarts only the task that failed or was evicted")
    if job.run_policy.stall:
        lost.append("stall: no operator watches the logs of a Job")
    if job.has_harmless_failures:
        lost.append("a failed worker fails the job; with v1alpha1 only the chief does")
    if any(role.restart == "Always" for role in job.roles):
        lost.append("restart: always: a Job restarts a task that fails, not one that succeeds")
    return lost


def is_one_job(job: Job) -> bool:
    """Whether one pod template can serve all roles. The command must be known, because task.sh, which determines
    the role, runs it. It must not refer to `$(TASK_INDEX)` or `$(TF_CONFIG)`: the kubelet would expand them before
    task.sh runs, the first to the wrong number and the second not at all."""
    first, *others = job.roles
    if not others or not podspec.command_of(first):
        return False
    container = tensorflow_container(first.template)
    used = env_names(container) | references(program_text(container))
    if used & {"TF_CONFIG", "TASK_INDEX", "JOB_NAME"}:
        return False
    same = (first.template, first.restart, first.port)
    return all((role.template, role.restart, role.port) == same for role in others)


def _one_job(job: Job, options: RenderOptions) -> list[RenderedObject]:
    roster, number = _numbered(job, options)
    role = job.roles[0]
    template = cluster.with_variables(role.template, cluster.shared_variables(role, roster))
    counts = [f"{roster.type_of(role.name)}:{role.replicas}" for role in job.roles]
    command = ["/bin/sh", f"{SCRIPTS_AT}/task.sh", *counts, "--", *podspec.command_of(role)]
    template = podspec.change_container(template, lambda c: podspec.with_command(c, command))
    template = _pod_template(
        job, role, cluster.with_waiting(template, roster.config_map), cluster.labels(job)
    )
    success = compress(number[task] for task in _deciding(job))
    comments: dict[Path, str] = {
        ("spec", "completions"): f"Pods by index: {_ranges(job)}.",
        ("spec", "successPolicy"): "When these pods have succeeded, Kubernetes ends all others.",
    }
    comment = "All roles have the same pod spec, so one Job runs them all."
    return [
        cluster.config_map(job, roster, {"wait.sh": scripts.read("wait.sh"), "task.sh": _task_script()}),
        *_services(job, {task: (job.name, i) for task, i in number.items()}),
        RenderedObject(_indexed_job(job, role, job.name, template, (job.size, success)), comment, comments),
    ]


def _task_script() -> str:
    """task.sh, which determines role and index, with the planner's form of TF_CONFIG."""
    text = tf_config("$cluster", "$JOB_NAME", "$TASK_INDEX").replace('"', '\\"')
    return scripts.read("task.sh").replace("@TF_CONFIG@", text)


def _ranges(job: Job) -> str:
    parts, start = [], 0
    for role in job.roles:
        end = start + role.replicas - 1
        parts.append(f"{role.name.lower()} {start}" + (f" to {end}" if end > start else ""))
        start = end + 1
    return ", ".join(parts)


def _deciding(job: Job) -> list[Task]:
    """Tasks whose success is the job's success."""
    role, indexes = leading_role(job), leaders(job)
    return [] if role is None else [task for task in role.tasks() if task.index in indexes]


def _job_per_role(job: Job, options: RenderOptions) -> list[RenderedObject]:
    roster = _roster(job, options, None) if has_tf_config(job) else None
    leader, others = leading_role(job), _jobs_to_delete(job)
    objects: list[RenderedObject] = []
    if roster is not None:
        files = ["wait.sh", *(["last.sh", "end.py"] if others else [])]
        texts = {name: scripts.read(name) for name in files}
        objects += [cluster.config_map(job, roster, texts), *_services(job, _pods(job))]
    if leader is not None and others:
        _require_command(leader)
        objects += _last_step_permissions(job, leader, others)
    return [*objects, *(_role_job(job, role, roster, others if role == leader else []) for role in job.roles)]


def _jobs_to_delete(job: Job) -> list[str]:
    """Jobs that would continue after the leader has ended, as parameter servers and evaluators always do."""
    leader = leading_role(job)
    is_endless = any(role.name in (PS, EVALUATOR) for role in job.roles) or job.success != "AllWorkers"
    if leader is None or not is_endless:
        return []
    return [_job_name(job, role) for role in job.roles if role.name != leader.name]


def _require_command(role: Role) -> None:
    if not podspec.command_of(role):
        text = "has no command, but a step must run after it: plain parameter servers never end by themselves"
        fix = "set `run`, or render with --as tfjob for a cluster with an operator"
        raise Invalid([Problem((role.name.lower(), "run"), text, fix)])


def _role_job(job: Job, role: Role, roster: Roster | None, others: list[str]) -> RenderedObject:
    template = role.template
    if others:
        template = _with_last_step(template, job, role, others)
    if roster is not None:
        template = cluster.with_variables(template, cluster.variables(role, roster))
        template = cluster.with_waiting(template, roster.config_map)
    labels = {**cluster.labels(job), REPLICA_TYPE: role.name.lower()}
    template = _pod_template(job, role, template, labels)
    deciding = [task.index for task in _deciding(job) if task.role == role.name]
    success = compress(deciding) if len(deciding) < role.replicas else ""  # a Job waits for all by default
    manifest = _indexed_job(job, role, _job_name(job, role), template, (role.replicas, success))
    return RenderedObject(manifest, f"The role `{role.name.lower()}`: {role.replicas} pods, numbered from 0.")


def _job_name(job: Job, role: Role) -> str:
    return f"{job.name}-{role.name.lower()}"


def _pods(job: Job) -> dict[Task, tuple[str, int]]:
    """Task -> the Job of its pod, and its index there."""
    return {task: (f"{job.name}-{task.role.lower()}", task.index) for task in job.tasks()}


def _services(job: Job, pods: dict[Task, tuple[str, int]]) -> list[RenderedObject]:
    if job.services != "per-replica":
        return [cluster.shared_service(job)]
    roles = {role.name: role for role in job.roles}
    return [
        cluster.task_service(
            job, roles[task.role], task.index, {JOB_LABEL: name, cluster.INDEX_LABEL: str(index)}
        )
        for task, (name, index) in pods.items()
    ]


def _roster(job: Job, options: RenderOptions, host: Host | None) -> Roster:
    """The addresses of the tasks. Indexed Jobs name their pods JOB-INDEX: with a Job per role this is the
    planner's own name; with one Job for all roles, `host` gives it."""
    setup = Setup(services=job.services or "shared", domain=options.domain)
    if host is None or job.services == "per-replica":
        hosts = {role.name: addresses(job, role, setup) for role in job.roles}
    else:
        domain = f".{options.domain}" if options.domain else ""
        end = f".{job.name}.{job.namespace}.svc{domain}"
        hosts = {role.name: [f"{host(t)}{end}:{role.port}" for t in role.tasks()] for role in job.roles}
    return Roster(hosts=hosts, dialect=job.dialect, config_map=cluster.config_map_name(job))


# --- one Indexed Job


def _indexed_job(owner: Job, role: Role, name: str, template: Manifest, counts: tuple[int, str]) -> Manifest:
    """`counts` has the number of pods, and the indexes whose success is the Job's (empty: all)."""
    size, succeeded = counts
    policy = owner.run_policy
    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": size,
        "parallelism": size,
        **_limits(owner, role),
        **({"successPolicy": {"rules": [{"succeededIndexes": succeeded}]}} if succeeded else {}),
        **({"activeDeadlineSeconds": policy.deadline} if policy.deadline is not None else {}),
        **({"ttlSecondsAfterFinished": policy.ttl} if policy.ttl is not None else {}),
        **({"suspend": True} if policy.suspend else {}),
        "template": template,
    }
    labels = {**owner.labels, **cluster.labels(owner)}
    metadata = {"name": name, "namespace": owner.namespace, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _limits(owner: Job, role: Role) -> Manifest:
    retries = owner.run_policy.backoff_limit
    if role.restart == "Never" or (retries == 0 and role.restart != "ExitCode"):
        return {"backoffLimit": 0, "podFailurePolicy": {"rules": [DISRUPTED]}}
    limit = {"backoffLimit": UNLIMITED if retries is None else retries}
    if role.restart != "ExitCode":
        return limit
    return {**limit, "podFailurePolicy": {"rules": [DISRUPTED, PERMANENT]}}


def _pod_template(owner: Job, role: Role, template: Manifest, labels: dict[str, str]) -> Manifest:
    """The pod template with what a Job needs: restarts in place or none, and a DNS name under the Service."""
    template = podspec.change_container(template, lambda c: with_failure_message(with_port(c, role.port)))
    metadata = template.get("metadata") or {}
    in_place = role.restart in ("OnFailure", "Always") and owner.run_policy.backoff_limit != 0
    restart = "OnFailure" if in_place else "Never"
    spec = {**template["spec"], "restartPolicy": restart}
    if has_tf_config(owner):
        spec["subdomain"] = owner.name
    return {"metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}, "spec": spec}


def _with_last_step(template: Manifest, job: Job, role: Role, others: list[str]) -> Manifest:
    """Adds the last step after the training, with a ServiceAccount that has permissions for it only."""
    entry = {
        "name": LAST_STEP_VARIABLE,
        "value": json.dumps(_instructions(job, role, others), separators=(",", ":")),
    }
    command = ["/bin/sh", f"{SCRIPTS_AT}/last.sh", *podspec.command_of(role)]
    template = podspec.change_container(
        template, lambda c: podspec.append(podspec.with_command(c, command), "env", [entry])
    )
    account = {} if template["spec"].get("serviceAccountName") else {"serviceAccountName": _account_name(job)}
    return {**template, "spec": {**template["spec"], **account}}


def _instructions(job: Job, role: Role, others: list[str]) -> Manifest:
    """Instructions for end.py, which has no rules of its own."""
    deciding = leaders(job)
    waits = {"job": f"{job.name}-{role.name.lower()}", "others": len(deciding) - 1}
    return {
        "namespace": job.namespace,
        "jobs": others,
        "index": min(deciding),
        "permanent": compress(exit_codes.permanent(role.restart)),
        "all": job.run_policy.clean == "All",
        **({"wait": waits} if len(deciding) > 1 else {}),
    }


def _account_name(job: Job) -> str:
    return f"{job.name}-chief"


def _last_step_permissions(job: Job, role: Role, others: list[str]) -> list[RenderedObject]:
    """Permissions to get and delete the Jobs of this job, and nothing else."""
    own = (role.template["spec"]).get("serviceAccountName")
    name = _account_name(job)
    metadata = {"name": name, "namespace": job.namespace, "labels": cluster.labels(job)}
    watched = [f"{job.name}-{role.name.lower()}"] if len(leaders(job)) > 1 else []
    jobs = {"apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": [*watched, *others]}
    rules = [{**jobs, "verbs": ["get", "delete"]}]
    api = "rbac.authorization.k8s.io"
    bound = {"kind": "ServiceAccount", "name": own or name, "namespace": job.namespace}
    account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    allowed: Manifest = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    binding: Manifest = {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
        "subjects": [bound],
    }
    why = "When the training has ended, its leader deletes the Jobs that would run forever."
    return [
        *([] if own else [RenderedObject(account, why)]),
        RenderedObject(allowed, why),
        RenderedObject(binding, why),
    ]
