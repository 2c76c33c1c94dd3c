"""The last step of a job whose roles are Jobs of their own: the chief removes what would run for ever."""

import json

from tfyard.model import Job, Manifest, Role
from tfyard.planner import exit_codes
from tfyard.planner.indexes import compress
from tfyard.planner.leaders import leaders

from . import cluster, podspec
from .manifests import Piece

ACCOUNT_VARIABLE = "TFYARD_END"


def with_last_step(template: Manifest, job: Job, role: Role, others: list[str]) -> Manifest:
    """The training, then the last step, under an account that may do just that."""
    text = json.dumps(_orders(job, role, others), separators=(",", ":"))
    command = ["/bin/sh", f"{cluster.SCRIPTS_AT}/last.sh", *podspec.command_of(role)]
    container = podspec.change_container(template, lambda c: _wrapped(c, command, text))
    account = {} if template["spec"].get("serviceAccountName") else {"serviceAccountName": account_name(job)}
    return {**container, "spec": {**container["spec"], **account}}


def _orders(job: Job, role: Role, others: list[str]) -> Manifest:
    """What end.py is told."""
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
    watched = [f"{job.name}-{role.name.lower()}"] if len(leaders(job)) > 1 else []
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
