"""Makes the run of a job at MLflow, in the experiment of its name, or goes on in one."""

from tfyard.tracking import payloads
from tfyard.tracking.client import MLflowRefused, MLflowServer
from tfyard.tracking.orders import TrackingOrder

MISSING = "RESOURCE_DOES_NOT_EXIST"
EXISTS = "RESOURCE_ALREADY_EXISTS"

RunInfo = dict[str, str]
"""What the server says of a run: `run_id`, `experiment_id` and more."""


def begin(server: MLflowServer, order: TrackingOrder) -> RunInfo:
    return _again(server, order) or _new(server, order)


def _again(server: MLflowServer, order: TrackingOrder) -> RunInfo | None:
    """The run to go on in, which is running again; None: there is none, or it was deleted."""
    if not order.run:
        return None
    try:
        body = {"run_id": order.run, "status": "RUNNING"}
        info: RunInfo = server.post("runs/update", body)["run_info"]
    except MLflowRefused as refusal:
        if not refusal.code:
            raise
        return None
    return info


def _new(server: MLflowServer, order: TrackingOrder) -> RunInfo:
    body = {
        "experiment_id": _experiment(server, order.job),
        "run_name": order.name,
        "start_time": int(order.started * 1000),
        "tags": payloads.pairs(order.tags),
    }
    info: RunInfo = server.post("runs/create", body)["run"]["info"]
    return info


def _experiment(server: MLflowServer, name: str) -> str:
    """Id of the experiment. Two jobs may make it at the same time."""
    try:
        found = server.get("experiments/get-by-name", experiment_name=name)["experiment"]
    except MLflowRefused as refusal:
        if refusal.code != MISSING:
            raise
        return _new_experiment(server, name)
    if found.get("lifecycle_stage") == "deleted":
        raise MLflowRefused(f"its experiment {name} is deleted; restore it, or give the job another name")
    return str(found["experiment_id"])


def _new_experiment(server: MLflowServer, name: str) -> str:
    try:
        return str(server.post("experiments/create", {"name": name})["experiment_id"])
    except MLflowRefused as refusal:
        if refusal.code != EXISTS:
            raise
        return _experiment(server, name)
