"""The schema of the status: the API server silently drops every field that is not listed."""

from tfyard.model import ENDINGS_PER_JOB, LAST_WORDS, Manifest, Status

from . import schema
from .schema import OPEN, Schema

_TEXTS = {
    "phase": "Pending, Created, Waiting, Blocked, Running, Stalled, Restarting, Suspended, Succeeded or Failed.",
    "conditions": "Conditions of the job, each with a reason and times.",
    "replicaStatuses": "Number of tasks of each role that run, have succeeded and have failed.",
    "restarts": "Restarts of all roles that count against backoffLimit.",
    "tasks": "Facts about tasks that the operator needs after their pods are deleted.",
    "cluster": "How the tasks find each other; decided once and then kept.",
    "failure": "Why the job failed.",
    "endings": "How the last unsuccessful attempts ended, oldest first: 3 per task, 20 in all.",
    "disruption": "The last time that tasks were taken away: others may fail because of it, which costs no retry.",
    "startTime": "When the operator first reconciled the job.",
    "completionTime": "When the job ended.",
    "observedGeneration": "Generation of the spec that this status describes.",
}
_PARTS = {
    "conditions": {
        "type": "Created, Running, Restarting, Suspended, Succeeded, Failed, Waiting, Stalled or Blocked.",
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
        "ready": "Tasks that are ready or have finished, of all tasks, and at the end the others: 1/3, 2 stopped.",
        "selector": "Label selector of the pods, for autoscalers.",
    },
    "tasks": {
        "attempts": "Number of replaced pods by index of the task.",
        "finished": "Indexes of finished tasks, which are not run again: 0-2,7.",
        "retries": "Restarts that count against backoffLimit and whose pods are deleted.",
        "excused": "Restarts in place by index of the task that a node or a disruption caused: they do not count.",
        "backoff": "Tasks that fail repeatedly, by index, and when each is tried again.",
        "backoff.*.failures": "Number of attempts in a row that failed or were disrupted.",
        "backoff.*.until": "Time before which the next attempt does not start.",
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
        "attempt": "Number of the task's pod, counted from 1.",
        "restart": "Number of the restart in place within that pod; 0 is the program's first run.",
        "started": "When the program of the attempt started.",
        "finished": "When the program of the attempt ended.",
        "exitCode": "The exit code of its program.",
        "container": "The init container that failed before the program started.",
        "reason": "Why, in one word.",
        "message": "The program's last lines, or what ended it and why.",
        "peer": "Tasks that were taken away before, if the attempt ended because of that.",
    },
    "disruption": {
        "tasks": "The tasks that were taken away; of many, the first.",
        "since": "When the operator saw it.",
        "recovered": "When all tasks ran again.",
        "restarted": "Whether all tasks were started again because of it.",
        "restarts": "Restarts in place by task that counted before it.",
        "forgiven": "Tasks that were restarted in place after it, at no retry.",
    },
}
_UPSTREAM: dict[str, Schema] = {
    "lastReconcileTime": {
        "description": "When Kubeflow's operator last reconciled the job; tfyard does not write it.",
        "type": "string",
        "format": "date-time",
    }
}
_V1ALPHA1: dict[str, Schema] = {"replicaStatuses": schema.KEEP_UNKNOWN}
"""replicaStatuses is a list in v1alpha1. If the schema required a mapping, stored objects could not be changed."""
_ONE_OWNER: Schema = {"x-kubernetes-map-type": "atomic"}
"""The status has one writer, so managedFields need not list the owner of each of its fields. The server reads and
writes managedFields with every change of the job; the status would be a tenth of it."""
_UNSEEN = {"phase": "Pending"}
"""The status of a job until an operator has written one, as a pod is Pending from the start: the state is never
empty, and the operator need not write at once what most often is over in a moment."""


def described() -> Schema:
    """The schema of the status. It keeps other operators' fields, such as labelSelector and tfReplicaStatuses."""
    base = _tolerant(schema.of(Status))
    properties = {name: _described(name, part) for name, part in base["properties"].items()}
    properties["restarts"]["default"] = 0  # zeros are not stored, but the column of `kubectl get` shows them
    endings = schema.within(properties["endings"], ("*", "message"), {"maxLength": LAST_WORDS})
    properties["endings"] = {**endings, "maxItems": ENDINGS_PER_JOB}
    text = "State of the job; written by the operator."
    return {
        **base,
        **_ONE_OWNER,
        "default": _UNSEEN,
        "description": text,
        "properties": {**properties, **_UPSTREAM},
    }


def _described(name: str, part: Schema) -> Schema:
    for field, text in _PARTS.get(name, {}).items():
        each = ("*",) if "items" in part or "additionalProperties" in part else ()
        part = schema.within(part, (*each, *field.split(".")), {"description": text})
    return {"description": _TEXTS[name], **part}


def for_older() -> Schema:
    """The schema without texts: v1 has them, and copies in each version would be a tenth of the CRD."""
    return _without_texts(described())


def for_v1alpha1() -> Schema:
    base = for_older()
    return {**base, "properties": {**base["properties"], **_V1ALPHA1}}


def _without_texts(part: Schema) -> Schema:
    kept = {name: value for name, value in part.items() if name != "description" or isinstance(value, dict)}
    return {name: _without_texts(value) if isinstance(value, dict) else value for name, value in kept.items()}


def _tolerant(part: Schema) -> Schema:
    """The schema with unknown fields kept, which old operators wrote. The API server drops null by itself."""
    if "properties" in part:
        return {**part, **OPEN, "properties": {name: _tolerant(p) for name, p in part["properties"].items()}}
    below: Schema = {
        name: _tolerant(part[name]) for name in ("additionalProperties", "items") if name in part
    }
    return {**part, **below}


def missing_memory(crd: Manifest) -> list[str]:
    """Fields of tfyard's status that an installed CRD would drop.

    Every version counts, because an update through a version that drops fields drops them for all versions.
    """
    if crd["spec"].get("preserveUnknownFields"):
        return []
    needed = schema.of(Status)
    missing: dict[str, None] = {}
    for version in crd["spec"]["versions"]:
        if version.get("served") or version.get("storage"):
            missing |= dict.fromkeys(_missing_in(version, needed))
    return list(missing)


def _missing_in(version: Manifest, needed: Schema) -> list[str]:
    if (version.get("subresources") or {}).get("status") is None:
        return ["subresources.status"]
    root = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    if "status" not in root.get("properties", {}):
        return [] if _keeps(root) else ["status"]
    return _dropped(needed, root["properties"]["status"], "status")


def _dropped(needed: Schema, served: Schema, path: str) -> list[str]:
    """Fields that the server drops. It prunes declared fields by their schema even where it keeps unknown ones."""
    missing: list[str] = []
    if "additionalProperties" in needed:
        missing += _dropped_value(needed, served, path)
    elif "items" in needed and "items" in served:
        missing += _dropped(needed["items"], served["items"], f"{path}[]")
    for name, part in needed.get("properties", {}).items():
        if name in served.get("properties", {}):
            missing += _dropped(part, served["properties"][name], f"{path}.{name}")
        elif not _keeps(served):
            missing.append(f"{path}.{name}")
    return missing


def _dropped_value(needed: Schema, served: Schema, path: str) -> list[str]:
    values = served.get("additionalProperties")
    if isinstance(values, dict):
        return _dropped(needed["additionalProperties"], values, f"{path}.*")
    return [] if values or _keeps(served) else [f"{path}.*"]


def _keeps(served: Schema) -> bool:
    return bool(served.get("x-kubernetes-preserve-unknown-fields"))
