"""v1alpha1, of tensorflow.org (`TfJob`, 2017) and of kubeflow.org (`TFJob`, 2018): a list of replica specs.

Only the chief ended a job: a failed worker was restarted. The restart policy was that of the pod template.
A PS without a template runs a parameter server that the operator provides, then as now.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from tfyard.formats import limits, metadata
from tfyard.formats.declarations.reading import Notes, Path, read
from tfyard.formats.pods import checks, images, templates, volumes
from tfyard.model import (
    CHIEF,
    DEFAULT_PORT,
    MASTER,
    PS,
    TENSORFLOW_CONTAINER,
    Dialect,
    Job,
    Manifest,
    Role,
    RunPolicy,
    Task,
    TensorBoard,
)
from tfyard.model.names import DEFAULT_IMAGE

from .fields import Count, canonical, in_order
from .versions import VERSIONS

ReplicaType = Literal["MASTER", "WORKER", "PS"]

SCRIPT = """\
import json, os
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
Server = getattr(tf, "distribute", None) and getattr(tf.distribute, "Server", None) or tf.train.Server
Server(config["cluster"], job_name=config["task"]["type"], task_index=config["task"]["index"]).join()
"""
"""The program of a PS without a template. It reads its task from TF_CONFIG and serves until it is stopped. It runs
with TensorFlow 2 and with the last releases of TensorFlow 1."""


class TfReplicaSpec(Struct, frozen=True, rename="camel"):
    """A role of the job: its type, the number of its tasks, and their pod template."""

    tf_replica_type: Annotated[ReplicaType, Meta(description="MASTER (default), WORKER or PS.")] = "MASTER"
    replicas: Annotated[
        Count, Meta(description="Number of tasks; default 1. A MASTER must have exactly 1.")
    ] = 1
    tf_port: Annotated[
        Annotated[int, Meta(ge=1, le=65_535)], Meta(description="Port of the TensorFlow server.")
    ] = DEFAULT_PORT
    template: Annotated[
        dict[str, Any] | None,
        Meta(description="Pod template of each task; a PS without one runs tfyard's own parameter server."),
    ] = None
    # The old operator declared no JSON names for this field and RuntimeId, so clusters store them by Go's names.
    is_default_ps: Annotated[bool, Meta(description="Set by the old operator; not used.")] = field(
        default=False, name="IsDefaultPS"
    )


class TensorBoardSpec(Struct, frozen=True, rename="camel"):
    """A TensorBoard for the job; it runs until the job is deleted."""

    log_dir: Annotated[str, Meta(description="Directory of the summaries, as the containers see it.")]
    service_type: Annotated[
        Literal["ClusterIP", "NodePort", "LoadBalancer"],
        Meta(description="Type of TensorBoard's Service; default ClusterIP."),
    ] = "ClusterIP"
    volumes: Annotated[list[dict[str, Any]], Meta(description="Volumes of TensorBoard's pod.")] = []
    volume_mounts: Annotated[list[dict[str, Any]], Meta(description="Mount paths of the volumes.")] = []


class ChiefSpec(Struct, frozen=True, rename="camel"):
    """The task whose end is the end of the job."""

    replica_name: Annotated[ReplicaType, Meta(description="Replica type of the task.")] = "MASTER"
    replica_index: Annotated[Count, Meta(description="Index of the task.")] = 0


class TerminationSpec(Struct, frozen=True):
    """When the job ends."""

    chief: Annotated[
        ChiefSpec | None, Meta(description="The task whose end is the end of the job; default MASTER 0.")
    ] = None


class TfJobSpec(Struct, frozen=True, rename="camel"):
    """The spec of the job as tensorflow/k8s declared it."""

    replica_specs: Annotated[list[TfReplicaSpec], Meta(description="The roles of the job.")] = []
    tf_image: Annotated[str, Meta(description="Image of TensorBoard and of a PS without a template.")] = ""
    tensorboard: Annotated[TensorBoardSpec | None, Meta(description="A TensorBoard for the job.")] = None
    termination_policy: Annotated[TerminationSpec | None, Meta(description="When the job ends.")] = None
    scheduler_name: Annotated[str, Meta(description="Scheduler of every pod.")] = ""
    cleanup_pod_policy: Annotated[
        Literal["", "All", "Running", "None"],
        Meta(
            description="Pods to delete when the job has finished: All (default in kubeflow.org), Running"
            " or None (default in tensorflow.org)."
        ),
    ] = ""
    runtime_id: Annotated[str, Meta(description="Written by the old operator; not used.")] = field(
        default="", name="RuntimeId"
    )
    dialect: Annotated[Dialect | None, Meta(description="Form of TF_CONFIG; default tf1.")] = None


def load(document: Manifest, notes: Notes) -> Job | None:
    meta = metadata.load(document, notes)
    if document.get("spec") is None:
        notes.error(("spec",), "must be given", "add spec.replicaSpecs")
        return None
    spec = read(TfJobSpec, document["spec"], ("spec",), notes)
    if spec is None:
        return None
    version = str(document["apiVersion"])
    defaults = VERSIONS[version if version.endswith("/v1alpha1") else "kubeflow.org/v1alpha1"]
    if spec.tf_image:
        images.check(spec.tf_image, ("spec", "tfImage"), notes)
    roles = _roles(spec, document["spec"], notes)
    return Job(
        **meta.fields(),
        api_version=version,
        kind=str(document["kind"]),
        roles=roles,
        run_policy=RunPolicy(clean=spec.cleanup_pod_policy or defaults.clean),
        chief=_chief(spec, roles, notes),
        fails_with="chief",
        dialect=spec.dialect or defaults.dialect,
        tensorboard=_tensorboard(spec, notes),
    )


def where(spec: Manifest) -> limits.FieldPaths:
    path: Path = ("spec", "replicaSpecs")
    roles: dict[str, Path] = {}
    specs = spec.get("replicaSpecs")
    for i, replica in enumerate(specs if isinstance(specs, list) else []):
        if isinstance(replica, dict):
            roles[canonical(str(replica.get("tfReplicaType"))) or MASTER] = (*path, i)
    return limits.FieldPaths(("metadata", "name"), path, roles, "replicas", path)


def _roles(spec: TfJobSpec, raw: Manifest, notes: Notes) -> tuple[Role, ...]:
    specs = raw.get("replicaSpecs")
    if specs in (None, []):
        notes.error(("spec", "replicaSpecs"), "must be given", "add at least one role")
    roles: dict[str, Role] = {}
    positions = [
        i for i, replica in enumerate(specs if isinstance(specs, list) else []) if isinstance(replica, dict)
    ]
    for i, replica in zip(positions, spec.replica_specs, strict=False):
        path: Path = ("spec", "replicaSpecs", i)
        name = canonical(replica.tf_replica_type) or MASTER
        if name in roles:
            notes.error(
                (*path, "tfReplicaType"), f"{replica.tf_replica_type} is given twice", "merge the two"
            )
            continue
        if name == MASTER and replica.replicas == 0:  # more than one is an error in every format
            notes.error(
                (*path, "replicas"),
                "must be 1: a job has exactly one MASTER",
                "replicas: 1",
                replica.replicas,
            )
        roles[name] = _role(name, replica, spec, path, notes)
    return in_order(roles)


def _role(name: str, replica: TfReplicaSpec, spec: TfJobSpec, path: Path, notes: Notes) -> Role:
    template = replica.template
    if template is None and name != PS:
        notes.error((*path, "template"), "must be given", "add a pod template: only a PS may omit it")
    is_default = template is None and name == PS
    if template is None:
        template = _default_server(spec.tf_image or DEFAULT_IMAGE)
    template = templates.load(template, (*path, "template"), Notes() if is_default else notes)
    inside = template.get("spec") or {}
    if spec.scheduler_name:
        template = {**template, "spec": {"schedulerName": spec.scheduler_name, **inside}}
    return Role(
        name=name,
        replicas=replica.replicas,
        restart=_restart(name, inside.get("restartPolicy")),
        template=template,
        port=replica.tf_port,
        is_default_server=is_default,
    )


def _default_server(image: str) -> Manifest:
    container = {"name": TENSORFLOW_CONTAINER, "image": image, "command": ["python", "-c", SCRIPT]}
    return {"spec": {"containers": [container], "restartPolicy": "OnFailure"}}


def _restart(role: str, inside: object) -> Any:
    """The template's own policy. Without one, the behaviour of the old operator: it restarted a chief that was
    killed, failed the job if the chief exited with an error, and restarted every other task."""
    if inside in ("Always", "OnFailure", "Never"):
        return inside
    return "ExitCode" if role in (MASTER, CHIEF) else "OnFailure"


def _chief(spec: TfJobSpec, roles: tuple[Role, ...], notes: Notes) -> Task | None:
    """The task that terminationPolicy names; None if it is the one that leads by default."""
    chosen = spec.termination_policy.chief if spec.termination_policy else None
    if chosen is None:
        return None
    role = next((role for role in roles if role.name == canonical(chosen.replica_name)), None)
    path: Path = ("spec", "terminationPolicy", "chief")
    if role is None:
        fix = "name a type that replicaSpecs has"
        notes.error((*path, "replicaName"), "Missing ReplicaSpec for chief", fix, chosen.replica_name)
        return None
    if chosen.replica_index >= role.replicas:
        text = f"must be less than {role.replicas}, the replicas of {role.name}"
        notes.error((*path, "replicaIndex"), text, "", chosen.replica_index)
        return None
    is_usual = role.name == MASTER or (MASTER not in {r.name for r in roles} and chosen.replica_index == 0)
    return None if is_usual and role.name != PS else Task(role.name, chosen.replica_index)


def _tensorboard(spec: TfJobSpec, notes: Notes) -> TensorBoard | None:
    board = spec.tensorboard
    if board is None:
        return None
    path: Path = ("spec", "tensorboard")
    problems = checks.unknown_fields({"volumes": board.volumes}, path, "PodSpec")
    problems += checks.unknown_fields({"volumeMounts": board.volume_mounts}, path, "Container")
    notes.extend(problems)
    if not any(problem.severity == "error" for problem in problems):
        volumes.check_volumes(board.volumes, (*path, "volumes"), notes)
        names = volumes.names_of(board.volumes)
        volumes.check_mounts(board.volume_mounts, names, (*path, "volumeMounts"), notes)
    return TensorBoard(
        log_dir=board.log_dir,
        image=spec.tf_image,
        service_type=board.service_type,
        volumes=tuple(board.volumes),
        mounts=tuple(board.volume_mounts),
    )
