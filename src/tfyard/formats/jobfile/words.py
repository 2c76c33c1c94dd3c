"""The words of the job file. This is their one declaration: reading, the JSON schema and `explain` use it."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tfyard.formats.tfjob.fields import Count
from tfyard.model import Dialect, ServiceMode, quantity
from tfyard.model.names import DEFAULT_PORT

from .. import durations

Duration = Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=durations.PATTERN)]
Scalar = str | int | float | bool | None
QuantityText = Annotated[str, Meta(pattern=quantity.PATTERN)]
Quantity = QuantityText | int | float


class ShareWords(Struct, frozen=True):
    """An Azure Files share."""

    share: Annotated[str, Meta(description="Name of the file share.")]
    secret: Annotated[str, Meta(description="Secret with the storage account's name and key.")]


class VolumeWords(Struct, frozen=True, rename="camel"):
    """A directory that outlives the container: exactly one source, and where it appears."""

    at: Annotated[str, Meta(description="Where it appears in the container: an absolute path.", pattern="^/")]
    nfs: Annotated[str | None, Meta(description='An NFS export, "server:/path".')] = None
    claim: Annotated[
        str | None,
        Meta(description="A PersistentVolumeClaim by name; with `size` it is created, else it must exist."),
    ] = None
    size: Annotated[
        QuantityText | None, Meta(description="Create the claim with this size, such as 5Gi.")
    ] = None
    storage_class: Annotated[
        str | None, Meta(description="Storage class of the claim; default: the cluster's.")
    ] = None
    access: Annotated[
        Literal["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"] | None,
        Meta(description="Access mode of the created claim; default ReadWriteMany, as tasks share it."),
    ] = None
    azure_file: Annotated[ShareWords | None, Meta(description="An Azure Files share: {share, secret}.")] = (
        None
    )
    host_path: Annotated[str | None, Meta(description="A directory of the node.")] = None
    empty_dir: Annotated[
        dict[str, Any] | None, Meta(description="Scratch space of the pod's own, gone with it: {}.")
    ] = None
    config_map: Annotated[str | None, Meta(description="The entries of a ConfigMap, as files.")] = None
    secret: Annotated[str | None, Meta(description="The entries of a Secret, as files.")] = None
    sub_path: Annotated[str | None, Meta(description="Only this directory of the source.")] = None
    read_only: Annotated[bool, Meta(description="Tasks cannot write to it.")] = False


class PodWords(Struct, frozen=True, rename="camel"):
    """Words for what each task runs. At the top they hold for every role; in a role, for that one."""

    image: Annotated[
        str | None, Meta(description="Container image; not used when the job runs on this machine.")
    ] = None
    run: Annotated[
        str | list[str] | None,
        Meta(
            description="The program. Text is a shell line, a list is executed as it is. Without it the"
            " image's own entrypoint runs."
        ),
    ] = None
    workdir: Annotated[str | None, Meta(description="Working directory; default: where the code is.")] = None
    env: Annotated[
        dict[str, Scalar],
        Meta(description="Environment variables; values keep the very text that is written here."),
    ] = {}
    secrets: Annotated[
        dict[str, str], Meta(description='Environment variables from Secrets: {TOKEN: "my-secret/key"}.')
    ] = {}
    cpu: Annotated[Quantity | None, Meta(description="CPUs of each task: 2, 0.5 or 500m.")] = None
    memory: Annotated[
        Quantity | None,
        Meta(description="Memory of each task, such as 8Gi; more than that and it is killed."),
    ] = None
    gpu: Annotated[
        Count | dict[str, Count] | None,
        Meta(description="GPUs of each task: a number of nvidia.com/gpu, or {amd.com/gpu: 1}."),
    ] = None
    restart: Annotated[
        Literal["never", "on-failure", "always", "exit-code"] | None,
        Meta(
            description="When a task's program fails: never fails the job; on-failure and always run it again;"
            " exit-code runs it again if it was killed (codes of 128 and more). Default never."
        ),
    ] = None
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65_535)] | None,
        Meta(description=f"Port of the TensorFlow server; default {DEFAULT_PORT}."),
    ] = None
    volumes: Annotated[
        dict[str, VolumeWords], Meta(description="Directories that outlive the container, by name.")
    ] = {}
    labels: Annotated[
        dict[str, str], Meta(description="Labels of the pods (at the top: of the job too).")
    ] = {}
    annotations: Annotated[dict[str, str], Meta(description="Annotations of the pods.")] = {}
    pull_secret: Annotated[
        str | list[str] | None, Meta(description="Secret(s) for a private image registry.")
    ] = None
    service_account: Annotated[str | None, Meta(description="Service account of the pods.")] = None
    node_selector: Annotated[dict[str, str], Meta(description="Labels that a node must have.")] = {}
    node: Annotated[str | None, Meta(description="Run on this very node.")] = None
    tolerations: Annotated[list[dict[str, Any]], Meta(description="Tolerated taints, as in Kubernetes.")] = []
    spread: Annotated[
        Literal["prefer", "require"] | None,
        Meta(description="Keep the tasks of this job on different nodes, if possible or in any case."),
    ] = None
    overlay: Annotated[
        dict[str, Any],
        Meta(
            description="Anything that Kubernetes has and this file has no word for: a strategic merge patch"
            " on the pod template, such as {spec: {priorityClassName: high}}."
        ),
    ] = {}


class RoleWords(PodWords, frozen=True, rename="camel"):
    """A role: how many tasks, and what differs from the words at the top."""

    count: Annotated[Count, Meta(description="How many tasks; default 1.")] = 1


class EvaluatorWords(RoleWords, frozen=True, rename="camel"):
    """The evaluator: judges checkpoints beside the training."""

    grace: Annotated[
        Duration | None,
        Meta(description="How long it may go on after the training, to judge the last checkpoint."),
    ] = None


class CodeWords(Struct, frozen=True):
    """Where the program comes from."""

    path: Annotated[str | None, Meta(description="A folder, seen from the job file.")] = None
    git: Annotated[str | None, Meta(description="A git repository.")] = None
    url: Annotated[str | None, Meta(description="A .zip or .tar.gz at an http(s) address.")] = None
    ref: Annotated[str, Meta(description="Branch, tag or commit of the git repository.")] = ""
    at: Annotated[str, Meta(description="Where it appears in the container.")] = "/code"


class BoardWords(Struct, frozen=True, rename="camel"):
    """TensorBoard beside the job."""

    logs: Annotated[str, Meta(description="Where the summaries are, as the tasks see it.")]
    image: Annotated[str, Meta(description="Its image; default: TensorFlow's.")] = ""
    service: Annotated[
        Literal["ClusterIP", "NodePort", "LoadBalancer"], Meta(description="Type of its Service.")
    ] = "ClusterIP"
    volumes: Annotated[
        dict[str, VolumeWords] | None,
        Meta(description="Volumes of its own; default: those at the top of the file."),
    ] = None


class GangWords(Struct, frozen=True, rename="camel"):
    """Start all tasks or none."""

    at_least: Annotated[Count | None, Meta(description="How many tasks must fit; default all.")] = None
    queue: Annotated[str, Meta(description="The gang scheduler's queue.")] = ""
    priority_class: Annotated[str, Meta(description="PriorityClass of the group.")] = ""
    timeout: Annotated[Duration | None, Meta(description="How long the scheduler keeps trying.")] = None
    resources: Annotated[
        dict[str, Quantity] | None, Meta(description="Resources that must be free; default: the tasks' sum.")
    ] = None


Words = Count | RoleWords


class JobFile(PodWords, frozen=True, rename="camel", kw_only=True):
    """A training job: what to run, and with how many chiefs, workers, parameter servers and evaluators."""

    version: Annotated[Literal[1], Meta(description="Version of this format.")] = 1
    name: Annotated[
        str,
        Meta(
            description="Name of the job: lower-case letters, digits and '-'.",
            pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$",
        ),
    ]
    namespace: Annotated[str | None, Meta(description="Kubernetes namespace; default: the context's.")] = None
    code: Annotated[
        str | CodeWords | None,
        Meta(
            description="The program's folder (seen from this file), a git address, or an http(s) address of"
            " an archive. Without it the code is in the image."
        ),
    ] = None
    chief: Annotated[Words | None, Meta(description="The task that leads: its end is the job's.")] = None
    master: Annotated[Words | None, Meta(description="A chief by its older name.")] = None
    worker: Annotated[Words | None, Meta(description="The tasks that train: a number, or a mapping.")] = None
    ps: Annotated[Words | None, Meta(description="Parameter servers: a number, or a mapping.")] = None
    evaluator: Annotated[
        Count | EvaluatorWords | None, Meta(description="Judges checkpoints beside the training.")
    ] = None
    deadline: Annotated[
        Duration | None, Meta(description="The job fails when it has run this long: 90s, 30m, 2h, 1d.")
    ] = None
    retries: Annotated[
        Count | None, Meta(description="How many restarts of any kind are allowed; default: unlimited.")
    ] = None
    keep_for: Annotated[
        Duration | None, Meta(description="The job is deleted this long after its end; default: never.")
    ] = None
    clean: Annotated[
        Literal["all", "running", "none"],
        Meta(description="Which pods go at the end. Default running: logs stay, parameter servers go."),
    ] = "running"
    success: Annotated[
        Literal["chief", "all-workers"],
        Meta(description="Whose end is the job's: the chief's (without one, worker 0's), or all workers'."),
    ] = "chief"
    suspend: Annotated[bool, Meta(description="Create it, but run nothing yet.")] = False
    dynamic: Annotated[bool, Meta(description="Workers may come and go while the job runs.")] = False
    queue: Annotated[str | None, Meta(description="Kueue's queue for this job.")] = None
    gang: Annotated[GangWords | bool, Meta(description="Start all tasks or none.")] = False
    tensorboard: Annotated[
        str | BoardWords | None,
        Meta(description="Show the summaries in this directory with TensorBoard, beside the job."),
    ] = None
    dialect: Annotated[
        Dialect,
        Meta(description="Form of TF_CONFIG: tf2, kubeflow (the old operator's), or tf1 (keeps `master`)."),
    ] = "tf2"
    services: Annotated[
        ServiceMode | None,
        Meta(description="One Service for all tasks (shared) or one each (per-replica)."),
    ] = None
