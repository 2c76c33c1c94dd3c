"""The declaration of the job file's words, from which reading, the JSON schema, `tfyard explain` and
docs/jobfile.md are derived. load.py converts the words to a Job, dump.py a Job to words."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tfyard.formats.tfjob.fields import Count
from tfyard.model import DEFAULT_PORT, Dialect, ServiceMode, StallReaction, quantity
from tfyard.model.exit_codes import RETRYABLE
from tfyard.model.names import TENSORBOARD_IMAGE

from .. import durations
from ..mlflow import PATTERN as MLFLOW_ADDRESS

Duration = Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=durations.PATTERN)]
Scalar = str | int | float | bool | None
QuantityText = Annotated[str, Meta(pattern=quantity.PATTERN)]
Quantity = QuantityText | int | float


class ShareWords(Struct, frozen=True):
    """An Azure Files share."""

    share: Annotated[str, Meta(description="Name of the file share.")]
    secret: Annotated[str, Meta(description="Secret with the storage account's name and key.")]


class VolumeWords(Struct, frozen=True, rename="camel"):
    """A volume: exactly one source, and the path where it is mounted."""

    at: Annotated[str, Meta(description="Mount path in the container; must be absolute.", pattern="^/")]
    nfs: Annotated[str | None, Meta(description='An NFS export, "server:/path".')] = None
    claim: Annotated[
        str | None,
        Meta(
            description="Name of a PersistentVolumeClaim. With `size` it is created, without it must exist."
        ),
    ] = None
    size: Annotated[
        QuantityText | None, Meta(description="Creates the claim with this size, such as 5Gi.")
    ] = None
    storage_class: Annotated[
        str | None, Meta(description="StorageClass of the created claim; default: the cluster's default.")
    ] = None
    access: Annotated[
        Literal["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"] | None,
        Meta(description="Access mode of the created claim; default ReadWriteMany, because tasks share it."),
    ] = None
    azure_file: Annotated[ShareWords | None, Meta(description="An Azure Files share: {share, secret}.")] = (
        None
    )
    host_path: Annotated[str | None, Meta(description="A directory on the node.")] = None
    empty_dir: Annotated[
        dict[str, Any] | None, Meta(description="Temporary space that is deleted with the pod: {}.")
    ] = None
    config_map: Annotated[str | None, Meta(description="Name of a ConfigMap; each key becomes a file.")] = (
        None
    )
    secret: Annotated[str | None, Meta(description="Name of a Secret; each key becomes a file.")] = None
    sub_path: Annotated[str | None, Meta(description="Mounts only this directory of the source.")] = None
    read_only: Annotated[bool, Meta(description="Mounts the volume read-only.")] = False


class PodWords(Struct, frozen=True, rename="camel"):
    """Words about each task's pod. At the top they apply to every role; in a role, to that role only."""

    image: Annotated[
        str | None, Meta(description="Container image; not used when the job runs on this machine.")
    ] = None
    run: Annotated[
        str | list[str] | None,
        Meta(
            description="The command of each task. A shell runs text; a list is executed without a shell."
            " Without `run`, the image's entrypoint runs."
        ),
    ] = None
    workdir: Annotated[
        str | None, Meta(description="Working directory; default: the directory of the code.")
    ] = None
    env: Annotated[
        dict[str, Scalar],
        Meta(description="Environment variables. Values are passed exactly as they are written in the file."),
    ] = {}
    secrets: Annotated[
        dict[str, str], Meta(description='Environment variables from Secrets: {TOKEN: "my-secret/key"}.')
    ] = {}
    cpu: Annotated[Quantity | None, Meta(description="CPUs of each task: 2, 0.5 or 500m.")] = None
    memory: Annotated[
        Quantity | None,
        Meta(description="Memory of each task, such as 8Gi. A task that uses more is killed."),
    ] = None
    gpu: Annotated[
        Count | dict[str, Count] | None,
        Meta(description="GPUs of each task: a number of nvidia.com/gpu, or {amd.com/gpu: 1}."),
    ] = None
    restart: Annotated[
        Literal["never", "on-failure", "always", "exit-code"] | None,
        Meta(
            description="When a task's program fails: never fails the job; on-failure and always restart it;"
            f" exit-code restarts it if it was killed ({RETRYABLE}). Default never."
        ),
    ] = None
    stop_grace: Annotated[
        Duration | None,
        Meta(
            description="Time to save after SIGTERM, before a task is killed: 90s, 2m; default 30s."
            " A node that shuts down may leave less."
        ),
    ] = None
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65_535)] | None,
        Meta(description=f"Port of the TensorFlow server; default {DEFAULT_PORT}."),
    ] = None
    volumes: Annotated[
        dict[str, VolumeWords], Meta(description="Volumes by name: storage that outlives the container.")
    ] = {}
    labels: Annotated[
        dict[str, str], Meta(description="Labels of the pods and, at the top of the file, of the job.")
    ] = {}
    annotations: Annotated[dict[str, str], Meta(description="Annotations of the pods.")] = {}
    pull_secret: Annotated[
        str | list[str] | None,
        Meta(description="Name of the image pull Secret for a private registry, or a list of names."),
    ] = None
    service_account: Annotated[str | None, Meta(description="ServiceAccount of the pods.")] = None
    node_selector: Annotated[dict[str, str], Meta(description="Labels that a node must have.")] = {}
    node: Annotated[str | None, Meta(description="Name of the node to run on.")] = None
    tolerations: Annotated[
        list[dict[str, Any]], Meta(description="Tolerations for taints of nodes, as in Kubernetes.")
    ] = []
    spread: Annotated[
        Literal["prefer", "require"] | None,
        Meta(
            description="Runs the tasks of the job on different nodes: if possible (prefer) or always (require)."
        ),
    ] = None
    overlay: Annotated[
        dict[str, Any],
        Meta(
            description="Any other field of the pod template, as a strategic merge patch:"
            " {spec: {priorityClassName: high}}."
        ),
    ] = {}


