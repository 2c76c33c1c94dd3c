"""TensorBoard for a job: a Deployment and a Service, which stay as long as the job."""

from collections.abc import Iterator

from tfyard.model import Job, Manifest, TensorBoard
from tfyard.model.names import (
    CONTROLLER,
    OPERATOR_NAME,
    TENSORBOARD_IMAGE,
    TENSORBOARD_PORT,
    tensorboard_name,
)

from .pods import metadata, with_failure_message
from .site import Site

START = f"""\
if command -v tensorboard > /dev/null; then exec tensorboard "$@"; fi
for python in python3 python; do
  if "$python" -c "import tensorboard" 2> /dev/null; then exec "$python" -m tensorboard.main "$@"; fi
done
echo "TensorBoard is not installed in this image: choose one that has it, such as {TENSORBOARD_IMAGE}" >&2
exit 1
"""
"""Script for `sh` that starts TensorBoard: TensorFlow includes it only up to 2.20, and the runtime's message about
a missing command does not say what to do."""


def objects(job: Job, site: Site) -> Iterator[Manifest]:
    if job.tensorboard is None:
        return
    labels = {"app.kubernetes.io/name": "tensorboard", "app.kubernetes.io/instance": job.name}
    watched = {OPERATOR_NAME: CONTROLLER} if job.uid else {}  # no operator watches a rendered one
    own = {**labels, "app.kubernetes.io/managed-by": "tfyard", **watched}
    meta = metadata(job, tensorboard_name(job.name), own)
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod_spec(job.tensorboard, site)},
        },
    }
    ports = [{"name": "http", "port": 80, "targetPort": TENSORBOARD_PORT}]
    spec = {"type": job.tensorboard.service_type, "selector": labels, "ports": ports}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def command(log_dir: str, option: str = "--logdir") -> list[str]:
    options = [option, log_dir, "--host", "0.0.0.0", "--port", str(TENSORBOARD_PORT)]
    return ["sh", "-c", START, "tensorboard", *options]


def _pod_spec(board: TensorBoard, site: Site) -> Manifest:
    container = {
        "name": "tensorboard",
        "image": board.image or site.tensorboard_image,
        "command": command(board.log_dir),
        "ports": [{"name": "http", "containerPort": TENSORBOARD_PORT}],
        **({"volumeMounts": list(board.mounts)} if board.mounts else {}),
    }
    volumes = {"volumes": list(board.volumes)} if board.volumes else {}
    return {"containers": [with_failure_message(container)], **volumes}
