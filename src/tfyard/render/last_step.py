"""How a job with a Job per role ends: its leader deletes the Jobs that would run forever."""

import json

from tfyard.model import Job, Manifest, Role
from tfyard.planner import exit_codes
from tfyard.planner.indexes import compress
from tfyard.planner.leaders import leaders

from . import cluster, podspec
from .objects import RenderedObject

VARIABLE = "TFYARD_END"


def with_last_step(template: Manifest, job: Job, role: Role, others: list[str]) -> Manifest:
    """The training, then the last step, with a ServiceAccount that may do only that."""
    entry = {"name": VARIABLE, "value": json.dumps(_instructions(job, role, others), separators=(",", ":"))}
    command = ["/bin/sh", f"{cluster.SCRIPTS_AT}/last.sh", *podspec.command_of(role)]
    template = podspec.change_container(
        template, lambda c: podspec.append(podspec.with_command(c, command), "env", [entry])
    )
    account = {} if template["spec"].get("serviceAccountName") else {"serviceAccountName": account_name(job)}
    return {**template, "spec": {**template["spec"], **account}}


def _instructions(job: Job, role: Role, others: list[str]) -> Manifest:
    """For end.py, which knows no rules of its own."""
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


def account_name(job: Job) -> str:
    return f"{job.name}-chief"


def permissions(job: Job, role: Role, others: list[str]) -> list[RenderedObject]:
    """May get and delete the Jobs of this job, and nothing else."""
    own = (role.template["spec"]).get("serviceAccountName")
    name = account_name(job)
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
