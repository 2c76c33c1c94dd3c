"""Every name and label of ours, in one place: tools find a job's parts by them.

Names are deterministic, which makes creating idempotent: whoever repeats a step meets its own object.
"""

from typing import Final

from .job import Job, Task

LATEST: Final = "@latest"
"""In place of a name: the newest job or run."""

# Upstream's labels: its SDK, Katib, Kueue and dashboards select pods by them.
OPERATOR_NAME: Final = "training.kubeflow.org/operator-name"
JOB_NAME: Final = "training.kubeflow.org/job-name"
REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
JOB_ROLE: Final = "training.kubeflow.org/job-role"
CONTROLLER: Final = "tfjob-controller"

# Annotations of ours: on pods ...
ATTEMPT: Final = "tfyard.dev/attempt"
# ... and on jobs, for what TFJob v1 has no field for.
DIALECT: Final = "tfyard.dev/dialect"
SERVICES: Final = "tfyard.dev/services"
EVALUATOR_GRACE: Final = "tfyard.dev/evaluator-grace"
CODE: Final = "tfyard.dev/code"
"""The hash of the code that `tfyard submit` sent for it; as a label, on the ConfigMap with the code."""
CODE_CLAIM: Final = "tfyard.dev/code-claim"
"""A label of pods that must all be on the node where their claim is."""
RERUN_OF: Final = "tfyard.dev/rerun-of"
"""The job that a job is a rerun of."""
# ... and on what commands create or change.
HELPER: Final = "tfyard.dev/helper"
"""A label of the short-lived pods that mount claims: what each is for."""
CODE_SENT: Final = "code.tfyard.dev/"
"""The prefix of the annotations of a claim that say which code is on it."""
REPLACED_ARGS: Final = "tfyard.dev/replaced-args"
REPLACED_REPLICAS: Final = "tfyard.dev/replaced-replicas"
REPLACED_WEBHOOKS: Final = "tfyard.dev/replaced-webhooks"
"""On training-operator's objects: what they had before tfyard took the TFJobs over."""
CONFIG_HASH: Final = "tfyard.dev/config-hash"
PROVISIONER: Final = "tfyard.dev/local"
"""Of claims in the cluster of `tfyard dev`."""

# What gang schedulers and queues know a pod's group by.
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
QUEUE_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
QUEUE_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
QUEUE_RETRIES: Final = "kueue.x-k8s.io/retriable-in-group"
QUEUE_FINALIZER: Final = "kueue.x-k8s.io/managed"
VOLCANO_GROUP: Final = "scheduling.k8s.io/group-name"
VOLCANO_TASK: Final = "volcano.sh/task-spec"
PLUGINS_GROUP: Final = "scheduling.x-k8s.io/pod-group"
POD_GROUP: Final = "PodGroup"
"""The kind, whoever's it is: core, Volcano and scheduler-plugins all call it so."""

LEASE_NAME: Final = "tfyard-operator"
"""Of the Lease by which operators elect their leader."""
BOX_OPERATOR: Final = "tfyard-operator"
"""The operator of `tfyard dev` is this user, with a role of that name; it has neither lease nor Deployment."""
PORT_NAME: Final = "tfjob-port"
DEFAULT_IMAGE: Final = "tensorflow/tensorflow:2.21.0"
"""Where nobody chose an image: of the parameter server that tfyard provides, and of jobs from a script."""
TENSORBOARD_IMAGE: Final = "tensorflow/tensorflow:2.20.0"
"""The last of TensorFlow's images that has TensorBoard."""
TENSORBOARD_PORT: Final = 6006
HELPER_IMAGE: Final = "busybox:1.37"
OPERATOR_PORT: Final = 8080
"""Of the operator's metrics and health."""

MAX_LABEL: Final = 63
"""A DNS label (RFC 1035): pod host names, Service names and label values all must fit."""


def pod_name(job: str, task: Task) -> str:
    return f"{job}-{task.name}"


def pod_prefix(job: str, role: str) -> str:
    """What a role's pod names share before the index: large jobs make ten thousand of them at once."""
    return f"{job}-{role.lower()}-"


def cluster_config_name(job: str, digest: str) -> str:
    """Cut to fit: the digest is of the addresses, which name the whole job."""
    end = f"-cluster-{digest}"
    return job[: MAX_LABEL - len(end)] + end


def tensorboard_name(job: str) -> str:
    return f"{job}-tensorboard"


def job_labels(job: Job) -> dict[str, str]:
    return {OPERATOR_NAME: CONTROLLER, JOB_NAME: job.name}


def selector(job: Job, role: str) -> str:
    """The label selector for a role's pods, as `kubectl get pods -l` takes it."""
    return f"{JOB_NAME}={job.name},{REPLICA_TYPE}={role.lower()}"
