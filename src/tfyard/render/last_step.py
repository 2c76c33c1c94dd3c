"""The last step of a job whose roles are Jobs of their own: the chief removes what would run for ever."""

import json

from tfyard.model import CHIEF, MASTER, WORKER, Job, Manifest, Role

from . import cluster, podspec
from .manifests import Piece

ACCOUNT_VARIABLE = "TFYARD_END"


def leader(job: Job, roles: list[Role]) -> Role | None:
    """The role that has the task which ends the job."""
    if job.chief is not None:
        return next((role for role in roles if job.chief.role == role.name), None)
    return next((role for role in roles if role.name in (CHIEF, MASTER, WORKER)), None)


def waits_for_workers(job: Job, role: Role) -> bool:
    return job.success == "AllWorkers" and role.name == WORKER and job.chief is None


def with_last_step(template: Manifest, job: Job, role: Role, others: list[str]) -> Manifest:
    """The training, then the last step, under an account that may do just that."""
    told: Manifest = {
        "namespace": job.namespace,
        "jobs": others,
        "index": job.chief.index if job.chief is not None else 0,
        "restart": role.restart,
        "all": job.run_policy.clean == "All",
    }
    if waits_for_workers(job, role) and role.replicas > 1:
        told["wait"] = {"job": f"{job.name}-{role.name.lower()}", "others": role.replicas - 1}
    text = json.dumps(told, separators=(",", ":"))
    command = ["/bin/sh", f"{cluster.SCRIPTS_AT}/last.sh", *podspec.command_of(role)]
    container = podspec.change_container(template, lambda c: _wrapped(c, command, text))
    account = {} if template["spec"].get("serviceAccountName") else {"serviceAccountName": account_name(job)}
    return {**container, "spec": {**container["spec"], **account}}


def _wrapped(container: Manifest, command: list[str], told: str) -> Manifest:
    kept = {key: value for key, value in container.items() if key != "args"}
    env = [{"name": ACCOUNT_VARIABLE, "value": told}]
    return podspec.extended({**kept, "command": command}, "env", env)


def account_name(job: Job) -> str:
    return f"{job.name}-chief"


def permissions(job: Job, role: Role, others: list[str]) -> list[Piece]:
    """May look at and remove the Jobs of this job, and nothing else."""
    own = (role.template["spec"]).get("serviceAccountName")
    name = account_name(job)
    metadata = {"name": name, "namespace": job.namespace, "labels": cluster.labels(job)}
    watched = [f"{job.name}-{role.name.lower()}"] if waits_for_workers(job, role) else []
    rules = [
        {
            "apiGroups": ["batch"],
            "resources": ["jobs"],
            "resourceNames": [*watched, *others],
            "verbs": ["get", "delete"],
        }
    ]
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
    why = "The last step of the task that ends the job removes what would run for ever; no operator does."
    return [*([] if own else [Piece(account, why)]), Piece(allowed, why), Piece(binding, why)]
