"""A TFJob with a map of roles <-> Job. Every version from v1alpha2 on is read; only v1 is written."""

from typing import Any, get_args

from tfyard.formats import durations, limits, metadata, mlflow, quantities, stalls
from tfyard.formats.declarations.reading import Notes, Path, not_one_of, read
from tfyard.formats.declarations.structs import fields
from tfyard.formats.pods import templates
from tfyard.model import ROLES, Dialect, Job, Manifest, MLflow, Role, RunPolicy, SchedulingPolicy, Stall
from tfyard.model import names as label
from tfyard.model.durations import write_duration

from .fields import ReplicaSpec, RunPolicySpec, SchedulingSpec, TFJobSpec, canonical, in_order
from .versions import V1, VERSIONS, Defaults

WRITTEN = VERSIONS[V1]
"""Defaults of the written version: fields with these values are omitted."""


def load(document: Manifest, notes: Notes) -> Job | None:
    version = str(document["apiVersion"])
    defaults = VERSIONS[version]
    meta = metadata.load(document, notes)
    if document.get("spec") is None:
        notes.error(("spec",), "must be given", "add spec.tfReplicaSpecs")
        return None
    spec = read(TFJobSpec, document["spec"], ("spec",), notes)
    if spec is None:
        return None
    ours = (
        label.DIALECT,
        label.SERVICES,
        label.EVALUATOR_GRACE,
        label.TOGETHER,
        label.KEEPS_PODS,
        label.STALL,
        label.MLFLOW,
        label.MLFLOW_RUN,
    )  # fields of a Job from here on
    others = {name: text for name, text in meta.annotations.items() if name not in ours}
    return Job(
        **{**meta.fields(), "annotations": others},
        api_version=version,
        roles=_roles(spec, document["spec"], notes),
        run_policy=_run_policy(spec, meta, defaults, notes),
        success=spec.success_policy,
        dynamic_workers=spec.enable_dynamic_worker,
        together=_choice(meta, label.TOGETHER, ("true", "false"), notes) == "true",
        dialect=_choice(meta, label.DIALECT, get_args(Dialect), notes) or spec.dialect or defaults.dialect,
        services=_choice(meta, label.SERVICES, ("shared", "per-replica", "none"), notes),
        mlflow=_mlflow(meta, notes),
    )


def where(spec: Manifest) -> limits.FieldPaths:
    """Field paths for problems of the job as a whole."""
    path: Path = ("spec", "tfReplicaSpecs")
    specs = spec.get("tfReplicaSpecs")
    paths = {canonical(key): (*path, key) for key in specs} if isinstance(specs, dict) else {}
    roles: dict[str, Path] = {role: key for role, key in paths.items() if role is not None}
    gang: Path = ("schedulingPolicy", "minAvailable")
    gang = ("spec", *gang) if "schedulingPolicy" in spec else ("spec", "runPolicy", *gang)
    together: Path = ("metadata", "annotations", label.TOGETHER)
    return limits.FieldPaths(("metadata", "name"), path, roles, "replicas", gang, together)


def dump(job: Job) -> tuple[Manifest, list[str]]:
    """The TFJob object, and descriptions of what it cannot express."""
    head = _non_empty(
        name=job.name,
        namespace=job.namespace if job.namespace != "default" else None,
        labels=job.labels,
        annotations={**job.annotations, **_annotations(job)},
    )
    spec = _non_empty(
        runPolicy=_run_policy_fields(job),
        successPolicy=job.success,
        enableDynamicWorker=job.dynamic_workers,
        tfReplicaSpecs={role.name: _replica_spec(role) for role in job.roles},
    )
    document = {"apiVersion": V1, "kind": "TFJob", "metadata": head, "spec": spec}
    return document, _lost(job)


# --- reading


def _roles(spec: TFJobSpec, raw: Manifest, notes: Notes) -> tuple[Role, ...]:
    path: Path = ("spec", "tfReplicaSpecs")
    if not spec.tf_replica_specs:
        if not isinstance(raw.get("tfReplicaSpecs"), dict) or not raw["tfReplicaSpecs"]:
            notes.error(path, "must be given", "add at least one role, such as Worker")
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
    role = Role(
        name=name,
        replicas=replica.replicas,
        restart=replica.restart_policy,
        template=template,
        port=templates.port(template),
    )
    fix = f"set it beside `replicas`: restartPolicy: {role.overruled_restart}"
    templates.check_restart(role, (*path, "template"), fix, notes)
    return role


def _run_policy(spec: TFJobSpec, meta: metadata.Metadata, defaults: Defaults, notes: Notes) -> RunPolicy:
    flat, nested = spec, spec.run_policy or RunPolicySpec()
    chosen: dict[str, Any] = {}
    _check_gang(flat, ("spec",), notes)
    _check_gang(nested, ("spec", "runPolicy"), notes)
    for key, field in fields(RunPolicySpec).items():
        here, there = getattr(flat, field.name), getattr(nested, field.name)
        if _is_set(here) and _is_set(there) and here != there:
            text = f"must not differ from spec.{key}: both set the same policy"
            notes.error(("spec", "runPolicy", key), text, "keep one of the two")
        chosen[field.name] = there if _is_set(there) else here
    return RunPolicy(
        clean=chosen["clean_pod_policy"] or defaults.clean,
        ttl=chosen["ttl_seconds_after_finished"],
        deadline=_limited(chosen["active_deadline_seconds"]),
        backoff_limit=chosen["backoff_limit"],
        suspend=bool(chosen["suspend"]),
        managed_by=chosen["managed_by"],
        scheduling=_scheduling(chosen["scheduling_policy"]),
        evaluator_grace=_evaluator_grace(meta, notes),
        keeps_pods=_choice(meta, label.KEEPS_PODS, ("true", "false"), notes) == "true",
        stall=_stall(meta, notes),
    )


