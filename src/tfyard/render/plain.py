"""`--as plain`: objects that any cluster runs without an operator.

Roles with one pod spec become **one** Indexed Job, whose success policy ends every pod, parameter servers
too, when the deciding task succeeds. Roles that differ become a Job each, and the deciding task's last step
removes the others. What Kubernetes' own Jobs cannot do is said by `shortfalls`.
"""

from collections.abc import Callable

from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.model import (
    CHIEF,
    EVALUATOR,
    MASTER,
    PS,
    WORKER,
    Job,
    Manifest,
    Problem,
    Role,
    ServiceMode,
    Task,
    tensorflow_container,
)
from tfyard.model.names import REPLICA_TYPE
from tfyard.planner.cluster import CLUSTER_VARIABLE, Roster, has_tf_config
from tfyard.planner.job_setup import Setup, addresses

from . import cluster, code, jobs, last_step, podspec, prerequisites
from .comments import Path
from .manifests import Piece
from .options import Setting

JOB_LABEL = "batch.kubernetes.io/job-name"
Host = Callable[[Task], str]


def plain(job: Job, setting: Setting) -> list[Piece]:
    job = replace(job, roles=tuple(role for role in job.roles if role.replicas))
    if not job.roles:
        raise Invalid([Problem((), "the job has no task: there is nothing to render", "give a role a count")])
    one = is_one_job(job)
    job, carried = code.ship(job, setting)
    job, before = prerequisites.before(job, setting)
    job = replace(job, services=_named(setting.services or job.services))
    made = _one_job(job, setting) if one else _job_per_role(job, setting)
    return [*before, *carried, *made, *prerequisites.tensorboard(job)]


def hosts(job: Job, setting: Setting) -> dict[str, list[str]]:
    """Everybody's address, for those who drive the cluster from outside of it."""
    job = replace(job, roles=tuple(role for role in job.roles if role.replicas))
    job = replace(job, services=_named(setting.services or job.services))
    return (_numbered(job, setting)[0] if is_one_job(job) else _roster(job, setting, None)).hosts


def _numbered(job: Job, setting: Setting) -> tuple[Roster, dict[Task, int]]:
    """One Job for all: tasks are numbered through, and named by their number."""
    number = {task: i for i, task in enumerate(job.tasks())}
    return _roster(job, setting, lambda task: f"{job.name}-{number[task]}"), number


def _named(services: ServiceMode | None) -> ServiceMode:
    """Tasks of a cluster need names, whatever a run on one machine can do without."""
    return "per-replica" if services == "per-replica" else "shared"


def shortfalls(job: Job) -> list[str]:
    """What the job asks for and plain objects cannot do."""
    found = []
    if job.run_policy.scheduling is not None:
        found.append("gang: Jobs start their pods one by one; a queue such as Kueue can hold them together")
    if job.run_policy.evaluator_grace:
        found.append("evaluator.grace: the evaluator ends with the training")
    if job.dynamic_workers:
        found.append("dynamic: every task lists all workers")
    if job.fails_with == "chief":
        found.append("a failed worker fails the job; v1alpha1 looked at its chief only")
    if any(role.restart == "Always" for role in job.roles):
        found.append("restart always: a Job runs a task again when it fails, not when it succeeds")
    return found


def is_one_job(job: Job) -> bool:
    """Whether one pod template can serve all roles. The command must be known, because a step before it
    finds out the role; `$(TASK_INDEX)` would be filled in before that step, with the wrong number, and
    `$(TF_CONFIG)` not at all."""
    first, *others = job.roles
    if not others or not podspec.command_of(first):
        return False
    words = podspec.words_of(first)
    own = podspec.own_env(tensorflow_container(first.template))
    if any(name in own or f"$({name})" in words for name in ("TF_CONFIG", "TASK_INDEX", "JOB_NAME")):
        return False
    same = (first.template, first.restart, first.port)
    return all((role.template, role.restart, role.port) == same for role in others)


def _one_job(job: Job, setting: Setting) -> list[Piece]:
    roster, number = _numbered(job, setting)
    role = job.roles[0]
    template = cluster.with_variables(role.template, _shared_variables(job, roster, podspec.words_of(role)))
    counts = [f"{roster.type_of(role.name)}:{role.replicas}" for role in job.roles]
    command = ["/bin/sh", f"{cluster.SCRIPTS_AT}/task.sh", *counts, "--", *podspec.command_of(role)]
    template = podspec.change_container(
        template, lambda c: {**{k: v for k, v in c.items() if k != "args"}, "command": command}
    )
    template = jobs.pod(cluster.with_waiting(template, job), job, role, cluster.labels(job))
    success = _succeeded(job, number)
    notes: dict[Path, str] = {
        ("spec", "completions"): f"Pods by number: {_ranges(job)}.",
        ("spec", "successPolicy"): "When this task has succeeded, all other pods are ended.",
    }
    why = "All roles share one pod spec, so one Job runs them all."
    return [
        cluster.config_map(job, roster, ["wait.sh", "task.sh"]),
        *_services(job, {task: (job.name, i) for task, i in number.items()}),
        Piece(jobs.job(job.name, job, role, template, (job.size, success)), why, notes),
    ]


