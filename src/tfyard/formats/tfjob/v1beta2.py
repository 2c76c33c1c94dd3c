"""kubeflow.org/v1beta2: run policy flat under `spec`; running pods go when the job ends."""

from tfyard.formats.declarations.reading import Notes
from tfyard.model import Job, Manifest

from . import fields

DEFAULTS = fields.Defaults(api_version="kubeflow.org/v1beta2", clean="Running", dialect="tf1")
where = fields.where


def load(document: Manifest, notes: Notes) -> Job | None:
    return fields.load(document, DEFAULTS, notes)
