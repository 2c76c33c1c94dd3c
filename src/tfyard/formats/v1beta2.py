"""kubeflow.org/v1beta2: run policy flat under `spec`; running pods go when the job ends."""

from tfyard.model import Job, Manifest

from . import tfjob
from .shape import Notes

DEFAULTS = tfjob.Defaults(api_version="kubeflow.org/v1beta2", clean="Running", dialect="tf1")
where = tfjob.where


def load(document: Manifest, notes: Notes) -> Job | None:
    return tfjob.load(document, DEFAULTS, notes)