def _shared_variables(job: Job, roster: Roster, words: str) -> list[Manifest]:
    own = "evaluator" in roster.config_data()
    return [
        cluster.index_variable(),
        *cluster.host_lists(job, words),
        cluster.from_config_map(job, CLUSTER_VARIABLE, "cluster"),
        *([cluster.from_config_map(job, cluster.EVALUATOR_VARIABLE, "evaluator")] if own else []),
    ]


def _ranges(job: Job) -> str:
    parts, start = [], 0
    for role in job.roles:
        end = start + role.replicas - 1
        parts.append(f"{role.name.lower()} {start}" + (f" to {end}" if end > start else ""))
        start = end + 1
    return ", ".join(parts)


def _succeeded(job: Job, number: dict[Task, int]) -> str:
    """The indexes whose success is the job's: the chief's, else worker 0's, or all workers'."""
    if job.chief is not None and job.chief in number:
        return str(number[job.chief])
    for name in (CHIEF, MASTER):
        if Task(name, 0) in number:
            return str(number[Task(name, 0)])
    workers = [i for task, i in number.items() if task.role == WORKER]
    if not workers:
        return ""
    if job.success == "AllWorkers" and len(workers) > 1:
        return f"{workers[0]}-{workers[-1]}"
    return str(workers[0])


def _job_per_role(job: Job, setting: Setting) -> list[Piece]:
    roster = _roster(job, setting, None)
    several = has_tf_config(job)
    last = last_step.leader(job, list(job.roles))
    others = [_job_name(job, role) for role in job.roles if last is not None and role.name != last.name]
    ends = last is not None and bool(others) and _has_endless(job)
    pieces: list[Piece] = []
    if several:
        files = ["wait.sh", *(["last.sh", "end.py"] if ends else [])]
        pieces += [cluster.config_map(job, roster, files), *_services(job, _places(job))]
    if ends and last is not None:
        _require_command(last)
        pieces += last_step.permissions(job, last, others)
    for role in job.roles:
        is_last = ends and last is not None and role.name == last.name
        pieces.append(_role_job(job, role, roster if several else None, others if is_last else []))
    return pieces


def _has_endless(job: Job) -> bool:
    """Whether some role would go on after the deciding task: parameter servers and evaluators always do."""
    return any(role.name in (PS, EVALUATOR) for role in job.roles) or job.success != "AllWorkers"


def _require_command(role: Role) -> None:
    if not podspec.command_of(role):
        text = (
            "has no command, and a last step must follow it: plain parameter servers never end by themselves"
        )
        fix = "say what to run, or render with --as tfjob for a cluster with an operator"
        raise Invalid([Problem((role.name.lower(), "run"), text, fix)])


def _role_job(job: Job, role: Role, roster: Roster | None, others: list[str]) -> Piece:
    template = role.template
    if others:
        template = last_step.with_last_step(template, job, role, others)
    if roster is not None:
        ours = cluster.variables(job, role, roster, cluster.index_variable())
        template = cluster.with_waiting(cluster.with_variables(template, ours), job)
    template = jobs.pod(template, job, role, {**cluster.labels(job), REPLICA_TYPE: role.name.lower()})
    alone = {Task(role.name, i): i for i in range(role.replicas)}
    success = _succeeded(job, alone) if role.replicas > 1 and _leads(job, role) else ""
    if success and job.success == "AllWorkers":
        success = ""  # all completions are what a Job waits for anyway
    manifest = jobs.job(_job_name(job, role), job, role, template, (role.replicas, success))
    return Piece(manifest, f"The role `{role.name.lower()}`: {role.replicas} pods, numbered from 0.")


def _leads(job: Job, role: Role) -> bool:
    found = last_step.leader(job, list(job.roles))
    return found is not None and found.name == role.name


def _job_name(job: Job, role: Role) -> str:
    return f"{job.name}-{role.name.lower()}"


def _places(job: Job) -> dict[Task, tuple[str, int]]:
    return {task: (f"{job.name}-{task.role.lower()}", task.index) for task in job.tasks()}


def _services(job: Job, places: dict[Task, tuple[str, int]]) -> list[Piece]:
    """Pods get their names from the shared Service in any case: that is how Indexed Jobs name them."""
    if job.services != "per-replica":
        return [cluster.shared_service(job)]
    roles = {role.name: role for role in job.roles}
    return [
        cluster.task_service(
            job, roles[task.role], task.index, {JOB_LABEL: name, cluster.INDEX_LABEL: str(index)}
        )
        for task, (name, index) in places.items()
    ]


def _roster(job: Job, setting: Setting, host: Host | None) -> Roster:
    """Everybody's address. Indexed Jobs name their pods JOB-INDEX, which for a Job per role is the planner's
    own name; in one Job for all it is a number."""
    setup = Setup(services=job.services or "shared", domain=setting.domain)
    if host is None or job.services == "per-replica":
        hosts = {role.name: addresses(job, role, setup) for role in job.roles}
    else:
        domain = f".{setting.domain}" if setting.domain else ""
        end = f".{job.name}.{job.namespace}.svc{domain}"
        hosts = {role.name: [f"{host(t)}{end}:{role.port}" for t in role.tasks()] for role in job.roles}
    return Roster(hosts=hosts, dialect=job.dialect)
