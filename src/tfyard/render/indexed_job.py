"""Indexed Jobs of Kubernetes: the pods of a role, or of all roles. With a Job per role, the leader ends the
others: it deletes the Jobs that would run forever."""

import json
from typing import Any

from tfyard.model import TENSORFLOW_CONTAINER, Job, Manifest, Role
from tfyard.planner import exit_codes
from tfyard.planner.indexes import compress
from tfyard.planner.leaders import leaders
from tfyard.planner.pods import with_failure_message, with_port
from tfyard.planner.tf_config import has_tf_config

from . import cluster, podspec
from .objects import RenderedObject

LAST_STEP = "TFYARD_END"
UNLIMITED = 2**31 - 1
"""The default of Kubernetes would fail the Job after six restarts."""


def indexed_job(owner: Job, role: Role, name: str, template: Manifest, counts: tuple[int, str]) -> Manifest:
    """`counts`: how many pods, and the indexes whose success is the Job's (empty: all)."""
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
        return {"backoffLimit": 0, "podFailurePolicy": {"rules": [_DISRUPTED]}}
    limit = {"backoffLimit": UNLIMITED if retries is None else retries}
    if role.restart != "ExitCode":
        return limit
    permanent = {
        "action": "FailJob",
        "onExitCodes": {
            "containerName": TENSORFLOW_CONTAINER,
            "operator": "In",
            "values": exit_codes.permanent(role.restart),
        },
    }
    return {**limit, "podFailurePolicy": {"rules": [_DISRUPTED, permanent]}}


_DISRUPTED: Manifest = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""The eviction of a pod is not a failure of its program, as with the operator."""


def pod_template(owner: Job, role: Role, template: Manifest, labels: dict[str, str]) -> Manifest:
    """The pod template as a Job needs it: restarts in place or not at all, and a name under the Service."""
    template = podspec.change_container(template, lambda c: with_failure_message(with_port(c, role.port)))
    metadata = template.get("metadata") or {}
    in_place = role.restart in ("OnFailure", "Always") and owner.run_policy.backoff_limit != 0
    restart = "OnFailure" if in_place else "Never"
    spec = {**template["spec"], "restartPolicy": restart}
    if has_tf_config(owner):
        spec["subdomain"] = owner.name
    return {"metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}, "spec": spec}


def with_last_step(template: Manifest, job: Job, role: Role, others: list[str]) -> Manifest:
    """The training, then the last step, with a ServiceAccount that may do only that."""
    entry = {"name": LAST_STEP, "value": json.dumps(_instructions(job, role, others), separators=(",", ":"))}
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


def last_step_permissions(job: Job, role: Role, others: list[str]) -> list[RenderedObject]:
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
