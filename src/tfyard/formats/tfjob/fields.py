"""The fields of a TFJob with a map of roles (`tfReplicaSpecs`), which all versions from v1alpha2 on share.

This is their one declaration: reading, `tfyard explain` and the CRD are made from it. What a version does with a
field that is absent is in versions.py, how a field becomes part of a Job in load.py and back in dump.py.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tfyard.formats import durations
from tfyard.model import ROLES, CleanPolicy, Dialect, RestartPolicy, Role, SuccessPolicy

MAX_REPLICAS = 100_000

Count = Annotated[int, Meta(ge=0, le=MAX_REPLICAS)]
Seconds = Annotated[int, Meta(ge=0, le=durations.LONGEST)]


class ReplicaSpec(Struct, frozen=True, rename="camel"):
    """One role of the job: how many tasks, and the pod of each."""

    replicas: Annotated[Count, Meta(description="How many tasks this role has; default 1.")] = 1
    restart_policy: Annotated[
        RestartPolicy,
        Meta(
            description="What happens when a task's program fails: Never fails the job, OnFailure and Always"
            " run it again, ExitCode runs it again after exit codes of 128 and more (death by a signal)."
        ),
    ] = "Never"
    template: Annotated[
        dict[str, Any],
        Meta(description="The pod of each task; its container `tensorflow` is the one that trains."),
    ] = {}


class SchedulingSpec(Struct, frozen=True, rename="camel"):
    """Gang scheduling: start all tasks or none."""

    min_available: Annotated[Count | None, Meta(description="How many pods must fit; default: all.")] = None
    queue: Annotated[str, Meta(description="The scheduler's queue; cannot be changed later.")] = ""
    min_resources: Annotated[
        dict[str, str | int | float] | None, Meta(description="Resources that must be free.")
    ] = None
    priority_class: Annotated[str, Meta(description="PriorityClass of the group.")] = ""
    schedule_timeout_seconds: Annotated[
        Seconds | None, Meta(description="How long the scheduler keeps trying.")
    ] = None


class RunPolicySpec(Struct, frozen=True, rename="camel"):
    """When the job ends, and what remains of it."""

    clean_pod_policy: Annotated[
        CleanPolicy | None,
        Meta(
            description="Which pods go when the job has finished: All, Running or None. Default None in v1."
        ),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Seconds | None, Meta(description="Delete the job this long after it finished; default: never.")
    ] = None
    active_deadline_seconds: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Fail the job when it has run this long."),
    ] = None
    backoff_limit: Annotated[
        Count | None, Meta(description="How many restarts of any kind are allowed; default: unlimited.")
    ] = None
    suspend: Annotated[
        bool, Meta(description="True: no pods; the job goes on when it is set to false again.")
    ] = False
    managed_by: Annotated[
        Literal["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"] | None,
        Meta(description="Who keeps this job; any other than the operator makes it keep its hands off."),
    ] = None
    scheduling_policy: Annotated[SchedulingSpec | None, Meta(description="Gang scheduling.")] = None


class TFJobSpec(RunPolicySpec, frozen=True, rename="camel"):
    """The job. Run-policy fields may stand here (as before v1) or under runPolicy (as since)."""

    tf_replica_specs: Annotated[
        dict[str, ReplicaSpec],
        Meta(description="The roles: Chief or Master, Worker, PS, Evaluator, in any letter case."),
    ] = {}
    run_policy: Annotated[
        RunPolicySpec | None, Meta(description="When the job ends, and what remains of it.")
    ] = None
    success_policy: Annotated[
        SuccessPolicy,
        Meta(description='Without a chief: "" ends the job with worker 0, AllWorkers with the last worker.'),
    ] = ""
    enable_dynamic_worker: Annotated[
        bool, Meta(description="Workers may come and go: each knows only itself and the parameter servers.")
    ] = False
    dialect: Annotated[
        Dialect | None,
        Meta(
            description="How TF_CONFIG is written: tf2 (default of v1), kubeflow (as its operator does) or tf1"
            " (default before v1: a master stays a master). The annotation tfyard.dev/dialect wins."
        ),
    ] = None


def canonical(name: str) -> str | None:
    """`WORKER` and `worker` are Worker: upstream folds the case, and old manifests rely on it."""
    return next((role for role in ROLES if role.lower() == name.lower()), None)


def in_order(roles: dict[str, Role]) -> tuple[Role, ...]:
    return tuple(roles[name] for name in ROLES if name in roles)
