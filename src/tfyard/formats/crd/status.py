"""The schema of the status: every field that we write must be listed, or the API server drops it silently."""

from tfyard.model import ENDINGS_PER_JOB, LAST_WORDS, Manifest, Status

from . import schema
from .schema import OPEN, Schema

_TEXTS = {
    "phase": "State of the job: Created, Waiting, Blocked, Running, Restarting, Suspended, Succeeded or Failed.",
    "conditions": "Conditions of the job, each with a reason and times.",
    "replicaStatuses": "Number of tasks of each role that run, have succeeded and have failed.",
    "restarts": "Restarts of all roles that count against backoffLimit.",
    "tasks": "What the operator must remember of tasks whose pods are deleted.",
    "cluster": "How the tasks find each other; decided once and then kept.",
    "failure": "Why the job failed.",
    "endings": "How the last attempts that did not succeed ended, oldest first: 3 of each task, 20 in all.",
    "startTime": "When the operator first reconciled the job.",
    "completionTime": "When the job ended.",
    "observedGeneration": "Generation of the spec that this status describes.",
}
_PARTS = {
    "conditions": {
        "type": "Created, Running, Restarting, Suspended, Succeeded, Failed, Waiting or Blocked.",
        "status": "True or False.",
        "reason": "Why, in one word.",
        "message": "Why, in a sentence.",
        "lastUpdateTime": "When the condition was last updated.",
        "lastTransitionTime": "When the status of the condition last changed.",
    },
    "replicaStatuses": {
        "active": "Tasks that run.",
        "succeeded": "Tasks that have succeeded.",
        "failed": "Tasks that have failed and are not restarted.",
        "restarts": "Restarts that count against backoffLimit.",
        "ready": "Tasks that are ready or have finished, of all tasks: 1/2.",
        "selector": "Label selector of the pods, for autoscalers.",
    },
    "tasks": {
        "attempts": "Number of abandoned pods by index of the task.",
        "finished": "Indexes of tasks that have finished and need not run again: 0-2,7.",
        "retries": "Restarts that count against backoffLimit and whose pods are deleted.",
        "backoff": "Tasks that fail again and again, by index: how long each waits for its next attempt.",
        "backoff.*.failures": "Number of attempts in a row that failed or were taken away.",
        "backoff.*.until": "The next attempt starts no earlier.",
    },
    "cluster": {
        "services": "Services of the tasks: one for all (shared) or one for each (per-replica).",
        "domain": "Cluster domain at the end of each address, if any.",
        "dialect": "Form of TF_CONFIG.",
        "gang": "Gang scheduler that starts all pods at once.",
        "queued": "Number of pods in the pod group of Kueue.",
    },
    "failure": {
        "cause": "TaskFailed, BackoffLimitExceeded, DeadlineExceeded or InvalidSpec.",
        "task": "The task that failed, such as worker-3.",
        "exitCode": "The exit code of its program.",
        "message": "Why, in a sentence.",
    },
    "endings": {
        "task": "The task, such as worker-3.",
        "attempt": "Which pod of the task it was, counted from 1.",
        "restart": "Which restart in place of that pod's program it was; 0 is its first run.",
        "started": "When the program of the attempt started.",
        "finished": "When it ended.",
        "exitCode": "The exit code of its program.",
        "reason": "Why, in one word.",
        "message": "The last lines that the program wrote, or who ended it and why.",
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
"""A list in v1alpha1. Such objects exist, and could not be changed if the schema required a mapping."""
_ONE_OWNER: Schema = {"x-kubernetes-map-type": "atomic"}
"""One writer, so the server need not list in managedFields who owns which field of the status. That list is read
and written with every change of the job; the status would be a tenth of it."""


def described() -> Schema:
    """Fields of others are kept: upstream's labelSelector, v1alpha1's state, v1alpha2's tfReplicaStatuses."""
    found = _tolerant(schema.of(Status))
    properties = {name: _described(name, part) for name, part in found["properties"].items()}
    properties["restarts"]["default"] = 0  # we store no zeros, and a table shows one
    endings = schema.within(properties["endings"], ("*", "message"), {"maxLength": LAST_WORDS})
    properties["endings"] = {**endings, "maxItems": ENDINGS_PER_JOB}
    text = "State of the job; written by the operator."
    return {**found, **_ONE_OWNER, "description": text, "properties": {**properties, **_UPSTREAM}}


def _described(name: str, part: Schema) -> Schema:
    for field, text in _PARTS.get(name, {}).items():
        each = ("*",) if "items" in part or "additionalProperties" in part else ()
        part = schema.within(part, (*each, *field.split(".")), {"description": text})
    return {"description": _TEXTS[name], **part}


def for_v1alpha1() -> Schema:
    found = described()
    return {**found, "properties": {**found["properties"], **_V1ALPHA1}}


def _tolerant(part: Schema) -> Schema:
    """Keeps fields that old operators wrote. Null needs no care: the API server drops it."""
    if "properties" in part:
        return {**part, **OPEN, "properties": {name: _tolerant(p) for name, p in part["properties"].items()}}
    below: Schema = {
        name: _tolerant(part[name]) for name in ("additionalProperties", "items") if name in part
    }
    return {**part, **below}


def missing_memory(crd: Manifest) -> list[str]:
    """Fields of our status that a CRD, as the API server returns it, would drop.

    Every version counts: an update through a version that drops fields drops them for all.
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