class RoleWords(PodWords, frozen=True, rename="camel"):
    """A role: the number of its tasks, and words that differ from those at the top."""

    count: Annotated[Count, Meta(description="Number of tasks; default 1.")] = 1


class EvaluatorWords(RoleWords, frozen=True, rename="camel"):
    """The evaluator: evaluates checkpoints during the training."""

    grace: Annotated[
        Duration | None,
        Meta(
            description="How long the evaluator may run after the training has ended, to evaluate the last"
            " checkpoint."
        ),
    ] = None


class CodeWords(Struct, frozen=True, rename={"from_": "from"}):
    """The source of the program."""

    from_: Annotated[
        str | None,
        Meta(description="A folder relative to the job file, a git URL, or the http(s) URL of an archive."),
    ] = None
    path: Annotated[str | None, Meta(description="A folder; the older word for `from`.")] = None
    git: Annotated[str | None, Meta(description="URL of a git repository.")] = None
    url: Annotated[str | None, Meta(description="URL of a .zip or .tar.gz archive.")] = None
    ref: Annotated[str, Meta(description="Branch, tag or commit of the git repository.")] = ""
    at: Annotated[str, Meta(description="Path of the code in the container.")] = "/code"
    claim: Annotated[
        str | None,
        Meta(
            description="PersistentVolumeClaim to which `tfyard submit` copies the folder. By default, a small"
            " folder needs none, and a large one is copied to tfyard-code, which is created."
        ),
    ] = None


class BoardWords(Struct, frozen=True, rename="camel"):
    """A TensorBoard for the job."""

    logs: Annotated[str, Meta(description="Directory of the summaries, as the tasks see it.")]
    image: Annotated[
        str,
        Meta(description=f"Image of TensorBoard; default: {TENSORBOARD_IMAGE}, the last that has it."),
    ] = ""
    service: Annotated[
        Literal["ClusterIP", "NodePort", "LoadBalancer"],
        Meta(description="Type of TensorBoard's Service; default ClusterIP."),
    ] = "ClusterIP"
    volumes: Annotated[
        dict[str, VolumeWords] | None,
        Meta(description="Volumes of TensorBoard; default: those at the top of the file."),
    ] = None


class GangWords(Struct, frozen=True, rename="camel"):
    """Gang scheduling: all tasks start, or none."""

    at_least: Annotated[
        Count | None, Meta(description="Number of tasks that must fit at the same time; default: all.")
    ] = None
    queue: Annotated[str, Meta(description="Queue of the gang scheduler.")] = ""
    priority_class: Annotated[str, Meta(description="PriorityClass of the pod group.")] = ""
    timeout: Annotated[
        Duration | None, Meta(description="How long the scheduler tries to start the group.")
    ] = None
    resources: Annotated[
        dict[str, Quantity] | None,
        Meta(description="Resources that must be free; default: the sum over the tasks."),
    ] = None


class StallWords(Struct, frozen=True, rename="camel"):
    """Watches for programs that hang."""

    after: Annotated[Duration, Meta(description="How long the task that decides may print no line: 15m, 1h.")]
    then: Annotated[
        StallReaction,
        Meta(
            description="report, the default, sets the condition Stalled; restart starts all tasks again together,"
            " which is one retry."
        ),
    ] = "report"


