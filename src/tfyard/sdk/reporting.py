"""Goes on with the report of a job to MLflow, while somebody follows it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfyard import formats
from tfyard.errors import NotPossible, Usage
from tfyard.formats import mlflow
from tfyard.model.callbacks import Say
from tfyard.model.names import MLFLOW_RUN
from tfyard.remote.mlflow import JobAtMLflow

if TYPE_CHECKING:
    from tfyard.sdk.place import Place


def at_mlflow(place: Place, uri: str, say: Say) -> JobAtMLflow:
    """The address comes from the user, not from the job: others may have written that, and would get the user's
    credentials."""
    if refusal := mlflow.refusal(uri):
        raise Usage(refusal)
    manifest = place.manifest()
    if not formats.is_job(manifest):
        raise NotPossible(
            f"{place.name}: a run on this machine reports itself; --mlflow is for jobs of a cluster"
        )
    job = formats.load(manifest)
    if job.mlflow is None or not job.mlflow.run:
        begins = f"`tfyard submit FILE --mlflow {uri} --follow` begins one"
        raise NotPossible(f"{place.name} has no run at MLflow; {begins}")
    reported = JobAtMLflow(job, uri, job.name, say, place.summary().status.completion_time)
    reported.begin({MLFLOW_RUN: job.mlflow.run})
    return reported