def _check_gang(policy: RunPolicySpec, path: Path, notes: Notes) -> None:
    resources = policy.scheduling_policy.min_resources if policy.scheduling_policy else None
    for name, value in (resources or {}).items():
        notes.extend(quantities.problems(value, (*path, "schedulingPolicy", "minResources", name)))


def _is_set(value: object) -> bool:
    return value is not None and value is not False  # 0 is a value


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


def _stall(meta: metadata.Metadata, notes: Notes) -> Stall | None:
    text = meta.annotations.get(label.STALL)
    return None if text is None else stalls.read(text, ("metadata", "annotations", label.STALL), notes)


def _mlflow(meta: metadata.Metadata, notes: Notes) -> MLflow | None:
    uri, run = (meta.annotations.get(name, "") for name in (label.MLFLOW, label.MLFLOW_RUN))
    if uri:
        mlflow.check(uri, ("metadata", "annotations", label.MLFLOW), notes)
    return MLflow(uri=uri, run=run) if uri or run else None


def _choice(meta: metadata.Metadata, name: str, words: tuple[str, ...], notes: Notes) -> Any:
    value = meta.annotations.get(name)
    if value is None or value in words:
        return value
    not_one_of(words, value, ("metadata", "annotations", name), notes)
    return None


def _limited(seconds: int | None) -> int | None:
    """The deadline, cut to what tfyard computes with: v1 allows any 64-bit number."""
    return None if seconds is None else min(seconds, durations.LONGEST)


# --- writing


def _annotations(job: Job) -> dict[str, str]:
    """Annotations for fields of a Job that v1 does not have."""
    grace, stall = job.run_policy.evaluator_grace, job.run_policy.stall
    annotations = {
        label.DIALECT: job.dialect if job.dialect != WRITTEN.dialect else None,
        label.SERVICES: job.services,
        label.EVALUATOR_GRACE: write_duration(grace) if grace else None,
        label.TOGETHER: "true" if job.together else None,
        label.KEEPS_PODS: "true" if job.run_policy.keeps_pods else None,
        label.STALL: stalls.write(stall) if stall else None,
        label.MLFLOW: job.mlflow.uri or None if job.mlflow else None,
        label.MLFLOW_RUN: job.mlflow.run or None if job.mlflow else None,
    }
    return {name: value for name, value in annotations.items() if value is not None}


def _run_policy_fields(job: Job) -> Manifest:
    policy = job.run_policy
    numbers = {
        "ttlSecondsAfterFinished": policy.ttl,
        "activeDeadlineSeconds": policy.deadline,
        "backoffLimit": policy.backoff_limit,
    }
    return {
        **_non_empty(cleanPodPolicy=policy.clean if policy.clean != WRITTEN.clean else None),
        **{name: number for name, number in numbers.items() if number is not None},
        **_non_empty(
            suspend=policy.suspend,
            managedBy=policy.managed_by,
        ),
        **({"schedulingPolicy": _scheduling_fields(policy.scheduling)} if policy.scheduling else {}),
    }


def _scheduling_fields(policy: SchedulingPolicy) -> Manifest:
    spec = {
        "minAvailable": policy.min_available,
        "queue": policy.queue or None,
        "minResources": policy.min_resources,
        "priorityClass": policy.priority_class or None,
        "scheduleTimeoutSeconds": policy.timeout,
    }
    return {name: value for name, value in spec.items() if value is not None}


def _replica_spec(role: Role) -> Manifest:
    template = templates.with_port(role.template, role.port)
    return {"replicas": role.replicas, "restartPolicy": role.restart, "template": template}


def _lost(job: Job) -> list[str]:
    lost = []
    if job.has_harmless_failures:
        lost.append("a failed worker fails the job in v1; in v1alpha1 only the chief did")
    if job.chief is not None:
        lost.append(
            f"terminationPolicy: the job ended with {job.chief.name}; in v1 it ends with Chief or Master,"
            " else with worker 0"
        )
    if job.tensorboard is not None:
        lost.append(
            f"tensorboard ({job.tensorboard.log_dir}): `tfyard render` writes it as a manifest of its own"
        )
    if job.code is not None:
        lost.append(f"code ({job.code.source}): `tfyard render` ships it with the job")
    if job.tf1:
        lost.append("tf1: `tfyard render` ships the module that it needs with the job")
    lost += [
        f"{o['kind']} {o['metadata']['name']}: `tfyard render` writes it as a manifest of its own"
        for o in job.objects
    ]
    return lost


def _non_empty(**fields: Any) -> Manifest:
    return {name: value for name, value in fields.items() if value}
