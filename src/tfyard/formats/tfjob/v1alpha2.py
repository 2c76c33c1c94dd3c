"""kubeflow.org/v1alpha2, the first version with a map of roles. Of cleanPodPolicy its documentation says All;
its code did Running."""

from tfyard.formats.declarations.reading import Notes
from tfyard.model import Job, Manifest

from . import fields

DEFAULTS = fields.Defaults(api_version="kubeflow.org/v1alpha2", clean="Running", dialect="tf1")
where = fields.where


def load(document: Manifest, notes: Notes) -> Job | None:
    return fields.load(document, DEFAULTS, notes)
