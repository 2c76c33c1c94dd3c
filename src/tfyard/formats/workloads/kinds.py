"""The kinds of workloads that can be converted: their number of pods, and what happens when a pod ends."""

from msgspec import Struct

from tfyard.formats import durations
from tfyard.formats.declarations.reading import Notes
from tfyard.formats.tfjob.fields import MAX_REPLICAS
from tfyard.model import TENSORFLOW_CONTAINER, Manifest, RestartPolicy, exit_codes

JOB, STATEFUL_SET = "Job", "StatefulSet"
_OLD = ("apps/v1beta1", "apps/v1beta2", "extensions/v1beta1")
_VERSIONS = {
    "ReplicationController": ("v1",),
    "ReplicaSet": ("apps/v1", *_OLD),
    "Deployment": ("apps/v1", *_OLD),
    STATEFUL_SET: ("apps/v1", *_OLD),
    JOB: ("batch/v1", "batch/v2alpha1", "extensions/v1beta1"),
}
"""Kind -> its API versions. Other groups have kinds with these names, too: Volcano has a Job."""
UNREADABLE = {
    "CronJob": ("starts Jobs by the clock, and a job has no schedule", "write its jobTemplate as a Job"),
    "DaemonSet": ("has a pod on every node, and a job has a number of tasks", "write it as a StatefulSet"),
    "Pod": ("is not read by itself", "write it as the template of a Job"),
}
"""Kind that cannot be converted -> the reason and the fix."""
BACKOFF_LIMIT = 6
"""Kubernetes' default of a Job's backoffLimit."""
UNLIMITED = 2**31 - 1
"""The largest backoffLimit, for a job without a limit: Kubernetes' default fails a Job after six restarts."""
LED = {"rules": [{"succeededIndexes": "0"}]}
"""The successPolicy of a Job that has succeeded when its first pod has."""
DISRUPTED: Manifest = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""Rule of a podFailurePolicy: a pod that is taken away is not a failure, as in every job of tfyard."""
PERMANENT: Manifest = {
    "action": "FailJob",
    "onExitCodes": {
        "containerName": TENSORFLOW_CONTAINER,
        "operator": "In",
        "values": exit_codes.permanent("ExitCode"),
    },
}
"""Rule of a podFailurePolicy that is the restart policy ExitCode."""
_FIELDS = {
    *("template", "replicas", "completions", "parallelism", "completionMode", "suspend"),
    *("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "volumeClaimTemplates"),
    # The following are about selecting, replacing and naming pods, which tfyard does by itself.
    *("selector", "manualSelector", "minReadySeconds", "strategy", "updateStrategy", "rollbackTo", "paused"),
    *("revisionHistoryLimit", "progressDeadlineSeconds", "podManagementPolicy", "podReplacementPolicy"),
    *("serviceName", "ordinals", "persistentVolumeClaimRetentionPolicy"),
}


class Policy(Struct, frozen=True, kw_only=True):
    """What happens when a pod ends, and when the workload ends. Durations are in seconds."""

    restart: RestartPolicy = "OnFailure"
    retries: int | None = None
    deadline: int | None = None
    ttl: int | None = None
    suspend: bool = False
    is_led: bool = False
    """The first task decides about success, not all of them."""


def is_workload(data: object) -> bool:
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        return False
    version = data.get("apiVersion")
    return data["kind"] in _VERSIONS and (version is None or version in _VERSIONS[data["kind"]])


def is_unreadable(data: object) -> bool:
    kind = data.get("kind") if isinstance(data, dict) else None
    return isinstance(kind, str) and kind in UNREADABLE


def is_known(data: object) -> bool:
    """Whether this is a workload that can be converted, or one with a known reason why it cannot."""
    return is_workload(data) or is_unreadable(data)


def size(kind: str, spec: Manifest, notes: Notes) -> int:
    """Number of the workload's pods, each of which must be a different task."""
    if kind == JOB:
        return _completions(spec, notes)
    replicas = _number(spec, "replicas", notes, least=1, most=MAX_REPLICAS)
    if replicas in (None, 1) or kind == STATEFUL_SET:
        return replicas or 1
    text = "must be 1: equal pods would all be the same task"
    notes.error(
        ("spec", "replicas"), text, "set it to 1, or use a StatefulSet, whose pods have numbers", replicas
    )
    return 1


def _completions(spec: Manifest, notes: Notes) -> int:
    counts = {
        key: _number(spec, key, notes, least=1, most=MAX_REPLICAS) for key in ("completions", "parallelism")
    }
    if spec.get("completionMode") != "Indexed":
        for key, count in counts.items():
            if count not in (None, 1):
                text = "must be 1: without an index, equal pods would all be the same task"
                notes.error(("spec", key), text, "set completionMode: Indexed, or set it to 1", count)
        return 1
    completions, parallelism = counts["completions"] or 1, counts["parallelism"] or 1
    if parallelism < completions:
        text = f"must be {completions}, as completions: the tasks of a job run at the same time"
        notes.error(("spec", "parallelism"), text, f"parallelism: {completions}", spec.get("parallelism"))
    return completions


def policy(kind: str, spec: Manifest, notes: Notes) -> Policy:
    if kind != JOB:
        return Policy()
    retries = _number(spec, "backoffLimit", notes, most=UNLIMITED)
    retries = BACKOFF_LIMIT if retries is None else retries
    return Policy(
        restart=_restart(spec, retries),
        retries=retries if retries <= MAX_REPLICAS else None,
        is_led=spec.get("successPolicy") == LED,
        deadline=_number(spec, "activeDeadlineSeconds", notes, least=1, most=durations.LONGEST),
        ttl=_number(spec, "ttlSecondsAfterFinished", notes, most=durations.LONGEST),
        suspend=spec.get("suspend") is True,
    )


def left_out(spec: Manifest) -> list[str]:
    """Fields of the spec that have no meaning for a job or are unknown."""
    known = {"successPolicy"} if spec.get("successPolicy") == LED else set()
    rules = _rules(spec)
    known |= (
        {"podFailurePolicy"} if rules and all(rule in (DISRUPTED, PERMANENT) for rule in rules) else set()
    )
    return sorted(set(spec) - _FIELDS - known)


def _restart(spec: Manifest, retries: int) -> RestartPolicy:
    if PERMANENT in _rules(spec):
        return "ExitCode"
    return "Never" if retries == 0 else "OnFailure"


def _rules(spec: Manifest) -> list[object]:
    policy = spec.get("podFailurePolicy")
    rules = policy.get("rules") if isinstance(policy, dict) else None
    return rules if isinstance(rules, list) else []


def check_claims(spec: Manifest, notes: Notes) -> None:
    if spec.get("volumeClaimTemplates"):
        text = "each pod has a volume of its own, but the tasks of a role share their volumes"
        fix = "mount a claim that all pods may write (ReadWriteMany), or an emptyDir"
        notes.error(("spec", "volumeClaimTemplates"), text, fix)


def _number(spec: Manifest, key: str, notes: Notes, *, least: int = 0, most: int) -> int | None:
    value = spec.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
        return value
    notes.error(("spec", key), f"must be a whole number from {least} to {most}", "", value)
    return None
