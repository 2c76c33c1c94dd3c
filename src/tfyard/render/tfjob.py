"""`--as tfjob`: the TFJob v1 and the objects that it needs, for a cluster with an operator."""

from msgspec.structs import replace

from tfyard import formats
from tfyard.model import Job, Manifest
from tfyard.planner.job_setup import Setup, addresses

from . import prerequisites
from .objects import Path, RenderedObject
from .options import RenderOptions


def tfjob(job: Job, options: RenderOptions) -> list[RenderedObject]:
    job, before = prerequisites.complete(job, options)
    objects = [*before, _job(job), *prerequisites.tensorboard(job)]
    return [_without_default_namespace(rendered) for rendered in objects]


def unsupported(job: Job) -> list[str]:
    """Messages about settings of the job that a TFJob, with the objects rendered beside it, does not support."""
    return formats.dump(replace(job, tensorboard=None, code=None, tf1=False, objects=()), "v1").lost


def hosts(job: Job, options: RenderOptions) -> dict[str, list[str]]:
    """The address of every task, as the operator assigns it, for programs outside of the job."""
    mode = options.services or job.services
    setup = Setup(services="per-replica" if mode == "per-replica" else "shared", domain=options.domain)
    return {role.name: addresses(job, role, setup) for role in job.roles if role.replicas}


def _job(job: Job) -> RenderedObject:
    manifest = formats.dump(job, "v1").document
    comments: dict[Path, str] = {("spec", "runPolicy"): "From `clean`, `deadline`, `retries` and `keepFor`."}
    for role in job.roles:
        path: Path = ("spec", "tfReplicaSpecs", role.name)
        comments[path] = f"The role `{role.name.lower()}`: {role.replicas} task{'s'[: role.replicas != 1]}."
        comments[(*path, "template", "spec", "initContainers")] = (
            "Puts the code into the pod before the training starts."
        )
    return RenderedObject(manifest, "The job itself; an operator creates its pods.", comments)


def _without_default_namespace(rendered: RenderedObject) -> RenderedObject:
    """The object without the namespace `default`: it has no addresses, so `kubectl --namespace` may choose."""
    metadata: Manifest = rendered.manifest["metadata"]
    if metadata.get("namespace") != "default":
        return rendered
    kept = {key: value for key, value in metadata.items() if key != "namespace"}
    return replace(rendered, manifest={**rendered.manifest, "metadata": kept})
