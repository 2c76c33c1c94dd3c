"""One Indexed Job of Kubernetes: the pods of a role, or of all roles."""

from typing import Any

from tfyard.model import TENSORFLOW_CONTAINER, Job, Manifest, Role
from tfyard.planner import exit_codes
from tfyard.planner.pods import with_failure_message, with_port
from tfyard.planner.tf_config import has_tf_config

from . import cluster, podspec

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
