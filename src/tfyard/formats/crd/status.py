"""The status in the CRD: whatever we remember must be listed, or the server forgets it without a word."""

from tfyard.model import Manifest, Status

from . import schema
from .schema import OPEN, Schema

_TEXTS = {
    "phase": "How the job goes: Created, Blocked, Running, Restarting, Suspended, Succeeded or Failed.",
    "conditions": "What became of the job, each with reason and time.",
    "replicaStatuses": "How many tasks of each role run, succeeded and failed.",
    "restarts": "Restarts that count against the limit, of all roles.",
    "tasks": "What the operator must remember of tasks whose pods are gone.",
    "cluster": "Decided once and kept: how the job's tasks find each other.",
    "failure": "Why the job failed.",
    "startTime": "When the job was first seen to.",
    "completionTime": "When the job ended.",
    "observedGeneration": "The spec that this status speaks of.",
}
_PARTS = {
    "conditions": {
        "type": "Created, Running, Restarting, Suspended, Succeeded, Failed, or Blocked by something.",
        "status": "Whether it holds.",
        "reason": "Why, in one word.",
        "message": "Why, in a sentence.",
        "lastUpdateTime": "When this was last written.",
        "lastTransitionTime": "When it began to hold, or no longer to.",
    },
    "replicaStatuses": {
        "active": "Tasks that run.",
        "succeeded": "Tasks that have finished.",
        "failed": "Tasks that have failed and are not run again.",
        "restarts": "Restarts that count against the limit.",
        "ready": "Tasks that are ready or have finished, of all: 1/2.",
        "selector": "The labels of its pods, for autoscalers.",
    },
    "tasks": {
        "attempts": "Index of a task: how often its pod was given up.",
        "finished": "Indexes of tasks that need not run again: 0-2,7.",
        "retries": "Restarts that count against the limit and whose pods are gone.",
    },
    "cluster": {
        "services": "shared: one Service for all tasks; per-replica: one for each.",
        "domain": "The cluster's domain at the end of each address, if it is wanted there.",
        "dialect": "How TF_CONFIG is written.",
        "gang": "Who holds the pods until all of them fit.",
        "queued": "How many pods Kueue was told to wait for.",
    },
    "failure": {
        "cause": "TaskFailed, BackoffLimitExceeded, DeadlineExceeded or InvalidSpec.",
        "task": "The task that failed, such as worker-3.",
        "exitCode": "The exit code of its program.",
        "message": "Why, in a sentence.",
    },
}
_UPSTREAM: dict[str, Schema] = {
    "lastReconcileTime": {
        "description": "When upstream's operator last looked; this one does not write it.",
        "type": "string",
        "format": "date-time",
    }
}
_V1ALPHA1: dict[str, Schema] = {"replicaStatuses": schema.KEEP_UNKNOWN}
"""It was a list there. Such objects exist, and nobody could change them if a mapping were asked for."""
_ONE_OWNER: Schema = {"x-kubernetes-map-type": "atomic"}
"""One writer, so the server need not list in managedFields who owns which field of the status. That list is read
and written with every change of the job; it would be a fifth of a stored job."""


def described() -> Schema:
    """Also what others wrote stays: upstream's labelSelector, v1alpha1's state, v1alpha2's tfReplicaStatuses."""
    found = _tolerant(schema.of(Status))
    properties = {name: _told(name, part) for name, part in found["properties"].items()}
    properties["restarts"]["default"] = 0  # we store no zeros, and a table shows one
    text = "How the job goes; written by the operator."
    return {**found, **_ONE_OWNER, "description": text, "properties": {**properties, **_UPSTREAM}}


def _told(name: str, part: Schema) -> Schema:
    for field, text in _PARTS.get(name, {}).items():
        each = ("*",) if "items" in part or "additionalProperties" in part else ()
        part = schema.within(part, (*each, field), {"description": text})
    return {"description": _TEXTS[name], **part}


def for_v1alpha1() -> Schema:
    found = described()
    return {**found, "properties": {**found["properties"], **_V1ALPHA1}}


def _tolerant(part: Schema) -> Schema:
    """Old operators wrote fields of their own. Null needs no care: the server drops it."""
    if "properties" in part:
        return {**part, **OPEN, "properties": {name: _tolerant(p) for name, p in part["properties"].items()}}
    below: Schema = {
        name: _tolerant(part[name]) for name in ("additionalProperties", "items") if name in part
    }
    return {**part, **below}


def missing_memory(crd: Manifest) -> list[str]:
    """What a CRD, as a server hands it out, would drop of a status that we write.

    Every version counts: whoever changes a job through one that drops fields drops them for all.
    """
    if crd["spec"].get("preserveUnknownFields"):
        return []
    wanted = schema.of(Status)
    missing: dict[str, None] = {}
    for version in crd["spec"]["versions"]:
        if version.get("served") or version.get("storage"):
            missing |= dict.fromkeys(_missing_in(version, wanted))
    return list(missing)


def _missing_in(version: Manifest, wanted: Schema) -> list[str]:
    if (version.get("subresources") or {}).get("status") is None:
        return ["subresources.status"]
    root = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    if "status" not in root.get("properties", {}):
        return [] if _keeps(root) else ["status"]
    return _dropped(wanted, root["properties"]["status"], "status")


def _dropped(wanted: Schema, served: Schema, path: str) -> list[str]:
    """Listed fields are pruned by their own schema even where unknown ones are kept."""
    found: list[str] = []
    if "additionalProperties" in wanted:
        found += _dropped_value(wanted, served, path)
    elif "items" in wanted and "items" in served:
        found += _dropped(wanted["items"], served["items"], f"{path}[]")
    for name, part in wanted.get("properties", {}).items():
        if name in served.get("properties", {}):
            found += _dropped(part, served["properties"][name], f"{path}.{name}")
        elif not _keeps(served):
            found.append(f"{path}.{name}")
    return found


def _dropped_value(wanted: Schema, served: Schema, path: str) -> list[str]:
    values = served.get("additionalProperties")
    if isinstance(values, dict):
        return _dropped(wanted["additionalProperties"], values, f"{path}.*")
    return [] if values or _keeps(served) else [f"{path}.*"]


def _keeps(served: Schema) -> bool:
    return bool(served.get("x-kubernetes-preserve-unknown-fields"))
