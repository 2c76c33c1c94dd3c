"""All names, labels and annotations by which tools find a job's objects.

Names are deterministic, which makes creating idempotent: a repeated step meets the object of the first time.
"""

import re
from typing import Final

from .job import ROLES, Job, Task

LATEST: Final = "@latest"
"""Stands for the newest job or run where a command takes a name."""

# Upstream's labels: its SDK, Katib, Kueue and dashboards select pods by them.
OPERATOR_NAME: Final = "training.kubeflow.org/operator-name"
JOB_NAME: Final = "training.kubeflow.org/job-name"
REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
ROLE_LABELS: Final = {role.lower(): role for role in ROLES}
"""Value of the label REPLICA_TYPE -> the role."""
REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
JOB_ROLE: Final = "training.kubeflow.org/job-role"
CONTROLLER: Final = "tfjob-controller"

# tfyard's annotations: on pods ...
ATTEMPT: Final = "tfyard.dev/attempt"
STOPPED: Final = "tfyard.dev/stopped"
"""The operator ended the pod in place because its job was suspended."""
# ... and on jobs, for what TFJob v1 has no field for.
DIALECT: Final = "tfyard.dev/dialect"
SERVICES: Final = "tfyard.dev/services"
EVALUATOR_GRACE: Final = "tfyard.dev/evaluator-grace"
TOGETHER: Final = "tfyard.dev/together"
KEEPS_PODS: Final = "tfyard.dev/keep-pods"
"""A suspended job with this annotation keeps its pods, which are ended in place."""
STALL: Final = "tfyard.dev/stall"
MLFLOW: Final = "tfyard.dev/mlflow"
MLFLOW_RUN: Final = "tfyard.dev/mlflow-run"
"""Address of the MLflow server that the job is reported to, and the id of its run there."""
CODE: Final = "tfyard.dev/code"
"""Hash of the code that `tfyard submit` sent for the job; the ConfigMap with the code has it as a label."""
CODE_VOLUME: Final = "tfyard-code"
PACKAGES_VOLUME: Final = "tfyard-packages"
"""Volumes of a pod with its job's code and packages; the init containers that fill them have the same names."""
OUT_VARIABLE: Final = "TFYARD_OUT"
"""Variable of a script that has the path of its volume for outputs."""
GIVEN_AS: Final = "tfyard.dev/given-as"
"""What `tfyard submit` was given: a job file, or a script. `tfyard why` speaks of that."""
CODE_CLAIM: Final = "tfyard.dev/code-claim"
"""Label of pods that must run on the node of their claim."""
DELETED_BY_TTL: Final = "SuccessfulDeleteJob"
"""Reason of the event about a job that its TTL has removed."""
RERUN_OF: Final = "tfyard.dev/rerun-of"
"""Name of the job that this job is a rerun of."""
SWEEP: Final = "tfyard.dev/sweep"
"""Label of the ConfigMap of a sweep, and of all that belongs to it; its value is the name of the sweep."""
TRIAL: Final = "tfyard.dev/trial"
"""Label of a trial's job: its number. On a cluster, the annotation VALUES has its values."""
VALUES: Final = "tfyard.dev/values"
# What `tfyard render` adds to pods where no operator is, and `tfyard run` takes away again.
WAIT_CONTAINER: Final = "tfyard-wait"
"""Init container that waits for the names of the other tasks."""
SCRIPTS_VOLUME, SCRIPTS_AT = "tfyard", "/tfyard"
"""Volume of the scripts that pods run, and where it is mounted."""
CLUSTER_VARIABLE: Final = "TFYARD_CLUSTER"
EVALUATOR_VARIABLE: Final = "TFYARD_EVALUATOR"
LAST_STEP_VARIABLE: Final = "TFYARD_END"

