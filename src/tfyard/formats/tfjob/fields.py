"""The fields of a TFJob with a map of roles (`tfReplicaSpecs`), which all versions from v1alpha2 on share.

Reading, `tfyard explain` and the CRD are derived from this declaration. versions.py has the defaults of each
version, conversion.py converts the fields to a Job and back.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tfyard.formats import durations
from tfyard.model import ROLES, CleanPolicy, Dialect, RestartPolicy, Role, SuccessPolicy
from tfyard.model.exit_codes import RETRYABLE

MAX_REPLICAS = 100_000

Count = Annotated[int, Meta(ge=0, le=MAX_REPLICAS)]
Seconds = Annotated[int, Meta(ge=0, le=durations.LONGEST)]


class ReplicaSpec(Struct, frozen=True, rename="camel"):
    """One role of the job: the number of its tasks, and their pod template."""

    replicas: Annotated[Count, Meta(description="Number of tasks of this role; default 1.")] = 1
    restart_policy: Annotated[
        RestartPolicy,
        Meta(
            description="Reaction to a failure of a task's program: Never fails the job, OnFailure and Always"
            f" restart the task, ExitCode restarts it after {RETRYABLE} (killed by a signal)."
        ),
    ] = "Never"
    template: Annotated[
        dict[str, Any],
        Meta(description="Pod template of each task; the container named `tensorflow` trains."),
    ] = {}


class SchedulingSpec(Struct, frozen=True, rename="camel"):
    """Gang scheduling: all tasks start, or none."""

    min_available: Annotated[
        Count | None, Meta(description="Number of pods that must fit at the same time; default: all.")
    ] = None
    queue: Annotated[str, Meta(description="Queue of the scheduler; immutable.")] = ""
    min_resources: Annotated[
        dict[str, str | int | float] | None, Meta(description="Resources that must be free.")
    ] = None
    priority_class: Annotated[str, Meta(description="PriorityClass of the pod group.")] = ""
    schedule_timeout_seconds: Annotated[
        Seconds | None, Meta(description="How long the scheduler tries to start the group.")
    ] = None


class RunPolicySpec(Struct, frozen=True, rename="camel"):
    """When the job ends, and which of its pods are kept."""

    clean_pod_policy: Annotated[
        CleanPolicy | None,
        Meta(description="Pods to delete when the job has finished: All, Running or None (default in v1)."),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Seconds | None,
        Meta(description="The job is deleted this long after it has finished; default: never."),
    ] = None
    active_deadline_seconds: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The job fails if it runs longer than this."),
    ] = None
    backoff_limit: Annotated[
        Count | None, Meta(description="Number of restarts of any kind that are allowed; default: unlimited.")
    ] = None
    suspend: Annotated[
        bool, Meta(description="If true, the job has no pods; it continues when this is set to false.")
    ] = False
    managed_by: Annotated[
        Literal["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"] | None,
        Meta(
            description="The controller that manages this job; the operator ignores jobs of other controllers."
        ),
    ] = None
    scheduling_policy: Annotated[SchedulingSpec | None, Meta(description="Gang scheduling.")] = None


class TFJobSpec(RunPolicySpec, frozen=True, rename="camel"):
    """The spec of the job. Fields of the run policy may be here, as before v1, or under runPolicy, as in v1."""

    tf_replica_specs: Annotated[
        dict[str, ReplicaSpec],
        Meta(description="The roles: Chief or Master, Worker, PS, Evaluator, in any letter case."),
    ] = {}
    run_policy: Annotated[
        RunPolicySpec | None, Meta(description="When the job ends, and which of its pods are kept.")
    ] = None
    success_policy: Annotated[
        SuccessPolicy,
        Meta(
            description='A job without a chief succeeds with worker 0 ("") or with all workers (AllWorkers).'
        ),
    ] = ""
    enable_dynamic_worker: Annotated[
        bool,
        Meta(
            description="Elastic training: workers may be added and removed; each knows only itself and the"
            " parameter servers."
        ),
    ] = False
    dialect: Annotated[
        Dialect | None,
        Meta(
            description="Form of TF_CONFIG: tf2 (default in v1), kubeflow (as the Kubeflow operator writes it) or"
            " tf1 (default before v1; with `master`). The annotation tfyard.dev/dialect takes precedence."
        ),
    ] = None


def canonical(name: str) -> str | None:
    """The role for a name in any letter case: Kubeflow's operator ignores it, and old manifests rely on that."""
    return next((role for role in ROLES if role.lower() == name.lower()), None)


def in_order(roles: dict[str, Role]) -> tuple[Role, ...]:
    return tuple(roles[name] for name in ROLES if name in roles)
