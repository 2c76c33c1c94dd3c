"""kubeflow.org/v1beta1, the version of the Kubeflow labs. It had no deadline and no backoff limit yet;
both are accepted all the same."""

from tfyard.model import Job, Manifest

from . import tfjob
from .shape import Notes

DEFAULTS = tfjob.Defaults(api_version="kubeflow.org/v1beta1", clean="Running", dialect="tf1")
where = tfjob.where


def load(document: Manifest, notes: Notes) -> Job | None:
    return tfjob.load(document, DEFAULTS, notes)
