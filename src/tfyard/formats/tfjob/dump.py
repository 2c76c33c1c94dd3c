"""A Job -> TFJob kubeflow.org/v1, the one version that we write."""

from typing import Any

from tfyard.formats import durations
from tfyard.formats.pods import templates
from tfyard.model import Job, Manifest, Role, SchedulingPolicy
from tfyard.model import names as label

from .versions import V1, VERSIONS

DEFAULTS = VERSIONS[V1]


def dump(job: Job) -> tuple[Manifest, list[str]]:
    """The TFJob object, and what could not be carried into it."""
    metadata = _given(
        name=job.name,
        namespace=job.namespace if job.namespace != "default" else None,
        labels=job.labels,
        annotations={**job.annotations, **_annotations(job)},
    )
    spec = _given(
        runPolicy=_run_policy(job),
        successPolicy=job.success,
        enableDynamicWorker=job.dynamic_workers,
        tfReplicaSpecs={role.name: _replica_spec(role) for role in job.roles},
    )
    document = {"apiVersion": V1, "kind": "TFJob", "metadata": metadata, "spec": spec}
    return document, _lost(job)


def _annotations(job: Job) -> dict[str, str]:
    """Annotations for what v1 has no field for."""
    grace = job.run_policy.evaluator_grace
    found = {
        label.DIALECT: job.dialect if job.dialect != DEFAULTS.dialect else None,
        label.SERVICES: job.services,
        label.EVALUATOR_GRACE: durations.write(grace) if grace else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _run_policy(job: Job) -> Manifest:
    policy = job.run_policy
    numbers = {
        "ttlSecondsAfterFinished": policy.ttl,
        "activeDeadlineSeconds": policy.deadline,
        "backoffLimit": policy.backoff_limit,
    }
    return {
        **_given(cleanPodPolicy=policy.clean if policy.clean != DEFAULTS.clean else None),
        **{name: number for name, number in numbers.items() if number is not None},
        **_given(
            suspend=policy.suspend,
            managedBy=policy.managed_by,
        ),
        **({"schedulingPolicy": _scheduling(policy.scheduling)} if policy.scheduling else {}),
    }


def _scheduling(policy: SchedulingPolicy) -> Manifest:
    fields = {
        "minAvailable": policy.min_available,
        "queue": policy.queue or None,
        "minResources": policy.min_resources,
        "priorityClass": policy.priority_class or None,
        "scheduleTimeoutSeconds": policy.timeout,
    }
    return {name: value for name, value in fields.items() if value is not None}


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


def _given(**fields: Any) -> Manifest:
    return {name: value for name, value in fields.items() if value}
