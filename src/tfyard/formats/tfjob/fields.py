"""What all TFJob versions with a `tfReplicaSpecs` map share: the fields, and their way into a Job.

The versions differ in their defaults, which stand in their own files (v1.py, v1beta2.py, …).
"""

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from tfyard.formats import durations, limits, metadata, quantities
from tfyard.formats.declarations.reading import Notes, Path, closest, read
from tfyard.formats.pods import templates
from tfyard.model import (
    ROLES,
    CleanPolicy,
    Dialect,
    Job,
    Manifest,
    RestartPolicy,
    Role,
    RunPolicy,
    SchedulingPolicy,
    SuccessPolicy,
)
from tfyard.model import names as label

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


class Defaults(Struct, frozen=True, kw_only=True):
    """In what a version differs from its siblings."""

    api_version: str
    clean: CleanPolicy
    dialect: Dialect


def load(document: Manifest, defaults: Defaults, notes: Notes) -> Job | None:
    meta = metadata.load(document, notes)
    if document.get("spec") is None:
        notes.error(("spec",), "must be given", "the job itself: spec.tfReplicaSpecs")
        return None
    spec = read(TFJobSpec, document["spec"], ("spec",), notes)
    if spec is None:
        return None
    ours = (label.DIALECT, label.SERVICES, label.EVALUATOR_GRACE)  # fields of a Job from here on
    others = {name: text for name, text in meta.annotations.items() if name not in ours}
    return Job(
        **{**meta.fields(), "annotations": others},
        api_version=defaults.api_version,
        roles=_roles(spec, document["spec"], notes),
        run_policy=_run_policy(spec, meta, defaults, notes),
        success=spec.success_policy,
        dynamic_workers=spec.enable_dynamic_worker,
        dialect=_choice(meta, label.DIALECT, get_args(Dialect), notes) or spec.dialect or defaults.dialect,
        services=_choice(meta, label.SERVICES, ("shared", "per-replica", "none"), notes),
    )


def where(spec: Manifest) -> limits.Where:
    """The paths of a TFJob with a map of roles."""
    path: Path = ("spec", "tfReplicaSpecs")
    given = spec.get("tfReplicaSpecs")
    found = {canonical(key): (*path, key) for key in given} if isinstance(given, dict) else {}
    roles: dict[str, Path] = {role: place for role, place in found.items() if role is not None}
    gang: Path = ("schedulingPolicy", "minAvailable")
    gang = ("spec", *gang) if "schedulingPolicy" in spec else ("spec", "runPolicy", *gang)
    return limits.Where(("metadata", "name"), path, roles, "replicas", gang)


def canonical(name: str) -> str | None:
    """`WORKER` and `worker` are Worker: upstream folds the case, and old manifests rely on it."""
    return next((role for role in ROLES if role.lower() == name.lower()), None)


def in_order(roles: dict[str, Role]) -> tuple[Role, ...]:
    return tuple(roles[name] for name in ROLES if name in roles)


def _roles(spec: TFJobSpec, raw: Manifest, notes: Notes) -> tuple[Role, ...]:
    path: Path = ("spec", "tfReplicaSpecs")
    if not spec.tf_replica_specs:
        if not isinstance(raw.get("tfReplicaSpecs"), dict) or not raw["tfReplicaSpecs"]:
            notes.error(path, "must be given", "at least one role, Worker say")
        return ()
    roles: dict[str, Role] = {}
    for key, replica in spec.tf_replica_specs.items():
        name = canonical(key)
        if name is None:
            notes.unknown((*path, key), f"unknown replica type {key!r}", ROLES)
        elif name in roles:
            notes.error((*path, key), f"the role {name} is given twice", "keep one of the two")
        else:
            roles[name] = _role(name, replica, (*path, key), notes)
    return in_order(roles)


def _role(name: str, replica: ReplicaSpec, path: Path, notes: Notes) -> Role:
    template = templates.load(replica.template, (*path, "template"), notes)
    return Role(
        name=name,
        replicas=replica.replicas,
        restart=replica.restart_policy,
        template=template,
        port=templates.port(template),
    )


def _run_policy(spec: TFJobSpec, meta: metadata.Metadata, defaults: Defaults, notes: Notes) -> RunPolicy:
    flat, nested = spec, spec.run_policy or RunPolicySpec()
    chosen: dict[str, Any] = {}
    _check_gang(flat, ("spec",), notes)
    _check_gang(nested, ("spec", "runPolicy"), notes)
    fields = zip(RunPolicySpec.__struct_fields__, RunPolicySpec.__struct_encode_fields__, strict=True)
    for field, name in fields:
        here, there = getattr(flat, field), getattr(nested, field)
        if _is_given(here) and _is_given(there) and here != there:
            text = f"differs from spec.{name}, which says the same thing"
            notes.error(("spec", "runPolicy", name), text, "keep one of the two")
        chosen[field] = there if _is_given(there) else here
    return RunPolicy(
        clean=chosen["clean_pod_policy"] or defaults.clean,
        ttl=chosen["ttl_seconds_after_finished"],
        deadline=_limited(chosen["active_deadline_seconds"]),
        backoff_limit=chosen["backoff_limit"],
        suspend=bool(chosen["suspend"]),
        managed_by=chosen["managed_by"],
        scheduling=_scheduling(chosen["scheduling_policy"]),
        evaluator_grace=_evaluator_grace(meta, notes),
    )


def _check_gang(policy: RunPolicySpec, path: Path, notes: Notes) -> None:
    asked = policy.scheduling_policy.min_resources if policy.scheduling_policy else None
    for name, value in (asked or {}).items():
        notes.extend(quantities.problems(value, (*path, "schedulingPolicy", "minResources", name)))


def _is_given(value: object) -> bool:
    return value is not None and value is not False  # 0 is given


def _scheduling(spec: SchedulingSpec | None) -> SchedulingPolicy | None:
    if spec is None:
        return None
    resources = spec.min_resources
    return SchedulingPolicy(
        min_available=spec.min_available,
        queue=spec.queue,
        min_resources=None if resources is None else {name: str(value) for name, value in resources.items()},
        priority_class=spec.priority_class,
        timeout=spec.schedule_timeout_seconds,
    )


def _evaluator_grace(meta: metadata.Metadata, notes: Notes) -> int:
    text = meta.annotations.get(label.EVALUATOR_GRACE)
    if text is None:
        return 0
    return durations.read(text, ("metadata", "annotations", label.EVALUATOR_GRACE), notes) or 0


def _choice(meta: metadata.Metadata, name: str, words: tuple[str, ...], notes: Notes) -> Any:
    value = meta.annotations.get(name)
    if value is None or value in words:
        return value
    best = closest(value, words)
    fix = f'did you mean "{best}"?' if best else ""
    notes.error(("metadata", "annotations", name), f"must be one of {', '.join(words)}", fix, value)
    return None


def _limited(seconds: int | None) -> int | None:
    """A deadline may be any number of 64 bits; beyond this it is none."""
    return None if seconds is None else min(seconds, durations.LONGEST)