Words = Count | RoleWords


class JobFile(PodWords, frozen=True, rename="camel", kw_only=True):
    """A training job: the program, and the number of chiefs, workers, parameter servers and evaluators."""

    version: Annotated[Literal[1], Meta(description="Version of this format.")] = 1
    name: Annotated[
        str,
        Meta(
            description="Name of the job: lower-case letters, digits and '-'.",
            pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$",
        ),
    ]
    namespace: Annotated[
        str | None, Meta(description="Kubernetes namespace; default: that of the current context.")
    ] = None
    code: Annotated[
        str | CodeWords | None,
        Meta(
            description="The program: a folder relative to this file, a git URL, or the http(s) URL of an archive."
            " Without it, the code is in the image."
        ),
    ] = None
    requirements: Annotated[
        str | None,
        Meta(
            description="A file of the code, such as requirements.txt: pip installs its packages before the"
            " training starts. A run on this machine uses the active environment and installs nothing."
        ),
    ] = None
    tf1: Annotated[
        bool,
        Meta(
            description="For programs written for TensorFlow 1: `import tensorflow` imports"
            " tensorflow.compat.v1, without the behaviour of TensorFlow 2."
        ),
    ] = False
    chief: Annotated[
        Words | None, Meta(description="The task that leads the training: the job ends when it ends.")
    ] = None
    master: Annotated[Words | None, Meta(description="The older name of chief.")] = None
    worker: Annotated[Words | None, Meta(description="The tasks that train: a number, or a mapping.")] = None
    ps: Annotated[Words | None, Meta(description="Parameter servers: a number, or a mapping.")] = None
    evaluator: Annotated[
        Count | EvaluatorWords | None, Meta(description="Evaluates checkpoints during the training.")
    ] = None
    deadline: Annotated[
        Duration | None, Meta(description="The job fails if it runs longer than this: 90s, 30m, 2h, 1d.")
    ] = None
    retries: Annotated[
        Count | None, Meta(description="Number of restarts of any kind that are allowed; default: unlimited.")
    ] = None
    stall: Annotated[
        Duration | StallWords | None,
        Meta(
            description="The job is Stalled if the chief (without one, worker 0) runs and prints no line for this"
            " long, such as 15m: longer than an epoch or an evaluation takes. {after: 15m, then: restart} also"
            " starts all tasks again. Default: hanging programs are not detected."
        ),
    ] = None
    keep_for: Annotated[
        Duration | None, Meta(description="The job is deleted this long after it has ended; default: never.")
    ] = None
    clean: Annotated[
        Literal["all", "running", "none"],
        Meta(
            description="Pods to delete when the job ends. With running, the default, parameter servers are"
            " deleted; finished pods and their logs are kept."
        ),
    ] = "running"
    success: Annotated[
        Literal["chief", "all-workers"],
        Meta(
            description="The job succeeds with the chief (without one, with worker 0), or with all workers."
        ),
    ] = "chief"
    suspend: Annotated[bool, Meta(description="Creates the job, but does not start it.")] = False
    dynamic: Annotated[
        bool, Meta(description="Elastic training: workers may be added and removed while the job runs.")
    ] = False
    together: Annotated[
        bool,
        Meta(
            description="Whenever one task must start again, all unfinished ones do: they are stopped, and start"
            " when all are gone. `restart` still says when. One failure is one retry, a disruption is none."
        ),
    ] = False
    queue: Annotated[str | None, Meta(description="Name of the Kueue LocalQueue of this job.")] = None
    gang: Annotated[GangWords | bool, Meta(description="Gang scheduling: all tasks start, or none.")] = False
    tensorboard: Annotated[
        str | BoardWords | None,
        Meta(description="Runs a TensorBoard for the summaries in this directory."),
    ] = None
    mlflow: Annotated[
        Annotated[str, Meta(pattern=MLFLOW_ADDRESS)] | None,
        Meta(
            description="Address of an MLflow server, such as http://127.0.0.1:5000: `tfyard run` and"
            " `tfyard submit --follow` report parameters, metrics and the end of the job to it.",
        ),
    ] = None
    dialect: Annotated[
        Dialect,
        Meta(
            description="Form of TF_CONFIG: tf2, kubeflow (as the Kubeflow operator writes it) or tf1 (with"
            " `master`)."
        ),
    ] = "tf2"
    services: Annotated[
        ServiceMode | None,
        Meta(description="Services of the tasks: one for all (shared), or one for each task (per-replica)."),
    ] = None