# Labels and annotations of objects that commands create or change.
HELPER: Final = "tfyard.dev/helper"
"""Label of the short-lived pods that mount claims; its value is their purpose."""
CODE_SENT: Final = "code.tfyard.dev/"
"""Prefix of a claim's annotations that say which code is on it."""
REPLACED_ARGS: Final = "tfyard.dev/replaced-args"
REPLACED_REPLICAS: Final = "tfyard.dev/replaced-replicas"
REPLACED_WEBHOOKS: Final = "tfyard.dev/replaced-webhooks"
"""These three annotations of training-operator's objects keep what tfyard replaced when it took over."""
CONFIG_HASH: Final = "tfyard.dev/config-hash"
PROVISIONER: Final = "tfyard.dev/local"
"""Provisioner of the claims in the cluster of `tfyard dev`."""

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation in which `kubectl apply` keeps the manifest that it was given."""
GPU: Final = "nvidia.com/gpu"
OLD_GPU: Final = "alpha.kubernetes.io/nvidia-gpu"
"""Resource names of GPUs, today and in 2017."""

# Labels and annotations that tell gang schedulers and queues to which group a pod belongs.
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
QUEUE_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
QUEUE_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
QUEUE_RETRIES: Final = "kueue.x-k8s.io/retriable-in-group"
QUEUE_FINALIZER: Final = "kueue.x-k8s.io/managed"
VOLCANO_GROUP: Final = "scheduling.k8s.io/group-name"
VOLCANO_TASK: Final = "volcano.sh/task-spec"
PLUGINS_GROUP: Final = "scheduling.x-k8s.io/pod-group"
POD_GROUP: Final = "PodGroup"
"""Kind of a gang in Kubernetes' own scheduler, in Volcano and in scheduler-plugins."""

LEASE_NAME: Final = "tfyard-operator"
"""Name of the Lease by which operators elect their leader."""
BOX_OPERATOR: Final = "tfyard-operator"
"""User and role of the operator of `tfyard dev`, which has neither lease nor Deployment."""
PORT_NAME: Final = "tfjob-port"
DEFAULT_IMAGE: Final = "tensorflow/tensorflow:2.21.0"
"""Image of jobs that name none: those made from a script, and tfyard's own parameter server."""
TENSORBOARD_IMAGE: Final = "tensorflow/tensorflow:2.20.0"
"""The last of TensorFlow's images that has TensorBoard."""
TENSORBOARD_PORT: Final = 6006
HELPER_IMAGE: Final = "busybox:1.37"
OPERATOR_PORT: Final = 8080
"""Port of the operator's metrics and health checks."""

JOB_KINDS: Final = {"kubeflow.org": "TFJob", "tensorflow.org": "TfJob"}
"""Kind of jobs by API group."""
_ENDS = re.compile(rf"|-tensorboard|-({'|'.join(ROLES).lower()})-[0-9]+")
"""Ends of the names of a job's objects, after the name of the job."""

DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Names of namespaces, volumes and the parts of host names (RFC 1123)."""
OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""Names of most other objects: those of DNS subdomains."""
MAX_LABEL: Final = 63
"""Length of a DNS label (RFC 1035): the limit for pod host names, Service names and label values."""


def is_name_of(job: str, name: str) -> bool:
    """Whether an object of the job may have this name."""
    is_usual = name.startswith(job) and _ENDS.fullmatch(name, len(job)) is not None
    return is_usual or name == cluster_config_name(job, name.rpartition("-")[2])


def pod_name(job: str, task: Task) -> str:
    return f"{job}-{task.name}"


def pod_prefix(job: str, role: str) -> str:
    """The part of a role's pod names before the index: large jobs build ten thousand names at once."""
    return f"{job}-{role.lower()}-"


def cluster_config_name(job: str, digest: str) -> str:
    """The job's name is cut to fit; names stay unique because the digest is of all the job's addresses."""
    end = f"-cluster-{digest}"
    return job[: MAX_LABEL - len(end)] + end


def tensorboard_name(job: str) -> str:
    return f"{job}-tensorboard"


def job_labels(job: Job) -> dict[str, str]:
    return {OPERATOR_NAME: CONTROLLER, JOB_NAME: job.name}


def selector(job: Job, role: str) -> str:
    """The label selector for a role's pods, as `kubectl get pods -l` takes it."""
    return f"{JOB_NAME}={job.name},{REPLICA_TYPE}={role.lower()}"
