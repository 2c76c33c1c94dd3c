"""kubeflow.org/v1alpha2, the first version with a map of roles. Of cleanPodPolicy its documentation says All;
its code did Running."""

from tfyard.model import Job, Manifest

from . import tfjob
from .shape import Notes

DEFAULTS = tfjob.Defaults(api_version="kubeflow.org/v1alpha2", clean="Running", dialect="tf1")
where = tfjob.where


def load(document: Manifest, notes: Notes) -> Job | None:
    return tfjob.load(document, DEFAULTS, notes)
